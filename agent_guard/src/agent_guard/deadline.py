"""Work that must be done within a time, or is given up."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

Result = TypeVar("Result")
MOST_STUCK = 4
"""Decisions that may hang at once; with one more, nothing is begun any more."""


class LateError(Exception):
    """Something was not done within its time."""


class Deadline:
    """Does work in another thread, for no thread can be interrupted.

    `seconds`: how long one piece of work may take; None for no limit, without another thread.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._stuck = 0
        self._process = os.getpid()

    def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Return what the function returns, or raise what it raises.

        Raises LateError if it takes too long.
        """
        if self.seconds is None:
            return function(*arguments)
        worker = self._take()
        worker.work.put((function, arguments))
        if not worker.ready(self.seconds):
            self._abandon(worker)
            raise LateError(f"it took longer than {self.seconds:g} s")
        result, error = worker.done.get()
        with self._lock:
            self._idle.append(worker)
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def _take(self) -> _Worker:
        if self._process != os.getpid():  # threads do not live on in a process that was forked
            self.__init__(self.seconds)  # type: ignore[misc]
        with self._lock:
            if self._stuck >= MOST_STUCK:
                raise LateError(f"{self._stuck} decisions still hang")
            return self._idle.pop() if self._idle else _Worker()

    def _abandon(self, worker: _Worker) -> None:
        with self._lock:
            self._stuck += 1

        def freed() -> None:
            with self._lock:
                self._stuck -= 1

        worker.end(freed)


class _Worker:
    """A thread that does one piece of work after the other, and may be left behind.

    It says by a socket that a piece is done. A Python that was built for a C library before 2.30
    waits for a queue until a time of day: an hour more if the clock is set back by one meanwhile.
    """

    def __init__(self) -> None:
        self.work: SimpleQueue[Any] = SimpleQueue()
        self.done: SimpleQueue[Any] = SimpleQueue()
        self._hears, self._tells = socket.socketpair()
        threading.Thread(target=self._serve, name="forewarn-guard", daemon=True).start()

    def ready(self, seconds: float) -> bool:
        """Wait for a piece of work; tell whether it was done in time, by the steady clock."""
        self._hears.settimeout(seconds)
        try:
            self._hears.recv(1)
        except TimeoutError:
            return False
        return True

    def end(self, ended: Callable[[], None]) -> None:
        """Let the thread end, once its work is done, and say so."""
        self.work.put((None, ended))

    def _serve(self) -> None:
        while True:
            function, arguments = self.work.get()
            if function is None:
                self._hears.close()
                self._tells.close()
                arguments()
                return
            try:
                self.done.put((function(*arguments), None))
            except BaseException as error:
                self.done.put((None, error))
            self._tells.send(b"\0")
