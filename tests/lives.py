"""Lives of a real monitor, one after the other, by a clock that a test sets: no process, no wait.

The node is the real one, and so are its actuators and all its topics and services. Only what
stands at the other end of actuators is on a switchboard, and messages of its inputs come from here.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rclpy.clock import ClockType
from rclpy.context import Context
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message
from rclpy.time import Time
from robot_ends import KEPT

from forewarn_ros.status import Severity
from monitor_node import node as node_module
from monitor_node import runtime as runtime_module
from monitor_node.actuators import loading
from monitor_node.inputs import Taken
from monitor_node.node import MonitorNode
from monitor_node.testing import Switchboard

OUTPUT = "/monitor/output/"
AWAY = ("/planning", "/api", "/speed_limit", "/navigate_to_pose", "/lock", "/twist_gate")
PERIOD_NS = 100_000_000


class Live(MonitorNode):
    """The monitor, whose actuators reach a switchboard."""

    def __init__(self, board: Switchboard, **arguments: Any) -> None:
        self.board = board
        self.made: list[tuple[Callable[[Any], None], Any]] = []
        self.hangs = False
        self.said: dict[str, tuple[Severity, str]] = {}
        super().__init__(**arguments)
        self._diagnostics.publish = self._reported

    def _reported(self, array: Any) -> None:
        self.said = {
            status.name.removeprefix("monitor: "): (Severity(status.level[0]), status.message)
            for status in array.status
        }

    def _keep(self, destroy: Callable[[Any], None], made: Any) -> Any:
        self.made.append((destroy, made))
        return made

    def _drop(self, made: Any) -> bool:
        """Destroy what is on the switchboard; tell whether it is there."""
        for entry in self.made:
            if entry[1] is made:
                entry[0](made)
                self.made.remove(entry)
                return True
        return False

    def create_publisher(self, kind: Any, topic: str, *rest: Any, **options: Any) -> Any:
        if not topic.startswith(AWAY):
            return super().create_publisher(kind, topic, *rest, **options)
        made = self.board.create_publisher(kind, topic, *rest)
        return self._keep(self.board.destroy_publisher, made)

    def create_subscription(self, kind: Any, topic: str, *rest: Any, **options: Any) -> Any:
        if not topic.startswith(AWAY):
            return super().create_subscription(kind, topic, *rest, **options)
        made = self.board.create_subscription(kind, topic, *rest)
        return self._keep(self.board.destroy_subscription, made)

    def create_client(self, kind: Any, name: str, *rest: Any, **options: Any) -> Any:
        if not name.startswith(AWAY):
            return super().create_client(kind, name, *rest, **options)
        return self._keep(self.board.destroy_client, self.board.create_client(kind, name))

    def create_lifecycle_publisher(self, kind: Any, topic: str, *rest: Any, **options: Any) -> Any:
        publisher = super().create_lifecycle_publisher(kind, topic, *rest, **options)
        if not topic.startswith("~/output"):
            return publisher
        twin = self.board.create_publisher(kind, topic.replace("~", "/monitor"), KEPT)
        self._keep(self.board.destroy_publisher, twin)
        publish = publisher.publish

        def both(message: Any) -> None:
            publish(message)
            if publisher.is_activated:
                if isinstance(message, bytes):
                    message = deserialize_message(message, kind)
                twin.publish(message)

        publisher.publish = both
        publisher.twin = twin
        return publisher

    def destroy_publisher(self, publisher: Any) -> Any:
        return self._drop(publisher) or super().destroy_publisher(publisher)

    def destroy_lifecycle_publisher(self, publisher: Any) -> Any:
        self._drop(getattr(publisher, "twin", None))
        return super().destroy_lifecycle_publisher(publisher)

    def destroy_subscription(self, subscription: Any) -> Any:
        return self._drop(subscription) or super().destroy_subscription(subscription)

    def destroy_client(self, client: Any) -> Any:
        return self._drop(client) or super().destroy_client(client)

    def _clock_moved(self, jump: Any) -> None:
        if not self.hangs:
            super()._clock_moved(jump)

    def die(self) -> None:
        """End as a process ends that is killed: without a word."""
        for destroy, made in self.made:
            destroy(made)
        self.made.clear()
        self._ticker = None
        self.destroy_node()


class Lives:
    """One life after the other, with one journal.

    Attributes
    ----------
    node : Live or None
        The present life.
    tick : int
        The next tick of simulated time.
    now : float
        Seconds of a steady clock.
    """

    def __init__(self, context: Context, folder: Path, board: Switchboard) -> None:
        self.context, self.folder, self.board = context, folder, board
        self.node: Live | None = None
        self.tick, self.now = 1_000_000, 1000.0
        self.waiting: list[Taken] = []

    @property
    def journal(self) -> Path:
        return self.folder / "journal"

    def begin(self, config: Path, **parameters: Any) -> None:
        """Begin a life; it is active, and has not ticked."""
        given = {
            "config": str(config),
            "journal": str(self.journal),
            "use_sim_time": True,
            "mode": "act",
            **parameters,
        }
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        self.node = Live(self.board, context=self.context, parameter_overrides=overrides)
        assert self.node.trigger_configure() == TransitionCallbackReturn.SUCCESS, self.node.problem
        self.activate()

    def activate(self) -> None:
        assert self.node is not None
        self._set(self.tick * PERIOD_NS - 1)
        assert self.node.trigger_activate() == TransitionCallbackReturn.SUCCESS, self.node.problem
        assert self.node.runtime is not None
        self.node.runtime.inputs.take = self._take  # type: ignore[method-assign]
        self.board.deliver()

    def kill(self) -> None:
        """End a life without a word."""
        assert self.node is not None
        self.node.die()
        self.node = None

    def _set(self, time_ns: int) -> None:
        assert self.node is not None
        clock: Any = self.node.get_clock()
        clock.set_ros_time_override(Time(nanoseconds=time_ns, clock_type=ClockType.ROS_TIME))

    def _take(self, *, player_times: bool = False) -> list[Taken]:
        found, self.waiting = self.waiting, []
        return found

    def step(self, seconds: float = 0.1, **values: float | None) -> None:
        """Let the next tick come, and then so many seconds pass."""
        time_ns = self.tick * PERIOD_NS
        self.tick += 1
        node = self.node
        if node is not None:
            system_ns = time.time_ns()
            for name, value in values.items():
                if value is not None:
                    data = b"\0\1\0\0" + struct.pack("<f", value)
                    self.waiting.append(Taken(f"/{name}", data, system_ns, system_ns, time_ns))
            self._set(time_ns)
        self.now += seconds
        if node is not None and not node.hangs:
            for timer in list(node.timers):
                timer.callback()

    def call(self, name: str, **fields: Any) -> Any:
        """Call a service of the monitor; return the response."""
        assert self.node is not None
        service = next(s for s in self.node.services if s.srv_name.endswith(f"/{name}"))
        kind = service.srv_type
        try:
            service.callback(kind.Request(**fields), kind.Response()).send(None)
        except StopIteration as done:  # it has awaited nothing
            return done.value
        raise AssertionError(f"{name} waits for something")

    def level(self, name: str) -> Severity:
        """Return the level of a part of /diagnostics."""
        assert self.node is not None
        return self.node.said[name][0]


def steady(lives: Lives, patch: pytest.MonkeyPatch) -> None:
    """Have all waits of the node go by the steady clock of its lives."""
    clock = SimpleNamespace(
        monotonic=lambda: lives.now, monotonic_ns=lambda: round(lives.now * 1e9)
    )
    for module in (node_module, runtime_module, loading):
        patch.setattr(module, "time", clock)
