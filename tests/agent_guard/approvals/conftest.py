"""Tests of the approver inside Inspect; `test_approvals.py` runs them where that is."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

here = importlib.util.find_spec("inspect_ai") is not None
collect_ignore_glob = [] if here else ["*"]
