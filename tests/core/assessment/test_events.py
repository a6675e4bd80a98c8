"""Alerts, violations and what belongs to what, on runs that fit on one line."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from written_runs import track

from forewarn.assessment.episodes import ScoredRun
from forewarn.assessment.events import (
    Alert,
    Events,
    Outcome,
    Violation,
    find_events,
    judge,
    score,
)
from forewarn.monitoring.verdict import PropertyStatus


def outcomes(levels: str, facts: str, horizon: int | None = 3) -> list[str]:
    return [a.outcome.value for a in find_events(track(levels, facts, horizon=horizon)).alerts]


def test_lead_time_runs_from_the_start_of_the_alert_that_is_on() -> None:
    events = find_events(track("..AAAA..", ".....V.."))
    (violation,) = events.violations
    assert violation.tick == 105
    assert violation.alert == 102
    assert violation.lead == pytest.approx(0.3)
    assert [a.outcome for a in events.alerts] == [Outcome.FORESAW]
    assert (events.alerts[0].start, events.alerts[0].end) == (102, 105)


def test_an_alert_that_begins_with_the_violation_is_late_and_detects_nothing() -> None:
    events = find_events(track("...AAA..", "...V...."))
    (violation,), (alert,) = events.violations, events.alerts
    assert violation.lead is None
    assert alert.outcome is Outcome.LATE
    assert (violation.outcome, violation.answer, events.early_alerts) == (
        "late",
        alert,
        (),
    )


@given(
    st.text(".A", min_size=1, max_size=40).flatmap(
        lambda levels: st.tuples(
            st.just(levels), st.text(".Vv", min_size=len(levels), max_size=len(levels))
        )
    )
)
def test_each_violation_and_each_other_alert_is_told_once(drawn: tuple[str, str]) -> None:
    levels, facts = drawn
    events = find_events(track(levels, facts))
    began = {100 + i for i in range(len(levels)) if levels[i] == "A" != ("." + levels)[i]}
    for one in events.violations:
        word = "foreseen" if one.lead is not None else "late" if one.tick in began else "missed"
        assert one.outcome == word
    told = [one.answer for one in events.violations if one.answer] + [*events.early_alerts]
    assert sorted(one.start for one in told) == sorted(began)
    assert all(one.answer.outcome is Outcome.LATE for one in events.violations if one.answer)


def test_an_alert_while_the_condition_lasts_is_late_not_false() -> None:
    assert outcomes("....AA..", "...Vvv..") == ["late"]


def test_one_tick_of_lead_is_a_detection() -> None:
    events = find_events(track("..AA....", "...V...."))
    assert events.violations[0].lead == pytest.approx(0.1)


def test_an_alert_that_is_over_when_the_violation_comes_is_near_and_the_violation_missed() -> None:
    events = find_events(track(".A......", "...V...."))
    assert events.violations[0].lead is None
    assert [a.outcome for a in events.alerts] == [Outcome.NEAR]


@pytest.mark.parametrize(("gap", "expected"), [(3, "near"), (4, "false alarm")])
def test_the_horizon_counts_from_the_start_of_the_alert(gap: int, expected: str) -> None:
    facts = "." * (1 + gap) + "V" + "...."
    levels = ".A" + "." * (len(facts) - 2)
    assert outcomes(levels, facts) == [expected]


def test_a_violation_long_after_the_start_still_belongs_to_an_alert_that_is_on() -> None:
    assert outcomes("A" * 10, "........V.") == ["foresaw"]


def test_warnings_are_no_alerts() -> None:
    events = find_events(track("wwww....", "...V...."))
    assert events.alerts == ()
    assert events.violations[0].lead is None


def test_the_lead_of_a_second_violation_begins_when_the_first_has_cleared() -> None:
    events = find_events(track("AAAAAA", "..V..V"))
    assert [v.lead for v in events.violations] == [pytest.approx(0.2), pytest.approx(0.2)]
    assert [v.alert for v in events.violations] == [100, 100]
    assert [a.outcome for a in events.alerts] == [Outcome.FORESAW]


def test_a_lead_is_at_most_the_horizon() -> None:
    run = track("A" * 10, "........V.")
    assert find_events(run).violations[0].lead == pytest.approx(0.3)


def test_flickers_of_one_excursion_do_not_turn_a_miss_into_foresight() -> None:
    # At 10 Hz: broken at 31.0 s, the alert begins at 31.1 s, and four flickers follow within it.
    levels = "." * 311 + "A" * 300
    facts = ["."] * len(levels)
    for second in (31.0, 39.0, 43.0, 51.0, 60.0):
        facts[round(10 * second)] = "V"
    for clear, counted in ((10, 5), (100, 1)):
        events = find_events(track(levels, "".join(facts), horizon=30, clear=clear))
        total = score("rule", [events])
        assert (total.violations, total.detected, total.lead) == (counted, 0, None)
        assert [a.outcome for a in events.alerts] == [Outcome.LATE]


def test_a_breach_that_lasts_counts_once_however_often_the_automaton_starts_again() -> None:
    # An alert 0.9 s before, then the rule is broken for a minute, again every second.
    facts = "." * 30 + "Vvvvvvvvvv" * 60 + "." * 30
    levels = "." * 21 + "A" * (len(facts) - 21)
    events = find_events(track(levels, facts, horizon=30, clear=10))
    assert [v.lead for v in events.violations] == [pytest.approx(0.9)]


@pytest.mark.parametrize(("quiet", "counted"), [(2, 1), (3, 2)])
def test_a_breach_has_cleared_after_so_many_ticks_in_a_row(quiet: int, counted: int) -> None:
    facts = "..V" + "." * quiet + "V.."
    assert len(find_events(track("." * len(facts), facts, clear=3)).violations) == counted


def test_a_new_episode_remembers_no_breach() -> None:
    for facts in (".VE.V", ".T.V.", ".V-V."):
        assert len(find_events(track(".....", facts, clear=10)).violations) == 2


def test_an_alert_within_an_excursion_is_late() -> None:
    events = find_events(track("...A...", ".V..V..", clear=5))
    assert [a.outcome for a in events.alerts] == [Outcome.LATE]
    assert len(events.violations) == 1


def test_a_false_alarm_near_the_end_is_false_and_marked() -> None:
    alerts = find_events(track(".A....A.", "........")).alerts
    assert [a.outcome for a in alerts] == [Outcome.FALSE, Outcome.FALSE]
    assert [a.cut_short for a in alerts] == [False, True]


def test_without_a_horizon_any_later_violation_counts() -> None:
    assert outcomes(".A.........", "..........V", horizon=None) == ["near"]


def test_the_score_gives_all_figures_together() -> None:
    first = find_events(track("..AAA...A.......", "....V..........."))
    second = find_events(track("................", ".......V....----"))
    total = score("rule", [first, second])
    assert (total.violations, total.detected, total.missed) == (2, 1, 1)
    assert (total.alerts, total.right, total.late, total.false_alarms) == (2, 1, 0, 1)
    assert total.recall == 0.5
    assert total.precision == 0.5
    assert total.hours == pytest.approx((16 + 12) / 10 / 3600)
    assert total.false_alarms_per_hour == pytest.approx(3600 / 2.8)
    assert total.lead is not None
    assert total.lead.mean == total.lead.median == total.lead.least == pytest.approx(0.2)


def test_nothing_to_judge_gives_none_not_zero() -> None:
    total = score("rule", [find_events(track("....", "...."))])
    assert total.recall is None
    assert total.precision is None
    assert total.lead is None


def test_an_alert_is_not_interrupted_by_nothing() -> None:
    assert find_events(track("", "")) == ((), (), 0.0, 0.0)


def walked(facts: str, clear: int) -> tuple[list[int], list[bool]]:
    """Walk through a run: when a violation counts, and where an excursion has not cleared."""
    counted, not_cleared = [], []
    excursion, quiet = False, 0
    for i, fact in enumerate(facts):
        if fact in "-E" or (i and facts[i - 1] in "ET" and fact not in "ET"):
            excursion = False
        if fact in "VT":
            if not excursion:
                counted.append(i)
            excursion, quiet = True, 0
        elif fact == "v":
            quiet = 0
        elif fact not in "?~":
            quiet += 1
            if quiet >= clear:
                excursion = False
        not_cleared.append(excursion)
    return counted, not_cleared


def foresight(
    levels: str, facts: str, t: int, not_cleared: list[bool], horizon: int | None
) -> tuple[int, int] | None:
    """Walk back from a violation: where its alert began, and for how long it was a warning."""
    if levels[t] != "A":
        return None
    start = t
    while start > 0 and levels[start - 1] == "A":
        start -= 1
    lead = 0
    while lead < t - start and not not_cleared[t - lead - 1]:
        lead += 1
    if not_cleared[start] or lead == 0:
        return None
    return start, lead if horizon is None else min(lead, horizon)


NAN = math.nan
AT_THE_END_OF_AN_EPISODE = [("A", f, 0.5, True) for f in "..TV"]
IN_DOUBT = [(".", fact, 0.5, True) for fact in "V?.V~.V"]
CERTAIN_ONLY_AT_ITS_END = [("A", ".", r, True) for r in (0.2, 0.3, 0.9)] + [(".", ".", 1.0, True)]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(".wAA"),
            st.sampled_from("......VvET-?~"),
            st.sampled_from([0.0, 0.25, 1.0, NAN]),
            st.booleans(),
        ),
        max_size=24,
    ),
    st.sampled_from([None, 1, 2, 5]),
    st.sampled_from([1, 2, 4]),
)
@example(AT_THE_END_OF_AN_EPISODE, None, 1)
@example(IN_DOUBT, None, 2)
@example(CERTAIN_ONLY_AT_ITS_END, 2, 1)
@example(CERTAIN_ONLY_AT_ITS_END, 3, 1)
@example(CERTAIN_ONLY_AT_ITS_END, 4, 1)
def test_events_follow_the_definition_word_for_word(
    rows: list[tuple[str, str, float, bool]], horizon: int | None, clear: int
) -> None:
    levels, facts = "".join(r[0] for r in rows), "".join(r[1] for r in rows)
    run = track(levels, facts, horizon=horizon, clear=clear, first=0, risk=[r[2] for r in rows])
    events = find_events(replace(run, in_model=np.array([r[3] for r in rows], dtype=bool)))
    counted, not_cleared = walked(facts, clear)
    assert [v.tick for v in events.violations] == counted
    for violation in events.violations:
        found = foresight(levels, facts, violation.tick, not_cleared, horizon)
        assert violation.name == "rule"
        assert violation.alert == (None if found is None else found[0])
        assert violation.lead == (None if found is None else pytest.approx(found[1] / 10))
    for alert in events.alerts:
        reach = math.inf if horizon is None else alert.start + horizon
        hits = [v for v in counted if alert.start < v]
        if not_cleared[alert.start]:
            expected = Outcome.LATE
        elif any(v <= alert.end for v in hits):
            expected = Outcome.FORESAW
        elif any(v <= reach for v in hits):
            expected = Outcome.NEAR
        else:
            expected = Outcome.FALSE
        risks = [risk for _, _, risk, _ in rows[alert.start : alert.end + 1]]
        assert alert.name == "rule"
        assert alert.outcome is expected
        assert alert.peak == pytest.approx(
            max((risk for risk in risks if risk == risk), default=NAN), nan_ok=True
        )
        assert alert.out_of_model is (not rows[alert.start][3])
        assert alert.cut_short is (expected is Outcome.FALSE and reach > len(facts) - 1)
    covered = {t for a in events.alerts for t in range(a.start, a.end + 1)}
    assert covered == {t for t, level in enumerate(levels) if level == "A"}
    watched = [t for t, fact in enumerate(facts) if fact not in "-?"]
    assert events.hours * 36000 == pytest.approx(len(watched))
    assert events.alert_hours * 36000 == pytest.approx(len(covered & set(watched)))


def test_a_score_adds_up_what_happened_in_all_runs() -> None:
    def alert(outcome: Outcome, out_of_model: bool = False, cut_short: bool = False) -> Alert:
        return Alert("rule", 0, 1, outcome, 0.5, out_of_model, cut_short)

    foresaw, near, late, false = Outcome
    kinds = [*[foresaw] * 4, *[near] * 3, *[late] * 2]
    wrong = [alert(false), alert(false, out_of_model=True), alert(false, True, True)]
    known = [alert(kind, out_of_model=True) for kind in kinds]
    leads = [Violation("rule", k, 0, 0.1 * k * k) for k in range(101)]
    missed = [Violation("rule", 200, None, None)]
    runs = [
        Events((*known, wrong[0]), tuple(leads[:40]), 1.0, 0.25),
        Events(tuple(wrong[1:]), tuple(leads[:39:-1] + missed), 2.0, 0.5),
    ]
    total = score("rule", runs)
    assert (total.name, total.violations, total.detected, total.missed) == ("rule", 102, 101, 1)
    assert (total.alerts, total.right, total.late, total.false_alarms) == (12, 7, 2, 3)
    assert (total.out_of_model, total.cut_short) == (2, 1)
    assert (total.hours, total.alert_hours, total.alert_share) == (3.0, 0.75, 0.25)
    assert (total.precision, total.false_alarms_per_hour) == (0.7, 1.0)
    # The k-th percentile of the first 101 squares is k squared.
    assert total.lead == pytest.approx((335.0, 250.0, 0.0, 2.5, 1000.0))


def test_what_people_call_right_is_right_whatever_follows() -> None:
    quiet = np.zeros(10, dtype=bool)
    run = ScoredRun(
        rate=1.0,
        horizon=2,
        ticks=np.arange(10),
        score=np.zeros(10),
        violation=quiet,
        status=np.full(10, PropertyStatus.SATISFIED_SO_FAR, dtype=np.int8),
    )
    start, end = np.array([1, 5]), np.array([3, 8])
    assert judge(run, start, end).near.tolist() == [False, False]
    for row, expected in ((2, [True, False]), (3, [False, False]), (7, [False, True])):
        marked = quiet.copy()
        marked[row] = True
        judged = judge(run._replace(confirmed=marked), start, end)
        assert judged.near.tolist() == expected
