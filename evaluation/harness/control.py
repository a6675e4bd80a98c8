"""Who watches a robot in this process: the monitor itself, or rules on its signals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from evaluation.harness.messages import Message
from forewarn.config.actions import SEVERITY
from forewarn.config.file import MonitorSpec
from forewarn.logic.specification import CompiledSpec
from forewarn.messages.definitions import MessageType, installed_message_type
from forewarn.models.counts import CountModel
from forewarn.monitoring.intervention import NOTHING, Intervention
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.policy import RESTING, Level, PolicyState, Rules, decide

Policies = Mapping[str, Mapping[str, object]]
Values = Mapping[str, Any]


def installed_types(spec: MonitorSpec) -> dict[str, MessageType]:
    """Return the types of a monitor file's topics, as they are installed here."""
    return {topic: installed_message_type(kind) for topic, kind in spec.topics.items()}


def moving(request: Intervention | None) -> Intervention:
    """Return what an intervention demands; one that asks for words alone demands nothing."""
    return request.demanded if request is not None and request.demanded.moves else NOTHING


class Library:
    """The monitor through the library: the same `LiveSession` that the node drives.

    The mode of the monitor file is `act`. Without a model it acts once a rule is broken, and knows
    of nothing before. Policies are what `LiveSession.set_policy` takes for each property.
    """

    def __init__(
        self, compiled: CompiledSpec, model: CountModel | None, policies: Policies | None = None
    ) -> None:
        types = installed_types(compiled.spec)
        self.watch, self._topics = LiveSession(compiled, model, types), types.keys()
        self.policies = policies or {}

    def begin(self) -> None:
        """Forget the last episode."""
        self.watch.end()
        for name, values in self.policies.items():
            self.watch.set_policy(name, values)

    def accept(self, message: Message) -> None:
        """Take a message that has arrived."""
        if message.topic.name in self._topics:
            self.watch.accept(message.topic.name, message.time_ns, message.data)

    def tick(self, number: int) -> Intervention:
        """Decide."""
        return moving(self.watch.tick(number).request)


class Quantity(NamedTuple):
    """A rule on one number, the greater the more dangerous, with the monitor's own policy."""

    name: str
    score: Callable[[Values], float]
    act: float
    release: float
    demand: Intervention
    hold: int = 5  # ticks that an alert lasts at the least
    most: float = math.inf  # ticks after which nothing is demanded, though it lasts


class QuantityRules:
    """Demands the strongest action of all quantities that are too great.

    They alert like the monitor's properties: at once, and until they were below `release` for five
    ticks and their alert has lasted for `hold`.
    """

    def __init__(self, quantities: Sequence[Quantity]) -> None:
        self._quantities = tuple(quantities)
        self._rules = [
            Rules(q.act, q.act, q.release, 1, 5, q.hold, Level.NONE, 0) for q in quantities
        ]
        self._states: list[PolicyState] = [RESTING] * len(self._quantities)

    def decide(self, tick: int, values: Values) -> Intervention:
        """Return what is demanded at a tick with these signals; None where they are unknown."""
        demanded = NOTHING
        for index, quantity in enumerate(self._quantities):
            state = decide(self._rules[index], self._states[index], tick, quantity.score(values))
            self._states[index] = state
            acts = state.level is Level.ACT and tick - state.since < quantity.most
            mine = SEVERITY.index(quantity.demand.action)
            if acts and mine > SEVERITY.index(demanded.action):
                demanded = quantity.demand
        return demanded


class OnSignals(Library):
    """Rules without a model, on the signals of the monitor file."""

    def __init__(self, compiled: CompiledSpec, quantities: Sequence[Quantity]) -> None:
        super().__init__(compiled, None)
        self._quantities = quantities

    def begin(self) -> None:
        """Forget the last episode."""
        super().begin()
        self._rules = QuantityRules(self._quantities)

    def tick(self, number: int) -> Intervention:
        """Decide."""
        session = self.watch
        signals = session.monitor.abstraction
        values, *_ = signals.complete(session.feed.snapshot(number).values)
        return self._rules.decide(number, dict(zip(signals.signals, values, strict=True)))


def number(values: Values, name: str, otherwise: float = math.nan) -> float:
    """Return a signal as a number; `otherwise` where it is unknown."""
    value = values.get(name)
    return float(value) if isinstance(value, (bool, int, float)) else otherwise
