"""What an intervention rests on, as the node knows it: the core's sources, and who publishes."""

from __future__ import annotations

from forewarn.config.actions import NO_ACTION
from forewarn.monitoring.evaluate import EvaluatedTick
from forewarn.monitoring.intervention import Intervention
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.sources import Lapses, Remedies, account, sources_of
from forewarn.monitoring.verdict import Verdict
from monitor_node.conversions import NO_RATIONALE, Rationale
from monitor_node.inputs import Inputs


class RationaleFinder:
    """Says what interventions rest on.

    Parameters
    ----------
    watch : LiveSession
        The monitor.
    inputs : Inputs
        Its topics.
    """

    def __init__(self, watch: LiveSession, inputs: Inputs) -> None:
        self._watch = watch
        self._inputs = inputs
        self._lapses, self._remedies = Lapses(), Remedies()

    def of(self, evaluated: EvaluatedTick, request: Intervention) -> Rationale:
        """Return what a request rests on."""
        if request.action == NO_ACTION:
            return NO_RATIONALE
        monitor, verdict = self._watch.monitor, evaluated.result.verdict
        row = next(row for row in evaluated.result.rows if row.property == request.property)
        nodes = {
            one.topic: tuple(dict.fromkeys(publisher.node for publisher in one.publishers))
            for one in self._inputs.inputs
        }
        names = monitor.abstraction.signals
        since = self._lapses.at(verdict.time_ns, names, verdict.values)
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
