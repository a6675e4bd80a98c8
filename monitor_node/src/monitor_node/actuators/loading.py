"""The actuators that a monitor file names, as one.

Other packages add theirs by two entry points: the section of the monitor file
(``forewarn.actuator_sections``), and a module as `module` returns it (``forewarn.actuators``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from forewarn.config.actuators import ActuatorsSpec
from forewarn.monitoring.intervention import NOTHING, Intervention, strongest
from forewarn.registry import ACTUATORS, extension
from forewarn_ros.status import Severity, Status
from monitor_node.actuators.interface import Actuator
from monitor_node.message_types import interface_class

POLL_PERIOD = 0.1
NAV2_UNWATCHED = (
    "no dead man's switch: when the monitor dies, goals are pursued, and a speed limit stays as it "
    "is. A lock_topic with a timeout in twist_mux, the parameter bond, or actuators.twist would "
    "stop the robot"
)
AUTOWARE_UNWATCHED = (
    "no dead man's switch: when the monitor dies, its last command stays in force. A unit for it "
    "in Autoware's diagnostic graph would stop the vehicle (say so by diagnostic_graph: true), or "
    "actuators.twist"
)


def named(spec: ActuatorsSpec) -> dict[str, Any]:
    """Return the sections that the monitor file names."""
    found = {name: getattr(spec, name) for name in type(spec).model_fields if name != "others"}
    return {name: section for name, section in found.items() if section is not None} | spec.others


def module(name: str) -> Any:
    """Return the module of an actuator, which is loaded only if it is named.

    It has the `INTERFACES` that must be installed, and the class, `ACTUATOR`.
    """
    found = extension(ACTUATORS, name)
    return import_module(f"monitor_node.actuators.{name}") if found is None else found


def check_messages(spec: ActuatorsSpec) -> None:
    """Check that the messages of all named actuators are installed."""
    for name in named(spec):
        for interface in module(name).INTERFACES:
            interface_class(interface, where=f"actuators.{name}")


class Actuators:
    """All actuators of a node; a failure of one is reported and does not stop the others."""

    def __init__(self, node: Node, spec: ActuatorsSpec, warn: Callable[[str], None]) -> None:
        self._node = node
        self._warn = warn
        self._failures: dict[str, str] = {}
        self.present: Intervention = NOTHING
        # Something was: until then, what a former life has left stays in force
        self.decided = False
        self.actuators: list[Actuator] = [
            module(name).ACTUATOR(node, section) for name, section in named(spec).items()
        ]
        bond = node.has_parameter("bond") and bool(node.get_parameter("bond").value)
        self._unwatched = unwatched(spec, bond=bond)
        for name, text in self._unwatched.items():
            warn(f"actuator {name}: {text}")
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(POLL_PERIOD, self.poll, clock=steady)

    def apply(self, request: Intervention | None, *, fresh: bool = True) -> None:
        """Act on the request of a tick; None: nothing is asked for.

        A verdict about a time too long ago takes nothing back. If it asks for nothing either, the
        actuator gets no call: one that waits for a word, as a lock with a timeout, stops the robot.
        """
        demand = NOTHING if request is None else request.demanded
        if not fresh:
            demand = strongest(self.present, demand)
            if not demand.moves:
                return
        self.present, self.decided = demand, True
        self._each(lambda actuator: actuator.demand(self.present, time.monotonic()))

    def poll(self) -> None:
        """Try again what has not worked yet.

        Not before the first tick: that decides on what a former life has left in force.
        """
        if self.decided:
            self._each(lambda actuator: actuator.poll(time.monotonic()))

    def statuses(self, failure: str = "") -> Iterator[Status]:
        """Report on each, and on what is asked of the robot; `failure`: nothing is decided."""
        now = time.monotonic()
        values = {"action": self.present.action, "id": self.present.id}
        # Under this name a diagnostic graph can take the autonomous mode away: a speed limit must
        # not do that, a stop should.
        # A graph that watches this name alone must not take a monitor that decides nothing for one
        # that asks for nothing.
        level = Severity.ERROR if self.present.stops or failure else Severity.OK
        yield Status("intervention", level, failure or self.present.action, values)
        for name, text in self._unwatched.items():
            yield Status(f"dead man's switch of {name}", Severity.WARN, text, {})
        for actuator in self.actuators:
            problem = self._failures.get(actuator.name)
            if problem is None:
                yield actuator.status(now)
            else:
                yield Status(f"actuator {actuator.name}", Severity.ERROR, problem, {})

    def owing(self, request: Intervention | None) -> list[str]:
        """Return the names of those that have something in force, or will have by a request."""
        soon = request is not None and request.demanded.moves
        return [actuator.name for actuator in self.actuators if soon or actuator.owes()]

    def resume(self, owing: Iterable[str]) -> None:
        """Take over what a former life of this node left in force."""
        for actuator in self.actuators:
            if actuator.name in owing:
                actuator.resume()

    def close(self) -> None:
        """Take everything back and leave the topics."""
        self.apply(None)
        self._node.destroy_timer(self._timer)
        self._each(lambda actuator: actuator.close())

    def _each(self, do: Callable[[Actuator], None]) -> None:
        for actuator in self.actuators:
            try:
                do(actuator)
            except Exception as error:
                text = f"actuator {actuator.name}: {type(error).__name__}: {error}"
                self._failures[actuator.name] = text
                self._warn(text)
            else:
                self._failures.pop(actuator.name, None)


def unwatched(spec: ActuatorsSpec, *, bond: bool) -> dict[str, str]:
    """Return, by actuator, what does not happen when the monitor dies.

    `spec`: what the monitor file names. A gate stops the robot whatever else is named.
    """
    found: dict[str, str] = {}
    if spec.twist is not None:
        return found
    if spec.nav2 is not None and spec.nav2.lock_topic is None and not bond:
        found["nav2"] = NAV2_UNWATCHED
    if spec.autoware is not None and not spec.autoware.diagnostic_graph:
        found["autoware"] = AUTOWARE_UNWATCHED
    return found
