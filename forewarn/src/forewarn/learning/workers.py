"""Processes that learn: Ctrl-C reaches them as well, and they leave it to their parent to speak."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPT = (signal.SIGINT,)


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
