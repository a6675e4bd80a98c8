"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
settings.register_profile("repeatable", derandomize=True, deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same inputs on every machine, however slow, unless a seed or a profile is named."""
    if not config.getoption("--hypothesis-seed") and not config.getoption("--hypothesis-profile"):
        settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of recordings and models made by others; skip where it is absent."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(
            f"{folder} is absent: recordings and models of others do not ship with Forewarn"
        )
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Try live tests once more: a busy machine can take longer than any fair limit.

    What is broken fails twice; the closing lines of a run name what was tried again.
    """
    for item in items:
        if item.get_closest_marker("ros") is not None:
            item.add_marker(pytest.mark.flaky(reruns=1))
