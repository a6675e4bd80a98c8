"""Fixtures of tests that run commands in this process, and talk to a server of chats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
