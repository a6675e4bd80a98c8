"""Tests of the guard inside agent frameworks; `test_frameworks.py` runs them where these are."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

here = importlib.util.find_spec("langchain") is not None
collect_ignore_glob = [] if here else ["*"]
