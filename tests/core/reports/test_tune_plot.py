"""What a browser shows of the picture that `forewarn tune --plot` writes."""

from __future__ import annotations

from typing import Any

import pytest

from forewarn.assessment.tradeoff import Point
from forewarn.assessment.tuning import Candidate, Goal, Support, Tuning
from forewarn.config.sections import Thresholds
from forewarn.reports.tuning import tuning_page


def a_candidate(act: float, detected: int, false: int, alert_hours: float) -> Candidate:
    point = Point(
        act, 10, detected, (1.0,) * detected, detected, detected, 0, false, 10.0, alert_hours
    )
    levels = Thresholds(warn=act / 2, act=act, release=act / 4)
    return Candidate(1, levels, point, 1.0, 1.0, 0.2, 1.0, None, True, False, True)


@pytest.fixture(scope="module")
def tunings() -> list[Tuning]:
    some = (a_candidate(0.1, 10, 90, 9.0), a_candidate(0.3, 9, 30, 0.5), a_candidate(0.6, 5, 0, 0))
    support = Support(10, 8, 10, 10.0, 8, 0.1, None, 1.0)
    goal = Goal(3.5, alert_share=0.2)
    return [Tuning(name, goal, support, some, some[1], some[2]) for name in ("red", "crash")]


@pytest.mark.parametrize("width", [1200, 390])
def test_the_picture_explains_itself_and_sends_nothing_away(
    look: Any, tunings: list[Tuning], width: int
) -> None:
    shown = look(tuning_page(tunings), width)
    assert shown.console == []
    assert shown.evaluate("document.body.dataset.problems") == ""
    assert [url for url in shown.requests if not url.startswith(("file:", "data:"))] == []
    names = "[...document.querySelectorAll('.modebar-btn')].map(e => e.dataset.title)"
    buttons = shown.evaluate(names)
    assert "Zoom" in buttons
    assert not [text for text in buttons if "hare" in text or "loud" in text or "plotly" in text]
    told = shown.evaluate("document.querySelector('.lead').textContent")
    assert "the budget of 3.5 an hour" in told
    assert "in alert for more than 20 % of the time" in told
    plots = "[...document.querySelectorAll('.js-plotly-plot')]"
    lines = shown.evaluate(f"{plots}.flatMap(p => p.layout.shapes.map(s => s.x0))")
    assert lines == [3.5] * 4
    names = shown.evaluate(f"{plots}[0].data.map(t => t.name)")
    assert names == ["enter 1, too long in alert", "enter 1", "in the file", "chosen"]
    missed = shown.evaluate(f"{plots}[1].data.map(t => [t.x, t.y])")
    assert missed == [[[9], [0]], [[3, 0], [10, 50]], [[3], [10]], [[0], [50]]]
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
