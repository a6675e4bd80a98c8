"""Running the command line in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Result, forewarn, serve

from forewarn.cli import main

__all__ = ["Result", "forewarn", "serve"]


@pytest.fixture(scope="session")
def corridor_model(corridor_run, tmp_path_factory: pytest.TempPathFactory) -> Path:  # type: ignore[no-untyped-def]
    """Return a model learned from the six recordings of the corridor."""
    path = tmp_path_factory.mktemp("model") / "corridor.model.json"
    bags = corridor_run.recordings[0].parent
    assert main(["learn", str(bags), "-c", str(corridor_run.config), "-o", str(path), "-q"]) == 0
    return path


@pytest.fixture
def edited(corridor_run: Any, tmp_path: Path) -> Callable[[str, str], Path]:
    """Return a function that writes the corridor's monitor file with one text replaced."""

    def edit(old: str, new: str) -> Path:
        text = corridor_run.config.read_text()
        assert old in text
        path = tmp_path / "monitor.yaml"
        path.write_text(text.replace(old, new, 1))
        return path

    return edit
