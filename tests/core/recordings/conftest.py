"""Fixtures of the tests of recordings."""

from __future__ import annotations

import pytest
from bags import Bags


@pytest.fixture(scope="session")
def bags() -> type[Bags]:
    """Return the builders of bags."""
    return Bags
