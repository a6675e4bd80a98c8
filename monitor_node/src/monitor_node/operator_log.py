"""What an operator finds in the log: violations, strange runs, what the planner was asked to do."""

from __future__ import annotations

from typing import Any

from forewarn.config.actions import NO_ACTION
from forewarn.monitoring.evaluate import TickResult
from forewarn.monitoring.intervention import Intervention
from forewarn.monitoring.run_anomaly import AnomalyRow, in_words, too_long_in_words


class OperatorLog:
    """Logs a line for every breach and strange run, and when an intervention begins or ends.

    `longest`: moments of the longest run that the promise about anomalies covers, if there is one.
    """

    def __init__(self, logger: Any, longest: int | None = None) -> None:
        self._logger = logger
        self._longest = longest
        self._too_long = -1
        self._asked = NO_ACTION, ""

    def log(self, result: TickResult) -> None:
        """Log what is new at a tick."""
        anomaly = result.verdict.anomaly
        if anomaly is not None:
            self._run(anomaly)
        for prop in result.verdict.properties:
            if prop.counted:
                self._logger.warning(f"{prop.name}: violated")
        if result.request is not None:
            self.request(result.request)

    def _run(self, row: AnomalyRow) -> None:
        if row.since == row.tick:
            self._logger.warning(in_words(row))
        if self._longest and row.transitions > self._longest and row.run != self._too_long:
            self._too_long = row.run
            self._logger.warning(f"run {row.run} has {too_long_in_words(self._longest)}")

    def request(self, request: Intervention) -> None:
        """Log a request, unless it is the one of before."""
        asked = request.action, request.recommendation
        if asked == self._asked:
            return
        self._asked = asked
        if request.action == NO_ACTION:
            self._logger.info(f"intervention {request.id} is over: {request.reason}")
            return
        only = "" if request.active else ", only observed"
        advice = ""
        if request.recommendation_reason:
            advice = f"; the shield: {request.recommendation_reason}"
        self._logger.warning(
            f"intervention {request.id}: {request.action}{only}: {request.reason}{advice}"
        )
