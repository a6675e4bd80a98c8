"""SIGINT and SIGTERM: a process ends in good order, with a middleware that still works.

rclpy's own handlers shut the context down at once, whatever is being done with it at the moment: a
message that is published, a node that is made or destroyed then fails. So rclpy is given no signals
(`middleware`). They are taken note of here, and loops look whether there was one.

A process ends after a signal, whatever hangs in it or in the middleware: after `END` it
writes the stacks of its threads and exits with 1. Where that hangs too, SIGALRM ends it. So it does
if a node is not made within `MAKING`, because Python handles no signal there (`Interrupt.making`).
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

WAKE = 0.5
"""Seconds for which nothing is waited for at a time, so that a signal is noticed."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
END, LAST = 60.0, 5.0
"""Seconds that a process has to end after a signal, and then to write its stacks where it
hangs. ROS 2's launch kills after 10 s, systemd after 90 s; nothing kills after Ctrl-C."""
MAKING = 120.0
"""Seconds that a node may take to be made. The middleware may wait for another process there, for
ever, and holds the interpreter meanwhile."""
LOOK, LOOK_NS = 0.1, 50_000_000
"""How often it is looked whether the system's clock was set back, and by how much that counts."""


class Interrupt:
    """Holds the handlers of both signals; a block under it ends silently if there was one.

    An exception out of a handler comes up anywhere, where C++ converts a message as another error
    and in a finaliser as a message on the screen. It is left to what takes long and knows no ROS
    (`raising`).
    """

    def __init__(self) -> None:
        self.signalled = False
        self._raises = False
        self._bell: int | None = None

    def __enter__(self) -> Interrupt:
        if self._bell is None:  # a console script has entered it before its executable does
            heard, self._bell = os.pipe()
            os.set_blocking(self._bell, False)
            self._listener = threading.Thread(
                target=_listen, args=(heard,), name="signals", daemon=True
            )
            self._listener.start()
            signal.set_wakeup_fd(self._bell, warn_on_full_buffer=False)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for number in SIGNALS:
            signal.signal(number, self._on_signal)
        return self

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self.signalled:
            _end_in_time(END)
        self.signalled = True
        if self._raises:
            self._raises = False
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if there was a signal."""
        if self.signalled:
            raise KeyboardInterrupt

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Let a signal end what is computed in a block, too: `KeyboardInterrupt` comes up there."""
        self._raises = True
        try:
            self.check()
            yield
        except Exception:
            self.check()  # C++ makes another error of it
            raise
        finally:
            self._raises = False

    @contextmanager
    def making(self) -> Iterator[None]:
        """End the process if a block in which a node is made takes longer than `MAKING`."""
        _end_in_time(MAKING)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            faulthandler.cancel_dump_traceback_later()
            if self.signalled:
                _end_in_time(END)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._bell is not None:
            signal.set_wakeup_fd(-1)
            os.close(self._bell)
            self._listener.join()
            self._bell = None
        if self.signalled:
            # Ctrl-C often comes twice, from the terminal and from `ros2 launch`; an interpreter
            # that takes itself down has no handlers any more, and would die of the second.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return self.signalled and isinstance(error, KeyboardInterrupt)


def _listen(heard: int) -> None:
    """Hear of a signal even if the main thread hangs, where alone Python runs handlers."""
    with open(heard, "rb", buffering=0) as file:
        while received := file.read(1):
            if received[0] in SIGNALS:
                _end_in_time(END)
                file.readall()  # what comes more often postpones nothing


def _end_in_time(seconds: float) -> None:
    # Neither needs the interpreter, which what hangs may hold.
    signal.setitimer(signal.ITIMER_REAL, seconds + LAST)
    if sys.stderr is not None:
        faulthandler.dump_traceback_later(seconds, exit=True)


@contextmanager
def middleware(args: Sequence[str] | None) -> Iterator[None]:
    """Have rclpy ready in a block, which alone decides when its context is shut down.

    A parameter given at the start with a value that a node refuses ends the process in one line.
    """
    import rclpy  # takes a while: a signal may come before
    from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
    from rclpy.signals import SignalHandlerOptions

    arguments = None if args is None else list(args)
    rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    try:
        yield
    except (InvalidParameterTypeException, InvalidParameterValueException) as error:
        raise SystemExit(f"error: {error}") from None
    finally:
        rclpy.try_shutdown()


def spin(executor: Any, interrupt: Interrupt) -> None:
    """Serve until there is a signal."""
    # EventsExecutor.spin() was once seen to burn a core without calling back; spin_once never.
    with _woken_when_set_back(executor):
        while not interrupt.signalled:
            executor.spin_once(timeout_sec=WAKE)


@contextmanager
def _woken_when_set_back(executor: Any) -> Iterator[None]:
    """Wake an executor in a block whenever the system's clock is set back.

    Where Fast DDS was built for a C library before 2.30, as in the wheels of PyPI, it waits until a
    time of day. Set back by an hour meanwhile, all of the node would stand still for an hour.
    """
    over = False

    def watch() -> None:
        before = time.time_ns() - time.monotonic_ns()
        while not over:
            time.sleep(LOOK)  # an Event may wait until a time of day
            now = time.time_ns() - time.monotonic_ns()
            if now < before - LOOK_NS:
                executor.wake()
            before = now

    thread = threading.Thread(target=watch, name="clock", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over = True
        thread.join()
