"""Alerts of many thresholds at once against the policy, walked tick by tick."""

from __future__ import annotations

import numpy as np
import pytest
from walked_runs import THRESHOLDS, drawn, walked

from forewarn.assessment import episodes
from forewarn.assessment.episodes import AlertRule, find_episodes, scored_run
from forewarn.assessment.history import Track
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
        runs = [scored_run(track, startup=0.0) for track in tracks]
        found = find_episodes(runs, np.array(THRESHOLDS), rule)
        told = zip(*(column.tolist() for column in found), strict=True)
        assert list(told) == expected
        begun += len(expected)
    assert begun > 500


def test_thresholds_may_be_searched_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    tracks, rule = CASES[5]
    runs = [scored_run(track, startup=0.0) for track in tracks]
    whole = find_episodes(runs, np.linspace(0.05, 0.9, 11), rule)
    monkeypatch.setattr(episodes, "MAX_SEARCHES", 7)
    for one, other in zip(
        whole, find_episodes(runs, np.linspace(0.05, 0.9, 11), rule), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert len(set(whole.threshold.tolist())) > 8
