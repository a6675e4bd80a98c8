"""Who may come between planner and base: the monitor, a rule on one number, or nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.closed_loop.loading import open_watch
from evaluation.irsim.messages import Message, Publisher, commanded, time_of
from evaluation.irsim.planner import Planner
from evaluation.irsim.robot import Command, Frame
from evaluation.irsim.scenes import RATE
from forewarn.config.actuators import TwistSpec
from forewarn.logic.specification import CompiledSpec
from forewarn.models import CountModel
from forewarn.monitoring.live_session import Watch
from forewarn.monitoring.policy import RESTING, Level, Rules, decide
from monitor_node.actuators.interface import NOTHING, Demand, demand_of
from monitor_node.twist_gate import GateRules, GateState, Velocity, receive, step

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

    def __init__(self) -> None:
        self._planner: Planner | None = None

    def begin(self, planner: Planner) -> None:
        """Forget the last episode."""
        self._planner = planner

    def apply(self, demand: Demand, command: Command, now: float) -> Command:
        """Tell the planner, and leave the command as it is."""
        del now
        assert self._planner is not None
        self._planner.limit = demand.speed_limit if demand.limits else float("inf")
        return command


Means = Gate | SpeedLimit


class Monitored:
    """The monitor, through the library: the `Watch` that the node drives.

    Parameters
    ----------
    compiled, model
        A monitor file whose mode is `act`, and what was learned; without a model it acts once a
        rule is broken.
    means
        How it intervenes.
    """

    def __init__(self, compiled: CompiledSpec, model: CountModel | None, means: Means) -> None:
        self._watch = open_watch(compiled, model)
        self._means = means
        self._publisher = Publisher()
        self.ticks_acting = 0

    def begin(self, planner: Planner) -> None:
        """Forget the last episode."""
        self._watch.withdraw("another episode begins")
        self._watch.restart()
        self._publisher = Publisher()
        self._means.begin(planner)
        self.ticks_acting = 0

    def govern(self, frame: Frame, command: Command) -> Command:
        """Evaluate the tick and apply what is asked for."""
        accept(self._watch, self._publisher.sensed(frame))
        demand = demand_of(self._watch.tick(tick_of(self._watch, frame)).request)
        accept(self._watch, [commanded(frame, command)])
        self.ticks_acting += demand.moves
        return self._means.apply(demand, command, frame.tick / RATE)


@dataclass(frozen=True)
class Rule:
    """A threshold on one signal; -1 as `sign` where small values are the dangerous ones."""

    signal: str
    sign: float
    threshold: float


class Ruled:
    """A rule on one signal of the monitor file, with the timing of the monitor's own alerts."""

    def __init__(
        self, compiled: CompiledSpec, rule: Rule, means: Means, demand: Demand = STOP
    ) -> None:
        self._demand = demand
        self._watch = open_watch(compiled, None)
        self._rule = rule
        self._means = means
        level = rule.threshold
        self._policy = Rules(level, level, level, level, 1, 5, 5, Level.NONE, 0)
        self._state = RESTING
        self._publisher = Publisher()
        self.ticks_acting = 0

    def begin(self, planner: Planner) -> None:
        """Forget the last episode."""
        self._watch.restart()
        self._publisher = Publisher()
        self._state = RESTING
        self._means.begin(planner)
        self.ticks_acting = 0

    def govern(self, frame: Frame, command: Command) -> Command:
        """Read the signal and apply the rule."""
        accept(self._watch, self._publisher.sensed(frame))
        tick = tick_of(self._watch, frame)
        value = signal_value(self._watch, tick, self._rule.signal)
        accept(self._watch, [commanded(frame, command)])
        self._state = decide(self._policy, self._state, tick, self._rule.sign * value)
        acts = self._state.level is Level.ACT
        self.ticks_acting += acts
        demand = self._demand if acts else NOTHING
        return self._means.apply(demand, command, frame.tick / RATE)


def accept(watch: Watch, messages: Sequence[Message] | Any) -> None:
    """Hand over what the monitor listens to."""
    for message in messages:
        if message.topic[0] in watch.spec.topics:
            watch.accept(message.topic[0], message.time_ns, message.data)


def tick_of(watch: Watch, frame: Frame) -> int:
    """Return the monitor's number of a tick."""
    return watch.session.grid.tick_at_or_after(time_of(frame.tick))


def signal_value(watch: Watch, tick: int, name: str) -> float:
    """Return a signal at a tick; NaN where unknown."""
    abstraction = watch.monitor.abstraction
    values, _ = abstraction.complete(watch.session.feed.snapshot(tick).values)
    value = values[abstraction.signals.index(name)]
    return float("nan") if value is None else float(value)
