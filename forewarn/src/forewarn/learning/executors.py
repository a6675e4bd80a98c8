"""Who reads recordings: this process, several processes, or a cluster; the results are the same.

Each recording is one task, and results come in the order of the recordings, so that nothing that
is made of them depends on who read what, or when. The executor also decides about a
recording that cannot be read: an error, or it is reported and left out.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar
from weakref import finalize

from forewarn.errors import InputError, RecordingError
from forewarn.files.interpreters import spawning
from forewarn.files.remote import RemotePath
from forewarn.recordings.parts import file_of

Result = TypeVar("Result")
Progress = Callable[[Path, float], None]
LeftOut = Callable[[Path, RecordingError], None]

WAITING = 4
"""Tasks that are handed over for each process or thread: the next begins when one is done."""
NEARLY = 0.999
"""The share of a recording that is read at most until it is known what became of it."""
INTERRUPT = (signal.SIGINT,)
SMALL = 16 << 20
"""Bytes of recordings for which no further process is started."""


class Executor(Protocol):
    """Calls a function with each of many recordings, here or elsewhere."""

    def each(
        self,
        paths: Sequence[Path],
        work: Callable[..., Result],
        shared: Sequence[Any],
        progress: Progress | None = None,
    ) -> Generator[tuple[Path, Result], None, None]:
        """Yield each path with what `work` makes of it, in the order of the paths.

        `work`: called with a path and all that is `shared`, all of which has to travel between
            processes; in this process also with the keyword `progress`.
        `progress`: called with the share of each recording that is read; 1.0 once, when it is over.

        Raises RecordingError if a recording cannot be read and no callback reports it; InputError
        if no worker can be had.
        """


@dataclass(frozen=True)
class Here:
    """Reads in this process, one recording after the other.

    `left_out`: called with each recording that cannot be read, which is then left out.
    """

    left_out: LeftOut | None = None

    def each(
        self,
        paths: Sequence[Path],
        work: Callable[..., Result],
        shared: Sequence[Any],
        progress: Progress | None = None,
    ) -> Generator[tuple[Path, Result], None, None]:
        """See `Executor.each`."""
        for path in paths:
            tell = None if progress is None else partial(_under_way, progress, path)
            outcome = partial(work, path, *shared, progress=tell)
            yield from settled(path, outcome, progress, self.left_out)


@dataclass(frozen=True)
class Processes:
    """Reads in so many processes of this machine; `left_out` as in `Here`.

    The processes are started once, and end when this is no longer used.
    """

    jobs: int
    left_out: LeftOut | None = None

    @cached_property
    def _pool(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(self.jobs, mp_context=spawning(), initializer=end_silently)
        # With wait: a pool that still ends while the interpreter does prints a traceback.
        finalize(self, pool.shutdown)
        return pool

    def each(
        self,
        paths: Sequence[Path],
        work: Callable[..., Result],
        shared: Sequence[Any],
        progress: Progress | None = None,
    ) -> Generator[tuple[Path, Result], None, None]:
        """See `Executor.each`."""
        if len(paths) < 2:
            yield from Here(self.left_out).each(paths, work, shared, progress)
            return
        task = pickle.dumps((work, *shared))
        pool = self._pool  # made here: what starts with it lets interrupts through
        waiting: deque[tuple[Path, Future[Any]]] = deque()
        left = iter(paths)
        try:
            while True:
                with interrupts_blocked():
                    for path in islice(left, WAITING * self.jobs - len(waiting)):
                        waiting.append((path, pool.submit(call, task, path)))
                if not waiting:
                    break
                path, future = waiting.popleft()
                yield from settled(path, future.result, progress, self.left_out)
        except BaseException as error:
            # Enough, or an error: what has not begun need not begin. The pool's own thread cancels
            # it, because an interrupt may have ended the processes, and that thread tells of it.
            self.__dict__.pop("_pool", None)
            pool.shutdown(cancel_futures=True)
            if not isinstance(error, BrokenProcessPool):
                raise
            raise InputError(
                "a process that read recordings was killed, perhaps for want of memory",
                key="--jobs",
                accepted="fewer processes",
            ) from error


def local(jobs: int, left_out: LeftOut | None = None) -> Executor:
    """Return who reads with so many processes of this machine."""
    return Processes(jobs, left_out) if jobs > 1 else Here(left_out)


def processes_for(recordings: Sequence[Path]) -> int:
    """Return how many processes pay: each takes a second to start."""
    if any(isinstance(path, RemotePath) for path in recordings):
        return os.cpu_count() or 1
    size = sum(
        part.stat().st_size
        for path in map(file_of, recordings)
        for part in (path.rglob("*") if path.is_dir() else (path,))
        if part.is_file()
    )
    return 1 if size < SMALL else os.cpu_count() or 1


def _under_way(progress: Progress, path: Path, share: float) -> None:
    progress(path, min(share, NEARLY))


def settled(
    path: Path,
    outcome: Callable[[], Result],
    progress: Progress | None,
    left_out: LeftOut | None,
) -> Generator[tuple[Path, Result], None, None]:
    """Yield the path with its outcome, or tell that it is left out; either way it is done."""
    try:
        result = outcome()
    except RecordingError as error:
        if left_out is None:
            raise
        left_out(path, error)
    else:
        yield path, result
    if progress is not None:
        progress(path, 1.0)


def call(task: bytes, path: Path) -> Any:
    """Do a task, which is a pickled function with all but the first of its arguments."""
    work, *shared = _loaded(task)
    return work(path, *shared)


@lru_cache(maxsize=4)
def _loaded(task: bytes) -> tuple[Any, ...]:
    # Once for all recordings: an abstraction is compiled where it arrives.
    found: tuple[Any, ...] = pickle.loads(task)
    return found


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Let SIGINT wait, also in processes that are started in the block.

    They would print a traceback if it came while they import.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPT)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_silently() -> None:
    """Have SIGINT end this process from now on, without a word, also if it waits already."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPT)
