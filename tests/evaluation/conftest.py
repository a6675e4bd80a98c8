"""The studies are modules of the repository, not of a package: `evaluation.foresight`, for one."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
