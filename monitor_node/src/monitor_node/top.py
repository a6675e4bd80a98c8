"""The executable `monitor_top`: a monitor's risks and alerts in a terminal, and keys to answer."""

from __future__ import annotations

import getpass
import math
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from forewarn_msgs.msg import AlertArray, Intervention, RiskArray
from forewarn_msgs.srv import Acknowledge, Mute
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rich.console import Console
from rich.control import Control

from forewarn_ros.overrides import tell_ignored, tell_unaddressed
from forewarn_ros.process import Interrupt, middleware
from monitor_node.conversions import ACTION_NAMES
from monitor_node.outputs import KEPT
from monitor_node.parameters import TOP_PARAMETERS, declare
from monitor_node.top_screen import Heard, screen, unacknowledged_of

DRAW_EVERY, WAIT = 0.2, 0.05
KEYS = {b"\x1b[A": "k", b"\x1b[B": "j", b"\x1bOA": "k", b"\x1bOB": "j"}


class Top(Node):
    """Listens to a monitor and asks its services."""

    def __init__(self) -> None:
        super().__init__("monitor_top")
        declare(self, TOP_PARAMETERS)
        tell_unaddressed(self)
        tell_ignored(self)
        name = "/" + self.get_parameter("monitor").value.strip("/")
        self.heard = Heard(name)
        self._risk, self._at = f"{name}/output/risk", -math.inf
        many, one = QoSProfile(depth=10, **KEPT), QoSProfile(depth=1, **KEPT)
        self.create_subscription(RiskArray, self._risk, self._on_risk, many)
        self.create_subscription(AlertArray, f"{name}/output/alerts", self._on_alerts, one)
        self._acknowledge: Any = self.create_client(Acknowledge, f"{name}/acknowledge")
        self._mute: Any = self.create_client(Mute, f"{name}/mute")

    def _on_risk(self, message: RiskArray) -> None:
        self._at = time.monotonic()
        heard = self.heard
        heard.take(message.risks)
        heard.mode = "act" if message.mode == Intervention.ACT else "observe"
        heard.action = ACTION_NAMES.get(message.action, str(message.action))
        heard.tick = message.risks[0].tick if message.risks else 0

    def _on_alerts(self, message: AlertArray) -> None:
        self.heard.alerts = message.alerts

    def look(self) -> None:
        """Find out whether the monitor is there."""
        self.heard.present = self.count_publishers(self._risk) > 0
        self.heard.silent = time.monotonic() - self._at

    def press(self, key: str) -> None:
        """Do what a key asks for."""
        heard = self.heard
        if key in "jk":
            heard.choose(1 if key == "j" else -1)
        elif key in "aA":
            alerts = unacknowledged_of(heard, heard.property) if key == "a" else []
            if key == "a" and not alerts:
                heard.answer = f"no alert of {heard.property or 'any property'} to acknowledge"
            else:
                self._ask(self._acknowledge, Acknowledge.Request(alerts=alerts))
        elif key in "mu" and heard.property:
            duration = self.get_parameter("mute").value if key == "m" else 0.0
            request = Mute.Request(properties=[heard.property], duration=duration)
            self._ask(self._mute, request)

    def _ask(self, client: Any, request: Any) -> None:
        if not client.service_is_ready():
            self.heard.answer = f"{client.srv_name}: no node answers"
            return
        request.requester, request.reason = user(), "by monitor_top"
        self.heard.answer = "..."
        client.call_async(request).add_done_callback(self._answered)

    def _answered(self, future: Any) -> None:
        response = future.result()
        self.heard.answer = response.message if response.success else f"refused: {response.message}"


def user() -> str:
    """Return the name of the user; a container may run as a number that has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


@contextmanager
def keys_at_once(file: int) -> Iterator[None]:
    """Let keys arrive one by one and unseen; afterwards the terminal is as it was."""
    before = termios.tcgetattr(file)
    # A suspended process would leave its screen behind.
    stop = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        tty.setcbreak(file)
        yield
    finally:
        termios.tcsetattr(file, termios.TCSAFLUSH, before)
        signal.signal(signal.SIGTSTP, stop)


def pressed(file: int) -> list[str]:
    """Return the keys that wait; a closed terminal presses q."""
    if not select.select([file], [], [], 0)[0]:
        return []
    try:
        data = os.read(file, 256)
    except OSError:
        data = b""
    if not data:
        return ["q"]
    for code, key in KEYS.items():
        data = data.replace(code, key.encode())
    return list(data.decode("ascii", "ignore"))


def watch(top: Top, executor: Any, interrupt: Interrupt) -> None:
    """Show the monitor until q or a signal."""
    console, file, drawn = Console(highlight=False), sys.stdin.fileno(), -math.inf
    with keys_at_once(file), console.screen(hide_cursor=True) as shown:
        size = console.size
        while not interrupt.signalled:
            executor.spin_once(timeout_sec=WAIT)
            keys = pressed(file)
            if "q" in keys:
                return
            for key in keys:
                top.press(key)
            now = time.monotonic()
            if keys or now - drawn >= DRAW_EVERY or console.size != size:
                cleared = () if console.size == size else (Control.clear(),)
                size, drawn = console.size, now
                top.look()
                console.control(*cleared, Control.home())
                shown.update(screen(top.heard, size.width, size.height))


def main(args: Sequence[str] | None = None, interrupt: Interrupt | None = None) -> None:
    """Run until q is pressed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(
            "monitor_top: error: it needs a terminal; without one: "
            "ros2 topic echo /monitor/output/risk",
            file=sys.stderr,
        )
        raise SystemExit(2)
    with interrupt or Interrupt() as stop, middleware(args):
        with stop.making():
            top = Top()
        executor = SingleThreadedExecutor(context=top.context)
        executor.add_node(top)
        try:
            watch(top, executor, stop)
        finally:
            executor.shutdown()
            top.destroy_node()
