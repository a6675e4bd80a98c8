"""Make the reference semantics, and what the studies share, importable from the tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[3])]
