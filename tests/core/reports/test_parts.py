"""Trade-off and coverage on the page, against the code that computes them."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from forewarn.assessment.episodes import AlertRule, scored_run
from forewarn.assessment.replay import RecordedRun
from forewarn.assessment.results import scores
from forewarn.assessment.tradeoff import Point, trade_off
from forewarn.learning.coverage import coverage
from forewarn.models.counts import CountModel
from forewarn.monitoring.step import Monitor
from forewarn.reports.coverage import stays
from forewarn.reports.foresight import ALWAYS, thin


def figure(page: str, name: str) -> Any:
    found = re.search(rf'<script type="application/json" id="{name}-data">(.*?)</script>', page)
    assert found is not None
    return json.loads(found.group(1))


def test_the_present_threshold_is_marked_where_the_replay_has_it(
    page: str, learned: tuple[Monitor, CountModel], replayed: RecordedRun
) -> None:
    marks = [
        [t for t in figure(page, name)["data"] if t["marker"]["symbol"] == "diamond"]
        for name in ("trade-foreseen", "trade-lead")
    ]
    for score, foreseen, lead in zip(scores(learned[0], [replayed]), *marks, strict=True):
        assert foreseen["x"] == lead["x"] == [round(score.false_alarms_per_hour or 0, 4)]
        assert foreseen["y"] == pytest.approx([100 * (score.recall or 0)], abs=1e-3)
        leads = [
            v.lead or 0.0 for e in replayed.events for v in e.violations if v.name == score.name
        ]
        assert lead["y"] == pytest.approx([np.median(leads)])
        assert f"{score.detected} of {score.violations} foreseen" in foreseen["text"][0]


def test_every_dot_is_what_its_threshold_gives(
    page: str, learned: tuple[Monitor, CountModel], replayed: RecordedRun
) -> None:
    (curve,) = [
        t for t in figure(page, "trade-foreseen")["data"] if t["name"].startswith("slow_down (")
    ]
    section = learned[0].spec.properties["slow_down"]
    trace = scored_run(replayed.tracks[0])
    told = [re.match(r"threshold ([\d.e+-]+): (\d+) of (\d+)", text) for text in curve["text"]]
    assert len(told) > 5
    previous = 1.1
    for match, per_hour, share in zip(told, curve["x"], curve["y"], strict=True):
        assert match is not None
        threshold = float(match[1])
        assert threshold <= previous, "from the highest threshold down"
        previous = threshold
        near = np.nanmax(trace.score[trace.score <= threshold + 1e-4 * threshold])
        (point,) = trade_off([trace], [near], rule=AlertRule.of(section))
        assert (point.detected, point.violations) == (int(match[2]), int(match[3]))
        assert share == pytest.approx(100 * point.detected / point.violations, abs=1e-3)
        assert per_hour == pytest.approx(point.false_alarms_per_hour, abs=1e-3)
    shares = [float(re.search(r"in alert ([\d.e+-]+) %", t)[1]) for t in curve["text"]]  # type: ignore[index]
    assert max(shares) <= 100 * ALWAYS


def test_thresholds_that_change_nothing_are_left_out() -> None:
    def point(threshold: float, false_alarms: int) -> Point:
        return Point(threshold, 1, 1, (1.0,), 1, 1, 0, false_alarms, 1.0)

    points = [point(t, n) for t, n in ((0.1, 3), (0.2, 1), (0.3, 1), (0.4, 1), (0.5, 1), (0.6, 0))]
    assert [item.threshold for item in thin(points)] == [0.1, 0.2, 0.5, 0.6]
    assert thin([]) == []


def test_coverage_shows_every_state_with_its_visits(
    page: str, learned: tuple[Monitor, CountModel]
) -> None:
    model = learned[1]
    found = coverage(model)
    data = {item["name"]: item for item in figure(page, "coverage")["data"]}
    live = ~model.terminal
    assert len(data["covered"]["x"]) == int((found.covered & live).sum())
    assert len(data["too few visits"]["x"]) == int((~found.covered & live).sum())
    visits = sorted([*data["covered"]["y"], *data["too few visits"]["y"]], reverse=True)
    assert visits == sorted(np.maximum(model.visits[live], 0.7).tolist(), reverse=True)
    needed = dict(zip(data["needed"]["x"], data["needed"]["y"], strict=True))
    for place, text in zip(
        data["too few visits"]["x"], data["too few visits"]["text"], strict=True
    ):
        assert f"needs {int(needed[place]):,}" in text


def test_the_time_in_each_state_adds_up(
    learned: tuple[Monitor, CountModel], replayed: RecordedRun
) -> None:
    model = learned[1]
    here = stays(model, [replayed, replayed])
    assert sum(here.rows.values()) + here.out_of_model + here.unknown == 2 * 601
    state, codes = replayed.tracks[0].state, replayed.history.known_states
    for row, ticks in here.rows.items():
        position = codes.index(model.states[row])
        assert ticks == 2 * int((state == position).sum())
    assert here.unknown == 2 * int((state < 0).sum())
