"""``python -m forewarn`` is the command line."""

from __future__ import annotations

import sys

from forewarn.cli import main

sys.exit(main())
