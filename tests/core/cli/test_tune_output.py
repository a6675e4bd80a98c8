"""What stands against a goal is said in figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from forewarn.assessment.tradeoff import Point
from forewarn.assessment.tuning import Candidate, Goal, Support, Tuning
from forewarn.cli.tune_output import conclusions, listed
from forewarn.config.sections import Thresholds

GOAL = Goal(2.0, miss_rate=0.1)
SUPPORT = Support(30, 25, 50, 10.0, 25, 0.088, 22, 1.15)


def a_candidate(act: float, detected: int, false: int, **changes: Any) -> Candidate:
    point = Point(act, 50, detected, (1.0,) * detected, detected, detected, 0, false, 10.0, 0.5)
    made = Candidate(
        enter=1,
        thresholds=Thresholds(warn=act / 2, act=act, release=act / 4),
        point=point,
        lead=1.0 if detected > 25 else 0.0,
        mean_lead=detected / 50,
        miss_bound=0.2,
        false_alarm_bound=false / 10 + 0.3,
        p_value=0.5,
        supported=False,
        proven=False,
        affordable=false <= 20,
    )
    return replace(made, **changes)


def said(*candidates: Candidate, support: Support = SUPPORT) -> list[str]:
    return conclusions(Tuning("crash", GOAL, support, candidates, candidates[0], None))


def test_guarantee_and_budget_may_be_apart() -> None:
    (line,) = said(
        a_candidate(0.1, 50, 90, supported=True, proven=True),
        a_candidate(0.2, 49, 40, supported=True, proven=True),
        a_candidate(0.6, 30, 10),
    )
    assert line == (
        "the guarantee needs act 0.2 or less, which costs 4 false alarms an hour at the best (act "
        "0.2); the budget of 2 an hour needs act 0.6 or more"
    )
    noisy = replace(a_candidate(0.1, 50, 0).point, alert_hours=9.0)
    (line,) = said(
        a_candidate(0.1, 50, 0, supported=True, proven=True, affordable=False, point=noisy),
        a_candidate(0.6, 30, 10),
    )
    assert "act 0.1 or less, which is in alert for more than 10 % of the time; the budget" in line


def test_both_may_be_out_of_reach() -> None:
    lines = said(a_candidate(0.1, 40, 90), a_candidate(0.9, 3, 1))
    assert lines == [
        "even at act 0.1, 10 of 50 violations are missed: with 25 runs with a violation that shows "
        "no miss rate of 10 % at 90 %, but one of 20 %",
        "no threshold that foresees half of the violations keeps to 2 false alarms an hour; the "
        "fewest are 9 an hour, at act 0.1; within the budget 3 of 50 are foreseen",
    ]


def test_too_few_runs_are_named_with_the_number_and_the_time_it_takes() -> None:
    few = replace(SUPPORT, trials=12, least_miss_rate=0.2209, needed_trials=59)
    (line,) = said(a_candidate(0.1, 50, 5), support=few)
    assert line == (
        "0 misses in 12 runs with a violation support a miss rate of 22.1 % at 90 %, not 10 %: 59 "
        "are needed, or about 49 h 10 min like these"
    )


def test_values_of_enter_that_share_a_confidence_are_said_to() -> None:
    """Each of two is tested at 95 %, so that both together are right at 90 %."""
    few = replace(SUPPORT, trials=1, least_miss_rate=0.95, needed_trials=29)
    goal = replace(GOAL, enter=(1, 2))
    many = (a_candidate(0.1, 50, 5),)
    (line,) = conclusions(Tuning("crash", goal, few, many, many[0], None))
    assert line.startswith(
        "0 misses in 1 run with a violation support a miss rate of 95 % at 90 % for 2 values of "
        "`enter` together, not 10 %: 29 are needed"
    )


def test_many_false_alarms_are_written_out() -> None:
    chosen = a_candidate(0.5, 50, 1400, false_alarm_bound=165.83)
    support = replace(SUPPORT, trials=1)
    tuning = Tuning("crash", GOAL, support, (chosen,), chosen, chosen)
    promise, alarms = conclusions(tuning)[1:]
    assert "Learn then Test; 1 run with a violation, exchangeable" in promise
    assert alarms.startswith(
        "false alarms: 140 an hour on these recordings; fewer than 166 an hour at 90 % "
    )
    assert said(a_candidate(0.1, 50, 2345))[1].endswith("the fewest are 234 an hour, at act 0.1")


def test_what_never_foresees_is_said() -> None:
    assert said(a_candidate(0.1, 10, 0)) == ["no threshold foresees half of the violations"]


@pytest.mark.parametrize("count", [5, 200])
def test_a_table_shows_some_of_many_and_what_is_marked(count: int) -> None:
    many = tuple(a_candidate((i + 1) / 1000, 50 - i // 5, 100 - i // 3) for i in range(count))
    tuning = Tuning("crash", GOAL, SUPPORT, many, many[3], many[-2])
    shown = [candidate.thresholds.act for candidate in listed(tuning)]
    assert shown == sorted(shown)
    assert {many[3].thresholds.act, many[-2].thresholds.act} <= set(shown)
    assert len(shown) <= 17
