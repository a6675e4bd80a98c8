"""Alerts of many thresholds at once against the policy, walked tick by tick."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walked_runs import THRESHOLDS, a_trace, a_track, alerts_at, cells, drawn, rules, walked
from written_runs import track as written

from forewarn.assessment import episodes
from forewarn.assessment.episodes import AlertRule, find_episodes, scored_run
from forewarn.assessment.excursions import find_excursions
from forewarn.assessment.history import Track
from forewarn.assessment.reliability import outcomes
from forewarn.assessment.tradeoff import every_threshold
from forewarn.config.sections import PropertySpec
from forewarn.monitoring.policy import Level

CASES = list(drawn(60))


def walks(tracks: list[Track], rule: AlertRule) -> list[tuple[int, int, int, int]]:
    """Return run, threshold, first row and end of each alert, one decision after the other."""
    found = []
    for run, track in enumerate(tracks):
        for at, threshold in enumerate(THRESHOLDS):
            on = walked(track, threshold, rule).level == Level.ACT
            edges = np.flatnonzero(np.diff(on, prepend=False, append=False)).tolist()
            found += [(run, at, *pair) for pair in zip(edges[::2], edges[1::2], strict=True)]
    return found


def test_alerts_are_those_of_the_policy() -> None:
    begun = 0
    for tracks, rule in CASES:
        expected = walks(tracks, rule)
        runs = [scored_run(track) for track in tracks]
        found = find_episodes(runs, np.array(THRESHOLDS), rule)
        told = zip(*(column.tolist() for column in found), strict=True)
        assert list(told) == expected
        begun += len(expected)
    assert begun > 500


def test_alerts_may_be_far_apart_and_long() -> None:
    alerts = [(700, 701), (2300, 2301), (2500, 5800), (5999, 6000)]
    scores = np.zeros(6000)
    for start, end in alerts:
        scores[start:end] = 0.9
    rule = AlertRule(exit=1, hold=0.0)
    found = find_episodes([a_trace(scores.tolist())], np.array([0.5]), rule)
    assert list(zip(found.start.tolist(), found.end.tolist(), strict=True)) == alerts


DANGER, CALM, UNSEEN, ASLEEP = (".", 0.95), (".", 0.1), ("u", 0.0), ("-", 0.0)


@pytest.mark.parametrize("size", range(5))
@pytest.mark.parametrize("ticks", [1, 2, 5])
def test_alerts_of_short_runs_are_those_of_the_policy(size: int, ticks: int) -> None:
    rule = AlertRule(enter=ticks, exit=ticks, hold=0.0, out_of_model_timeout=0.2)
    for run in itertools.product((DANGER, CALM, UNSEEN, ASLEEP), repeat=size):
        track = a_track(list(run))
        found = find_episodes([scored_run(track)], np.array(THRESHOLDS), rule)
        told = zip(*(column.tolist() for column in found), strict=True)
        assert list(told) == walks([track], rule)


def test_without_runs_or_thresholds_there_are_no_alerts() -> None:
    for runs, levels in (([], THRESHOLDS), ([scored_run(CASES[5][0][0])], ())):
        for column in find_episodes(runs, np.array(levels), AlertRule()):
            assert (column.dtype, column.shape) == (np.int64, (0,))


def test_thresholds_may_be_searched_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    tracks, rule = CASES[5]
    runs = [scored_run(track) for track in tracks]
    levels = np.linspace(0.05, 0.9, 11)
    whole = find_episodes(runs, levels, rule)
    monkeypatch.setattr(episodes, "MAX_SEARCHES", 7)
    for one, other in zip(whole, find_episodes(runs, levels, rule), strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(set(whole.threshold.tolist())) > 8


@settings(deadline=None)
@given(cells, rules, st.sampled_from([0.05, 0.3, 0.5, 0.95]))
def test_between_thresholds_that_occur_nothing_changes(
    run: list[tuple[str, float]], rule: AlertRule, threshold: float
) -> None:
    trace = scored_run(a_track(run))
    occurring = every_threshold([trace])
    above = occurring[occurring >= threshold]
    options = {name: getattr(rule, name) for name in AlertRule.__dataclass_fields__}
    options["release"] = None
    on = alerts_at(trace, threshold, **options)
    same = alerts_at(trace, above[0] if above.size else 2.0, **options)
    np.testing.assert_array_equal(on, same)


def test_scores_need_no_unit_interval() -> None:
    """Minus the time to collision, say: known by its worst value being the greatest."""
    trace = a_trace([-math.inf, -9.0, -3.0, -2.0, -1.0, -math.inf, math.inf], (4,))
    options: dict[str, Any] = {"exit": 1, "hold": 0.0}
    assert alerts_at(trace, -3.0, **options).tolist() == [False] * 2 + [True] * 3 + [False, True]
    assert alerts_at(trace, math.inf, **options).tolist() == [False] * 6 + [True]


@pytest.mark.parametrize("level", [math.nan, -math.inf])
def test_levels_are_numbers_above_minus_infinity(level: float) -> None:
    trace, refused = a_trace([0.5]), "must be numbers above minus infinity$"
    with pytest.raises(ValueError, match=f"^thresholds {refused}"):
        alerts_at(trace, level)
    for release in (level, lambda _: level):
        with pytest.raises(ValueError, match=f"^release levels {refused}"):
            alerts_at(trace, 0.0, release=release)


@settings(deadline=None)
@given(st.text("....VvET-?~_", max_size=20), st.sampled_from([None, 1, 3]), st.integers(1, 3))
def test_what_happened_is_told_as_it_was(facts: str, horizon: int | None, clear: int) -> None:
    track = written("." * len(facts), facts, horizon=horizon, clear=clear)
    told = scored_run(track)
    for ours, theirs in zip(find_excursions(told), find_excursions(track), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(outcomes(told), outcomes(track), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_rule_of_a_property_is_that_of_its_section() -> None:
    section = PropertySpec(
        formula="always(not p)", horizon=2.0, thresholds={"warn": 0.2, "act": 0.4, "release": 0.1},
        enter=3, exit=4, hold=0.7, out_of_model="warn", out_of_model_timeout=2.5,
    )  # fmt: skip
    rule = AlertRule.of(section)
    assert replace(rule, release=None) == AlertRule(None, 3, 4, 0.7, "warn", 2.5)
    assert rule.releases(np.array([0.4, 0.8])) == pytest.approx([0.1, 0.2])
