"""What an operator finds in the log: violations, strange runs, what the planner was asked to do."""

from __future__ import annotations

from typing import Any

from forewarn.config.actions import NO_ACTION
from forewarn.monitoring.evaluate import TickResult
from forewarn.monitoring.intervention import Intervention
from forewarn.monitoring.run_anomaly import in_words


class OperatorLog:
    """Logs a line for every breach and strange run, and when an intervention begins or ends."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._asked = NO_ACTION, ""

    def log(self, result: TickResult) -> None:
        """Log what is new at a tick."""
        anomaly = result.verdict.anomaly
        if anomaly is not None and anomaly.since == anomaly.tick:
            self._logger.warning(in_words(anomaly))
        for prop in result.verdict.properties:
            if prop.counted:
                self._logger.warning(f"{prop.name}: violated")
        if result.request is not None:
            self.request(result.request)

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
