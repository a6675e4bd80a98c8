"""Who watches the ego in this process: the monitor itself, or rules on its signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.closed_loop.demands import Demand, Quantity, QuantityRules, demand_of
from evaluation.sumo.messages import Published
from forewarn.monitoring.live_session import TickResult, Watch

Policies = Mapping[str, Mapping[str, object]]


class Library:
    """The monitor through the library: the same `Watch` that the node drives.

    Parameters
    ----------
    watch : Watch
        Of a monitor file whose mode is `act`. Without a model it acts once a rule is broken, and
        knows of nothing before.
    policies : mapping
        Thresholds of each property, as `Watch.set_policy` takes them.
    """

    def __init__(self, watch: Watch, policies: Policies | None = None) -> None:
        self.watch = watch
        self.outcome: TickResult | None = None
        self.policies = policies or {}
        self._topics = frozenset(watch.spec.topics)

    def begin(self) -> None:
        """Forget the last trip."""
        self.watch.withdraw("another trip begins")
        self.watch.restart()
        for name, values in self.policies.items():
            self.watch.set_policy(name, values)

    def accept(self, message: Published) -> None:
        """Take a message that has arrived."""
        if message.topic.name in self._topics:
            self.watch.accept(message.topic.name, message.arrival_ns, message.data)

    def tick(self, number: int) -> Demand:
        """Decide."""
        self.outcome = self.watch.tick(number)
        return demand_of(self.outcome.request)


class OnSignals:
    """Rules without a model, on the signals of the monitor file.

    Parameters
    ----------
    watch : Watch
        Reads the messages.
    quantities : sequence of Quantity
        The rules.
    """

    def __init__(self, watch: Watch, quantities: Sequence[Quantity]) -> None:
        self._library = Library(watch)
        self._quantities = quantities
        self._rules = QuantityRules(quantities)

    def begin(self) -> None:
        """Forget the last trip."""
        self._library.begin()
        self._rules = QuantityRules(self._quantities)

    def accept(self, message: Published) -> None:
        """Take a message that has arrived."""
        self._library.accept(message)

    def tick(self, number: int) -> Demand:
        """Decide."""
        session = self._library.watch.session
        signals = session.monitor.abstraction
        values, _ = signals.complete(session.feed.snapshot(number).values)
        return self._rules.decide(number, dict(zip(signals.signals, values, strict=True)))
