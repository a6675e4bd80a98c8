"""Fixtures of tests that run commands in this process, and talk to a server of chats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from chat_server import Stub

from forewarn.cli import main


class Result(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


@pytest.fixture
def forewarn(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Return a function that runs a command and gives exit code and output."""

    def run(*arguments: object) -> Result:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def serve() -> Iterator[Callable[..., Stub]]:
    """Return a function that starts a server with a script."""
    started: list[Stub] = []

    def start(*script: Any) -> Stub:
        started.append(Stub(*script))
        return started[-1]

    yield start
    for stub in started:
        stub.close()


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
