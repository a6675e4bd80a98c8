"""Ctrl-C: an exception while something long is computed at the start, and none afterwards."""

from __future__ import annotations

import signal
from types import TracebackType
from typing import Any


class Interrupt:
    """Holds the handler of SIGINT; a block under it ends silently if it was interrupted.

    rclpy's own handler shuts the context down, which ends the loop of an executor, and calls the
    handler of before. `KeyboardInterrupt` on top of that, raised while C++ converts a message,
    comes out as an error of the conversion: once the loop runs, nothing is raised.

    Attributes
    ----------
    told : bool
        Whether there was an interrupt.
    raises : bool
        Whether the next one raises `KeyboardInterrupt`.
    """

    def __init__(self) -> None:
        self.told = False
        self.raises = True

    def __enter__(self) -> Interrupt:
        # Before rclpy.init, so that rclpy calls it; a shell's background jobs ignore the signal.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def _on_interrupt(self, *_: Any) -> None:
        self.told = True
        if self.raises:
            self.raises = False
            raise KeyboardInterrupt

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        return self.told and isinstance(error, (Exception, KeyboardInterrupt))
