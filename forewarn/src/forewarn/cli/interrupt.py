"""Ctrl-C ends a command with one word, also where an exception would come up as something else."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Notes SIGINT in a block and raises `KeyboardInterrupt`, unless it is `held`.

    A process that ignores the signal, as background jobs of a shell do, goes on ignoring it.

    Attributes
    ----------
    signalled : bool
        Whether there was a signal.
    """

    def __init__(self) -> None:
        self.signalled = False
        self._held = False
        self._ours = False

    def __enter__(self) -> Interrupt:
        self._ours = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self._ours:
            signal.signal(signal.SIGINT, self._on_signal)
        return self

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.signalled = True
        if not self._held:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if there was a signal."""
        if self.signalled:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let a signal wait until the block ends.

        While C++ imports something, an exception is lost or becomes another error.
        """
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self.check()

    def __exit__(self, *_: object) -> None:
        if self._ours:
            # An impatient user sends it twice: the second must not come up while Python ends.
            after = signal.SIG_IGN if self.signalled else signal.default_int_handler
            signal.signal(signal.SIGINT, after)
