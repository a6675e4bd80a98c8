"""What comes between planner and base, and does what a monitor or a rule demands."""

from __future__ import annotations

from evaluation.harness.control import Library, Quantity, number
from evaluation.irsim.messages import Publisher, commanded, time_of
from evaluation.irsim.planner import Planner
from evaluation.irsim.robot import Command, Frame
from evaluation.irsim.scenes import RATE
from forewarn.config.actions import ACTIONS, REPLAN
from forewarn.config.actuators import TwistSpec
from monitor_node.actuators.interface import NOTHING, Demand
from monitor_node.motion import Velocity
from monitor_node.twist_gate import GateRules, GateState, receive, step

GATE = TwistSpec(
    input="/cmd_vel",
    output="/cmd_vel_safe",
    max_speed=2.0,
    max_turn=2.0,
    emergency_deceleration=1.5,
)
"""The base brakes no harder than 1.5 m/s^2."""

STOP = Demand("EMERGENCY_STOP", id=1)


class Gate:
    """The rules of `twist_gate_node`, called at every tick instead of at its own rate."""

    def __init__(self, spec: TwistSpec = GATE) -> None:
        self._rules = GateRules.of(spec)
        self._state = GateState()

    def begin(self, planner: Planner) -> None:
        """Forget the last episode."""
        del planner
        self._state = GateState()

    def apply(self, demand: Demand, command: Command, now: float) -> Command:
        """Return what passes of a command."""
        self._state = receive(self._rules, self._state, Velocity(x=command[0], yaw=command[1]), now)
        self._state = step(self._rules, self._state, demand, now)
        return self._state.output.x, self._state.output.yaw


class SpeedLimit:
    """Nav2's topic `speed_limit`: the planner heeds it from its next command on."""

    def begin(self, planner: Planner) -> None:
        """Forget the last episode."""
        self._planner = planner

    def apply(self, demand: Demand, command: Command, now: float) -> Command:
        """Tell the planner, and leave the command as it is."""
        del now
        self._planner.limit = demand.speed_limit if demand.limits else float("inf")
        return command


class Steering:
    """All that may be asked of the robot: limits and plans of its planner, stops of a gate."""

    def __init__(self) -> None:
        self._gate, self._limit = Gate(), SpeedLimit()

    def begin(self, planner: Planner) -> None:
        """Forget the last episode."""
        self._planner = planner
        self._gate.begin(planner)
        self._limit.begin(planner)

    def apply(self, demand: Demand, command: Command, now: float) -> Command:
        """Tell the planner, and return what passes of the command."""
        self._planner.asked = demand.action == REPLAN
        stop = demand if demand.stops else NOTHING
        return self._gate.apply(stop, self._limit.apply(demand, command, now), now)


def falling(signal: str, threshold: float, demand: Demand = STOP) -> Quantity:
    """Return a rule on one signal of the monitor file whose small values are dangerous."""
    level = -threshold
    return Quantity(signal, lambda values: -number(values, signal), level, level, demand)


class Governed:
    """A robot whose commands pass by somebody who watches it."""

    def __init__(self, controller: Library, means: Gate | SpeedLimit | Steering) -> None:
        self._controller, self._means = controller, means
        self._publisher = Publisher()
        self.ticks_acting = 0

    def begin(self, planner: Planner) -> None:
        """Forget the last episode."""
        self._controller.begin()
        self._means.begin(planner)
        self._publisher = Publisher()
        self.ticks_acting = 0

    def govern(self, frame: Frame, command: Command) -> Command:
        """Evaluate the tick and apply what is asked for."""
        for message in self._publisher.sensed(frame):
            self._controller.accept(message)
        grid = self._controller.watch.session.clock
        demand = self._controller.tick(grid.tick_at_or_after(time_of(frame.tick)))
        self._controller.accept(commanded(frame, command))
        self.ticks_acting += ACTIONS[demand.action].shapes
        return self._means.apply(demand, command, frame.tick / RATE)
