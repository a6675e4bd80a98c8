"""Processes that learn: Ctrl-C reaches them as well, and they leave it to their parent to speak."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")

INTERRUPT = (signal.SIGINT,)


def in_processes(
    paths: Sequence[Path],
    work: Callable[..., Result],
    shared: Sequence[Any],
    jobs: int,
    progress: Callable[[Path, float], None] | None,
) -> Generator[Result, None, None]:
    """Yield what `work` makes of each path, in their order, by several processes at once.

    Parameters
    ----------
    work : callable
        Called with a path and all that is `shared`, which has to travel between processes.
    jobs : int
        Processes.
    progress : callable, optional
        Told of each path that is done.
    """
    futures: list[Future[Result]] = []
    with ProcessPoolExecutor(
        min(jobs, len(paths)), mp_context=get_context("spawn"), initializer=end_silently
    ) as pool:
        try:
            with interrupts_blocked():
                # The abstraction is built again in each process: compiled functions do not travel.
                futures += [pool.submit(work, path, *shared) for path in paths]
            for path, future in zip(paths, futures, strict=True):
                result = future.result()
                if progress is not None:
                    progress(path, 1.0)
                yield result
        finally:
            # Enough, or an error: what has not begun need not begin.
            for future in futures:
                future.cancel()


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
