"""Runs an executable that is told to stop at the worst of moments: in the midst of publishing.

``python signalled.py MODULE TYPE SIGNAL --ros-args ...`` runs ``MODULE.main()`` and sends its
process the signal when it publishes its first message of that type. If rclpy has handlers of its
own, which shut the context down, the message waits until that is done: no busy machine is needed to
see it. Another SIGINT comes when the interpreter takes itself down, as an impatient user sends it.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from typing import Any

import rclpy
from rclpy.publisher import Publisher
from rclpy.signals import SignalHandlerOptions, get_current_signal_handlers_options


class Late:
    """Sends its own process a signal when it is deleted, which is at the very end."""

    def __init__(self, number: int) -> None:
        self._send = os.kill
        self._what = os.getpid(), number

    def __del__(self) -> None:
        self._send(*self._what)


def main(module: str, kind: str, number: int) -> None:
    """Run an executable and tell it to stop."""
    publish, told = Publisher.publish, []

    def interrupted(self: Any, message: Any) -> None:
        if self.msg_type.__name__ == kind and not told:
            told.append(number)
            print(f"signal {number} at {kind}", file=sys.stderr, flush=True)
            os.kill(os.getpid(), number)
            if get_current_signal_handlers_options() != SignalHandlerOptions.NO:
                while rclpy.ok():
                    pass
        publish(self, message)

    Publisher.publish = interrupted
    import_module(module).main()


if __name__ == "__main__":
    late = Late(signal.SIGINT)
    arguments, sys.argv[1:] = sys.argv[1:4], sys.argv[4:]
    main(arguments[0], arguments[1], int(arguments[2]))
