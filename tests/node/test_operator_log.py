"""What is logged of violations and interventions."""

from __future__ import annotations

import pytest

from forewarn.config.actions import NO_ACTION
from forewarn.monitoring.evaluate import TickResult
from forewarn.monitoring.intervention import Intervention
from forewarn.monitoring.policy import Level
from forewarn.monitoring.verdict import PropertyStatus, PropertyVerdict, Verdict
from forewarn.states.vocabulary import Observation
from monitor_node.operator_log import OperatorLog


class Log:
    """Keeps lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, message: str) -> bool:
        self.lines.append(f"info {message}")
        return True

    def warning(self, message: str) -> bool:
        self.lines.append(f"warning {message}")
        return True


@pytest.fixture
def log() -> Log:
    return Log()


def verdict(name: str, violation: bool, counted: bool = True) -> PropertyVerdict:
    status = PropertyStatus.VIOLATED if violation else PropertyStatus.SATISFIED_SO_FAR
    return PropertyVerdict(
        name, status, violation, violation, 0.5, 0.0, 1.0, True, (0,), Level.NONE, 0,
        counted=violation and counted,
    )  # fmt: skip


def outcome(
    *violated: str, request: Intervention | None = None, counted: bool = True
) -> TickResult:
    properties = tuple(verdict(name, name in violated, counted) for name in ("brake", "red_light"))
    seen = Observation(state=1, known=1, mask=1, open_terminals=0, active=True)
    return TickResult(Verdict(0, 0, seen, properties, (), ()), (), request)


def asked(
    action: str, number: int = 1, reason: str = "why", *, active: bool = True
) -> Intervention:
    return Intervention(action, id=number, active=active, reason=reason)


def test_an_intervention_is_told_when_it_begins_changes_and_ends(log: Log) -> None:
    operator_log = OperatorLog(log)
    for action in ("WARN", "WARN", "COMFORTABLE_STOP", "COMFORTABLE_STOP", NO_ACTION):
        operator_log.log(outcome(request=asked(action)))
    operator_log.log(outcome())
    operator_log.log(outcome(request=asked("WARN", 2, active=False)))
    assert log.lines == [
        "warning intervention 1: WARN: why",
        "warning intervention 1: COMFORTABLE_STOP: why",
        "info intervention 1 is over: why",
        "warning intervention 2: WARN, only observed: why",
    ]


def test_nothing_is_over_that_never_began(log: Log) -> None:
    OperatorLog(log).request(asked(NO_ACTION, 0, "the monitor was activated"))
    assert not log.lines


def test_every_breach_is_told_once(log: Log) -> None:
    operator_log = OperatorLog(log)
    for violated in (["brake"], [], ["brake", "red_light"]):
        operator_log.log(outcome(*violated))
        operator_log.log(outcome(*violated, counted=False))  # the automaton has started again
    assert log.lines == [
        "warning brake: violated",
        "warning brake: violated",
        "warning red_light: violated",
    ]
