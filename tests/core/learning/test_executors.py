"""Processes that read recordings end without a word, however their work ends."""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing import active_children
from pathlib import Path

import pytest

from forewarn.learning.executors import local

PATHS = [Path(str(number)) for number in range(8)]
WAIT = 0.5
"""Seconds within which a call returns that waits for nobody."""


def name_of(path: Path) -> str:
    return path.name


def until_told(path: Path, pipe: str) -> str:
    """Return at once for the first path; else end, as by an interrupt, when the pipe is closed."""
    if path == PATHS[0]:
        return path.name
    with open(pipe) as told:
        told.read()
    os.kill(os.getpid(), signal.SIGKILL)
    return path.name


def test_processes_have_ended_when_nobody_uses_them_any_more() -> None:
    processes = local(2)
    assert [name for _, name in processes.each(PATHS, name_of, ())] == [p.name for p in PATHS]
    del processes
    assert not active_children()


def test_processes_that_an_interrupt_ends_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda what: told.append(repr(what.exc_value)))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    processes = local(2)
    work = processes.each(PATHS, until_told, (str(pipe),))
    assert next(work) == (PATHS[0], "0")

    def interrupt() -> None:
        with pytest.raises(KeyboardInterrupt):
            work.throw(KeyboardInterrupt())

    interrupted = threading.Thread(target=interrupt)
    interrupted.start()
    interrupted.join(WAIT)
    open(pipe, "w").close()
    interrupted.join()
    assert [name for _, name in processes.each(PATHS, name_of, ())] == [p.name for p in PATHS]
    del processes
    assert not told
