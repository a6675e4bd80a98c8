from __future__ import annotations

import math

import pytest

from forewarn.config.sections import PropertySpec
from forewarn.monitoring.intervention import AdvisorState, advise, answers_of
from forewarn.monitoring.policy import RiskMeasure
from forewarn.monitoring.risk_rows import RiskRow
from forewarn.signals.clock_kinds import Grid

GRID = Grid(10.0)
BLANK = RiskRow(
    "", 0, 2, False, 0, False, 0.5, math.nan, math.nan, 0, math.nan, 3.0, 0.3, 0.5,
    RiskMeasure.RISK, 0, False,
    "0", "(none)", (0,), ("idle",), True, (), (), math.nan, (),
)  # fmt: skip


def row(name: str, level: int, tick: int = 0, risk: float = 0.9) -> RiskRow:
    return BLANK._replace(property=name, level=level, tick=tick, probability=risk)


def section(**values: object) -> PropertySpec:
    return PropertySpec.model_validate({"formula": "always(p)", **values})


def test_an_alert_escalates_with_the_time_it_lasts() -> None:
    chain = answers_of(
        section(
            intervention="LIMIT_SPEED",
            speed_limit=5.0,
            escalation=[
                {"after": 1.0, "action": "COMFORTABLE_STOP"},
                {"after": 2.5, "action": "EMERGENCY_STOP"},
            ],
        ),
        GRID,
    )
    state, found = AdvisorState(), []
    for tick in range(100, 130):
        state, request = advise(state, [row("p", 2, tick)], [100], [chain], act=True)
        found.append((request.action, request.speed_limit, request.id))
    assert found[0] == ("LIMIT_SPEED", 5.0, 1)
    assert [action for action, _, _ in found].index("COMFORTABLE_STOP") == 10
    assert [action for action, _, _ in found].index("EMERGENCY_STOP") == 25
    assert {number for _, _, number in found} == {1}
    state, request = advise(state, [row("p", 0, 130)], [130], [chain], act=True)
    assert (request.action, request.active, request.id) == ("NONE", False, 1)
    assert advise(state, [row("p", 0, 131)], [130], [chain], act=True)[1] is None


def test_a_warning_does_not_escalate() -> None:
    chain = answers_of(section(escalation=[{"after": 1.0, "action": "EMERGENCY_STOP"}]), GRID)
    _, request = advise(AdvisorState(), [row("p", 1, 500)], [0], [chain], act=True)
    assert request.action == "WARN"


def test_the_strongest_action_wins_and_all_that_alert_are_named() -> None:
    stop = answers_of(section(intervention="EMERGENCY_STOP"), GRID)
    slow = answers_of(section(intervention="LIMIT_SPEED", speed_limit=3.0), GRID)
    slower = answers_of(section(intervention="LIMIT_SPEED", speed_limit=2.0), GRID)
    rows = [row("slow", 2), row("stop", 2, risk=0.6), row("calm", 0), row("slower", 2)]
    chains = [slow, stop, stop, slower]
    _, request = advise(AdvisorState(), rows, [0] * 4, chains, act=False)
    assert (request.action, request.property, request.risk) == ("EMERGENCY_STOP", "stop", 0.6)
    assert request.properties == ("slow", "stop", "slower")
    assert not request.active
    rows[1] = row("stop", 0)
    _, request = advise(AdvisorState(), rows, [0] * 4, chains, act=True)
    assert (request.action, request.speed_limit, request.active) == ("LIMIT_SPEED", 2.0, True)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"in_model": False, "probability": math.nan}, "never seen"),
        ({"probability": 0.4}, "holds until it may end"),
        (
            {"risk_measure": RiskMeasure.UPPER, "upper": 0.8, "horizon": math.inf},
            "upper bound 0.800 ever",
        ),
    ],
)
def test_the_reason_says_what_decided(changes: dict[str, object], expected: str) -> None:
    alert = row("p", 2)._replace(stale_signals=("x", "y"), stale_ages=(0.5, math.inf), **changes)
    chain = answers_of(section(), GRID)
    _, request = advise(AdvisorState(), [alert], [0], [chain], act=True)
    assert expected in request.reason
    assert "x is 0.5 s old" in request.evidence
    assert "y never arrived" in request.evidence


@pytest.mark.parametrize(
    "steps",
    [
        [{"after": 0.0, "action": "WARN"}],
        [{"after": 2.0, "action": "WARN"}, {"after": 1.0, "action": "PULL_OVER"}],
        [{"after": 1.0, "action": "LIMIT_SPEED"}],
        [{"after": 1.0, "action": "JUMP"}],
    ],
)
def test_an_escalation_that_makes_no_sense_is_refused(steps: list[dict[str, object]]) -> None:
    with pytest.raises(ValueError, match="escalation"):
        section(escalation=steps)
