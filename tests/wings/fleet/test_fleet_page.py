"""What a browser shows of a fleet's page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forewarn.assessment.replay import RecordedRun
from forewarn.models.counts import CountModel
from forewarn.monitoring.step import Monitor
from forewarn.wings.fleet.page import fleet_page
from forewarn.wings.fleet.summary import (
    GroupSummary,
    RunSummary,
    group_summaries,
    summary,
    worst,
)

NAMES = ("robot=r1", "robot=<b>$2$</b>")


@pytest.fixture(scope="module")
def summaries(learned: tuple[Monitor, CountModel], replayed: RecordedRun) -> list[RunSummary]:
    covered = frozenset(learned[1].states[:2])
    return [summary(replayed, learned[0], name, covered, 20) for name in NAMES]


@pytest.fixture(scope="module")
def groups(learned: tuple[Monitor, CountModel], summaries: list[RunSummary]) -> list[GroupSummary]:
    return group_summaries(summaries, learned[0])


def test_shares_of_the_time_are_those_of_the_states(
    learned: tuple[Monitor, CountModel],
    replayed: RecordedRun,
    summaries: list[RunSummary],
    groups: list[GroupSummary],
) -> None:
    codes = [
        None if at < 0 else replayed.history.known_states[at] for at in replayed.tracks[0].state
    ]
    some = {*learned[1].states[:2]}
    for group in groups:
        assert group.covered == pytest.approx(sum(code in some for code in codes) / len(codes))
        assert group.unknown == pytest.approx(codes.count(None) / len(codes))
    out_of_model = sum(code is not None and code not in learned[1].index for code in codes)
    assert summaries[0].out_of_model == out_of_model


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_is_drawn_and_fits(
    look: Any,
    learned: tuple[Monitor, CountModel],
    summaries: list[RunSummary],
    groups: list[GroupSummary],
    width: int,
    scheme: str,
) -> None:
    monitor = learned[0]
    incidents = worst(summaries, 5)
    run, one = incidents[0]
    clips = {(run.path, one.rule, one.at): [Path("clips/01 a.html"), Path("clips/01 a.mcap")]}
    shown = look(fleet_page(monitor, groups, incidents, clips), width, scheme)
    assert shown.console == []
    assert shown.evaluate("document.body.dataset.problems") == ""
    assert [url for url in shown.requests if not url.startswith(("file:", "data:"))] == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    plots = "[...document.querySelectorAll('.js-plotly-plot')]"
    rules = list(monitor.spec.properties)
    assert shown.evaluate(f"{plots}.length") == 2 * len(rules)
    drawn = shown.evaluate(f"{plots}.map(p => [p.data[0].x, p.data[0].error_x.array])")
    for number, (rates, upper) in enumerate(drawn):
        kind = "near" if number % 2 else "violations"
        found = [getattr(group, kind)[rules[number // 2]] for group in groups]
        assert rates == pytest.approx([rate.rate for rate in found])
        assert upper == pytest.approx([rate.upper - rate.rate for rate in found])
    labels = shown.evaluate(
        f"[...{plots}[0].querySelectorAll('.ytick text')].map(t => t.textContent)"
    )
    assert labels[::-1] == ["all", *sorted(NAMES)]
    links = shown.evaluate("[...document.querySelectorAll('#incidents a')].map(a => a.outerHTML)")
    assert links[:2] == [
        '<a href="clips/01%20a.html">page</a>', '<a href="clips/01%20a.mcap">MCAP</a>'
    ]  # fmt: skip
