"""Fixtures of the tests of recordings."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bags import Bags


@pytest.fixture(scope="session")
def bags() -> type[Bags]:
    """Return the builders of bags."""
    return Bags
