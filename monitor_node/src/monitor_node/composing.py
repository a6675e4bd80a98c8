"""One tick of the monitor as messages, ready to be published, and what it rests on."""

from __future__ import annotations

from typing import Any, NamedTuple

from forewarn.config.actions import NO_ACTION
from forewarn.monitoring.evaluate import EvaluatedTick
from forewarn.monitoring.intervention import Intervention, withdraw
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.sources import Lapses, Remedies, account, signal_ages, sources_of
from forewarn.monitoring.verdict import Verdict
from forewarn.signals.clock import Clock
from monitor_node import conversions
from monitor_node.conversions import NO_RATIONALE, Rationale
from monitor_node.inputs import Inputs


class Composed(NamedTuple):
    """A tick that is evaluated and ready to be published.

    The serialized risk, the intervention if it is new, what both ask for, and the serialized
    anomaly of the run, if it is watched.
    """

    tick: int
    evaluated: EvaluatedTick
    risk: bytes
    intervention: Any
    request: Intervention
    anomaly: bytes | None = None


class Composer:
    """Evaluates ticks and puts their messages together; only what is committed is remembered."""

    def __init__(
        self, watch: LiveSession, inputs: Inputs, signature: conversions.Signature
    ) -> None:
        self._watch, self._inputs, self._signature = watch, inputs, signature
        self._risks = conversions.RiskMessages()
        self._lapses, self._remedies = Lapses(), Remedies()
        self.published: Intervention | None = None  # the last request; None before the first

    def compose(self, tick: int) -> Composed:
        """Evaluate a tick and put its messages together."""
        evaluated = self._watch.evaluate(tick)
        result, model = evaluated.result, self._watch.monitor.model
        digest = "" if model is None else model.digest
        time_ns = result.verdict.time_ns
        request = result.request or withdraw(evaluated.memory.advisor, "nothing is asked for")
        signature, intervention = self._signature, None
        if result.request is not None or not request.asks_the_same(self.published):
            rationale = self._rationale(evaluated, request)
            intervention = conversions.intervention(time_ns, request, signature, rationale)
        message = self._risks.fill(time_ns, digest, result.rows, signature, request)
        risk, row, anomaly = conversions.serialized(message), result.verdict.anomaly, None
        if row is not None:
            anomaly = conversions.serialized(conversions.anomaly(time_ns, row))
        return Composed(tick, evaluated, risk, intervention, request, anomaly)

    def _rationale(self, evaluated: EvaluatedTick, request: Intervention) -> Rationale:
        """Return what a request rests on: rule, signals, and the nodes that publish them."""
        if request.action == NO_ACTION:
            return NO_RATIONALE
        monitor, verdict = self._watch.monitor, evaluated.result.verdict
        row = next(row for row in evaluated.result.rows if row.property == request.property)
        nodes = {
            one.topic: tuple(dict.fromkeys(publisher.node for publisher in one.publishers))
            for one in self._inputs.inputs
        }
        since = self._lapses.at(verdict.time_ns, monitor.abstraction.signals, verdict.values)
        ages = self._watch.feed.ages(verdict.tick)
        found = sources_of(monitor, verdict, ages, since, nodes)
        formula = self._watch.spec.properties[row.property].formula
        remedy = self._remedies.of(monitor, verdict, row)
        reason = account(request, formula, found, remedy, monitor.clock)
        return Rationale(formula, found, remedy, reason)

    def after(self, verdict: Verdict) -> None:
        """Remember since when signals are unknown, after a tick."""
        names = self._watch.monitor.abstraction.signals
        self._lapses.since = self._lapses.at(verdict.time_ns, names, verdict.values)

    def restart(self) -> None:
        """Forget it: the clock has jumped."""
        self._lapses = Lapses()


class Seen(NamedTuple):
    """Names, values and times of all that a tick rests on."""

    names: list[str]
    values: list[Any]
    stamps_ns: list[int]


def ages_at(watch: LiveSession, verdict: Verdict) -> list[int | None]:
    """Return how old all signals were at the last tick, in nanoseconds; None if none has come."""
    return signal_ages(watch.monitor.abstraction, watch.feed.ages(verdict.tick))


def seen_at(watch: LiveSession, clock: Clock, verdict: Verdict) -> Seen:
    """Return signals, then predicates and terminal labels, as of the last tick."""
    abstraction, now_ns = watch.monitor.abstraction, verdict.time_ns
    ages, vocabulary = ages_at(watch, verdict), abstraction.vocabulary
    predicates = (f"predicates.{name}" for name in vocabulary.predicates)
    terminals = (f"terminal.{name}" for name in vocabulary.terminals)
    truths = (vocabulary.truth(atom, verdict.observation) for atom in vocabulary.atoms)
    stamps = [now_ns if age is None else clock.since(now_ns, age) for age in ages]
    return Seen(
        [*abstraction.signals, *predicates, *terminals],
        [*verdict.values, *truths],
        stamps + [now_ns] * len(vocabulary.atoms),
    )
