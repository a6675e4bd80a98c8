"""One tick of the monitor as messages, ready to be published."""

from __future__ import annotations

from typing import Any, NamedTuple

from forewarn.monitoring.evaluate import EvaluatedTick
from forewarn.monitoring.intervention import Intervention, withdraw
from forewarn.monitoring.live_session import LiveSession
from monitor_node import conversions
from monitor_node.inputs import Inputs
from monitor_node.rationale import RationaleFinder


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
    """Evaluates ticks and puts their messages together.

    Parameters
    ----------
    watch : LiveSession
        The monitor and its memory, which changes only when a tick is committed.
    inputs : Inputs
        Its topics.
    signature : Signature
        Who speaks.

    Attributes
    ----------
    grounds : RationaleFinder
        Says what interventions rest on.
    published : Intervention or None
        The last published request; None before the first.
    """

    def __init__(
        self, watch: LiveSession, inputs: Inputs, signature: conversions.Signature
    ) -> None:
        self._watch = watch
        self._signature = signature
        self._risks = conversions.RiskMessages()
        self.grounds = RationaleFinder(watch, inputs)
        self.published: Intervention | None = None

    def compose(self, tick: int) -> Composed:
        """Evaluate a tick and put its messages together."""
        evaluated = self._watch.evaluate(tick)
        result, model = evaluated.result, self._watch.monitor.model
        digest = "" if model is None else model.digest
        time_ns = result.verdict.time_ns
        request = result.request or withdraw(evaluated.memory.advisor, "nothing is asked for")
        signature, intervention = self._signature, None
        if result.request is not None or not request.asks_the_same(self.published):
            grounds = self.grounds.of(evaluated, request)
            intervention = conversions.intervention(time_ns, request, signature, grounds)
        message = self._risks.fill(time_ns, digest, result.rows, signature, request)
        risk, row, anomaly = conversions.serialized(message), result.verdict.anomaly, None
        if row is not None:
            anomaly = conversions.serialized(conversions.anomaly(time_ns, row))
        return Composed(tick, evaluated, risk, intervention, request, anomaly)
