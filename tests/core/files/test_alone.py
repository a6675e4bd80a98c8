"""Who adds to a file in its place is alone with it, also right after another one replaced it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from forewarn.errors import InputError
from forewarn.files.outputs import alone


def test_a_file_is_had_by_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text("a")
    with alone(path), pytest.raises(InputError, match=r"another process adds to it.*one after"):
        alone(path).__enter__()
    with alone(path):
        pass


def test_a_file_that_was_replaced_meanwhile_is_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tmp_path / "model.json", fcntl.flock
    path.write_text("a")

    def replaced(file: object, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        (tmp_path / "draft").write_text("b")
        os.replace(tmp_path / "draft", path)
        real(file, how)  # type: ignore[arg-type]

    monkeypatch.setattr(fcntl, "flock", replaced)
    with alone(path), pytest.raises(InputError, match="another process"):
        alone(path).__enter__()
