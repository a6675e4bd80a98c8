"""What a browser shows of the picture that `forewarn tune --plot` writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forewarn.assessment.tradeoff import Point
from forewarn.assessment.tuning import Candidate, Goal, Support, Tuning
from forewarn.cli.tune_plot import render
from forewarn.config.sections import Thresholds


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


@pytest.mark.parametrize("width", [1200, 500])
def test_the_picture_explains_itself_and_sends_nothing_away(
    browser: Any, tmp_path: Path, tunings: list[Tuning], width: int
) -> None:
    file = tmp_path / "trade_off.html"
    file.write_text(render(tunings), encoding="utf-8")
    browser.console.clear()
    browser.requests.clear()
    browser.resize(width, 1000)
    browser.call("Page.navigate", url=file.as_uri())
    browser.wait("document.querySelectorAll('.modebar-btn').length > 0")
    browser.wait("document.querySelector('.gtitle') !== null")
    assert browser.console == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []
    names = "[...document.querySelectorAll('.modebar-btn')].map(e => e.dataset.title)"
    buttons = browser.evaluate(names)
    assert "Zoom" in buttons
    assert not [text for text in buttons if "hare" in text or "loud" in text or "plotly" in text]
    title = browser.evaluate("document.querySelector('.gtitle').textContent")
    assert "the budget of 3.5 an hour" in title
    assert "in alert for more than 20 % of the time" in title
    lines = browser.evaluate(
        "document.querySelector('.js-plotly-plot').layout.shapes.map(s => s.x0)"
    )
    assert lines == [3.5] * 4
    boxes = browser.evaluate(
        "[document.querySelector('.gtitle'), ...document.querySelectorAll('.annotation-text')]"
        ".map(e => e.getBoundingClientRect()).map(b => [b.left, b.right, b.top, b.bottom])"
    )
    assert boxes[0][0] >= 0 and boxes[0][1] <= width
    assert boxes[0][3] <= min(top for _, _, top, _ in boxes[1:])
