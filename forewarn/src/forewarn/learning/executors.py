"""Who reads recordings: this process, several processes, or a cluster; the results are the same.

Each recording is one task, and results come in the order of the recordings, so that nothing that
is made of them depends on who read what, or when.
"""

from __future__ import annotations

import pickle
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol, TypeVar

from forewarn.errors import InputError, RecordingError

Result = TypeVar("Result")
Progress = Callable[[Path, float], None]
LeftOut = Callable[[Path, RecordingError], None]

INTERRUPT = (signal.SIGINT,)


class Executor(Protocol):
    """Calls a function with each of many recordings, here or elsewhere."""

    def each(
        self,
        paths: Sequence[Path],
        work: Callable[..., Result],
        shared: Sequence[Any],
        progress: Progress | None = None,
        left_out: LeftOut | None = None,
    ) -> Generator[tuple[Path, Result], None, None]:
        """Yield each path with what `work` makes of it, in the order of the paths.

        Parameters
        ----------
        work : callable
            Called with a path and all that is `shared`, all of which has to travel between
            processes; in this process also with the keyword `progress`.
        progress : callable, optional
            Told how much of each recording is read.
        left_out : callable, optional
            Told of each recording that cannot be read, which is then left out.

        Raises
        ------
        RecordingError
            If a recording cannot be read and nobody is told of it.
        InputError
            If those that work cannot be had.
        """


class Here:
    """Reads in this process, one recording after the other."""

    def each(
        self,
        paths: Sequence[Path],
        work: Callable[..., Result],
        shared: Sequence[Any],
        progress: Progress | None = None,
        left_out: LeftOut | None = None,
    ) -> Generator[tuple[Path, Result], None, None]:
        """See `Executor.each`."""
        for path in paths:
            tell = None if progress is None else partial(progress, path)
            outcome = partial(work, path, *shared, progress=tell)
            yield from settled(path, outcome, progress, left_out)


@dataclass(frozen=True)
class Processes:
    """Reads in so many processes of this machine."""

    jobs: int

    def each(
        self,
        paths: Sequence[Path],
        work: Callable[..., Result],
        shared: Sequence[Any],
        progress: Progress | None = None,
        left_out: LeftOut | None = None,
    ) -> Generator[tuple[Path, Result], None, None]:
        """See `Executor.each`."""
        if len(paths) < 2:
            yield from Here().each(paths, work, shared, progress, left_out)
            return
        futures: list[Future[Any]] = []
        task = pickle.dumps((work, *shared))
        with ProcessPoolExecutor(
            min(self.jobs, len(paths)), mp_context=get_context("spawn"), initializer=end_silently
        ) as pool:
            try:
                with interrupts_blocked():
                    futures += [pool.submit(call, task, path) for path in paths]
                for path, future in zip(paths, futures, strict=True):
                    yield from settled(path, future.result, progress, left_out)
            except BrokenProcessPool as error:
                raise InputError(
                    "a process that read recordings was killed, perhaps for want of memory",
                    key="--jobs",
                    accepted="fewer processes",
                ) from error
            finally:
                # Enough, or an error: what has not begun need not begin.
                for future in futures:
                    future.cancel()


def local(jobs: int) -> Executor:
    """Return who reads with so many processes of this machine."""
    return Processes(jobs) if jobs > 1 else Here()


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
