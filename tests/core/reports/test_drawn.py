"""What a real browser shows of the report: read back out of plotly, compared with the replay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forewarn.assessment.lanes import TERMINAL, requests
from forewarn.assessment.replay import RecordedRun
from forewarn.monitoring.policy import Level
from forewarn.monitoring.step import Monitor
from forewarn.reports.html import render
from forewarn.reports.palette import DARK

Look = Callable[..., Any]
RATE = 10.0


@pytest.fixture(scope="module")
def file(page: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("page") / "report.html"
    found.write_text(page, encoding="utf-8")
    return found


@pytest.fixture
def browser_page(browser: Any, file: Path) -> Any:
    """Return the page of the corridor as it is when opened; loaded once if nobody left it."""
    if browser.evaluate("location.href") != file.as_uri():
        browser.console.clear()
        browser.requests.clear()
        browser.resize(1400, 1000)
        browser.open(file)
    return browser


def traces(shown: Any, name: str, holder: str = "timeline0") -> list[dict[str, Any]]:
    """Return what plotly draws under a name, one for each row of the picture."""
    text = (
        f"document.getElementById('{holder}').data.filter(t => t.name === {name!r})"
        ".map(t => ({x: t.x, y: t.y, z: t.z, text: t.text, yaxis: t.yaxis}))"
    )
    found: list[dict[str, Any]] = shown.evaluate(text)
    return found


def numbers(values: list[float | None]) -> np.ndarray:
    return np.array([np.nan if v is None else v for v in values])


def test_nothing_fails_and_nothing_is_fetched(browser_page: Any) -> None:
    assert browser_page.console == []
    assert browser_page.evaluate("document.body.dataset.problems") == ""
    outside = [u for u in browser_page.requests if not u.startswith(("file:", "data:", "blob:"))]
    assert outside == []
    assert sum(url.startswith("file:") for url in browser_page.requests) == 1
    drawn = browser_page.evaluate("document.querySelectorAll('.plot .main-svg').length")
    assert drawn >= 5
    buttons = browser_page.evaluate(
        "[...document.querySelectorAll('.modebar-btn')].map(e => e.dataset.title)"
    )
    assert "Download plot as a PNG" in buttons
    # plotly has a button that uploads a chart to somebody's server.
    assert not [text for text in buttons if "hare" in text or "loud" in text]


def test_only_what_occurs_is_explained(browser_page: Any, replayed: RecordedRun) -> None:
    key = browser_page.evaluate("document.querySelector('.key').innerText")
    assert "lead time" in key
    assert "its bounds" in key
    assert ("unknown" in key) == bool((replayed.tracks[0].state < 0).any())
    assert "not monitored" not in key
    assert "published live" not in key


def test_the_page_may_not_fetch_even_if_it_wanted_to(browser_page: Any) -> None:
    outcome = browser_page.evaluate(
        "fetch('http://127.0.0.1:9/').then(() => 'fetched', error => 'refused')"
    )
    assert outcome == "refused"
    assert any("Content Security Policy" in line for line in browser_page.console)
    browser_page.console.clear()


def test_the_line_of_risk_is_the_risk_of_the_replay(
    browser_page: Any, replayed: RecordedRun
) -> None:
    found = traces(browser_page, "risk")
    assert len(found) == len(replayed.tracks) == 2
    for track, drawn in zip(replayed.tracks, found, strict=True):
        assert numbers(drawn["x"]) == pytest.approx(np.arange(601) / RATE)
        assert np.allclose(numbers(drawn["y"]), track.probability, atol=1e-6, equal_nan=True)
    assert np.nanmax(replayed.tracks[0].probability) > 0.4


def test_the_bounds_enclose_what_they_enclosed(browser_page: Any, replayed: RecordedRun) -> None:
    for track, drawn in zip(replayed.tracks, traces(browser_page, "bounds"), strict=True):
        x, y = numbers(drawn["x"]), numbers(drawn["y"])
        for tick in (0, 57, 300, 412):
            inside = y[np.isclose(x, tick / RATE)]
            assert inside.min() == pytest.approx(
                min(track.lower[tick], track.lower[max(tick - 1, 0)]), abs=1e-4
            )
            assert inside.max() == pytest.approx(
                max(track.upper[tick], track.upper[max(tick - 1, 0)]), abs=1e-4
            )


def test_alerts_are_shaded_for_as_long_as_they_lasted(
    browser_page: Any, replayed: RecordedRun
) -> None:
    shaded = traces(browser_page, "alert")
    for track, fill in zip(replayed.tracks, shaded[::2], strict=False):
        assert fill["y"]
        x = numbers(fill["x"]).reshape(-1, 5)
        covered = np.zeros(601, dtype=bool)
        for left, _, right, _, gap in x:
            assert np.isnan(gap)
            covered[round(left * RATE) : round(right * RATE)] = True
        assert (covered == (track.level == Level.ACT)).all()


def test_violations_and_alerts_stand_where_they_happened(
    browser_page: Any, replayed: RecordedRun
) -> None:
    first = int(replayed.tracks[0].ticks[0])
    events = replayed.events
    for name, ticks in (
        ("violation, foreseen",
         [v.tick for e in events for v in e.violations if v.lead is not None]),
        ("violation, missed", [v.tick for e in events for v in e.violations if v.lead is None]),
        ("false alarm",
         [a.start for e in events for a in e.alerts if a.outcome.value == "false alarm"]),
    ):  # fmt: skip
        drawn = sorted(x for trace in traces(browser_page, name) for x in trace["x"])
        assert drawn == pytest.approx(sorted((tick - first) / RATE for tick in ticks)), name
    leads = [v.lead for e in events for v in e.violations if v.lead is not None]
    told = [t for trace in traces(browser_page, "violation, foreseen") for t in trace["text"]]
    assert told == [f"violation, {lead:.2f} s lead" for lead in leads]
    assert len(leads) > 5


def test_the_lanes_show_what_held(browser_page: Any, replayed: RecordedRun) -> None:
    (drawn,) = traces(browser_page, "state")
    shown = np.array(drawn["z"])
    assert shown.shape == (5, 601)
    assert numbers(drawn["x"]) == pytest.approx(np.arange(602) / RATE)
    track = replayed.tracks[0]
    for tick in range(601):
        position = int(track.state[tick])
        if position >= 0:
            code = replayed.history.known_states[position]
            held = [2 * (code >> i & 1) for i in range(4)] + [0]
            assert shown[:, tick].tolist() == ([0, 0, 0, 0, TERMINAL] if code < 0 else held)
    unknown = track.state < 0
    assert (shown[:, unknown] == 1).any(axis=0).all()


def test_the_interventions_are_those_that_were_asked_for(
    browser_page: Any, learned: tuple[Monitor, Any], replayed: RecordedRun
) -> None:
    (drawn,) = traces(browser_page, "asked")
    asked = requests(learned[0].spec, replayed.tracks)
    assert asked.names == ("warning only", "COMFORTABLE_STOP")
    level = np.max([track.level for track in replayed.tracks], axis=0)
    for lane, each in zip(np.array(drawn["z"]), (Level.WARN, Level.ACT), strict=True):
        assert (lane == np.where(level == each, 2, 0)).all()


def test_signals_are_drawn_as_they_were(browser_page: Any, replayed: RecordedRun) -> None:
    for series in replayed.signals:
        (drawn,) = traces(browser_page, series.name)
        assert np.allclose(numbers(drawn["y"]), series.values, rtol=2e-5, equal_nan=True)


def test_all_rows_have_one_time_axis(browser_page: Any) -> None:
    holder = "document.getElementById('timeline0')"
    axes = browser_page.evaluate(f"[...new Set({holder}.data.map(t => t.xaxis))].sort()")
    assert axes == ["x", "x2"]
    assert browser_page.evaluate(f"{holder}.layout.xaxis2.matches") == "x"
    ranges = browser_page.evaluate(
        f"[{holder}._fullLayout.xaxis.range, {holder}._fullLayout.xaxis2.range]"
    )
    assert ranges == [[0, 60], [0, 60]]


def test_zooming_moves_every_row_and_double_click_shows_all(browser_page: Any) -> None:
    shown = browser_page
    holder = "document.getElementById('timeline0')"
    shown.evaluate(f"Plotly.relayout({holder}, {{'xaxis.range': [20, 30]}}).then(() => 0)")
    shown.settle()
    for name in ("risk", "nearest", "speed"):
        x = numbers(traces(shown, name)[0]["x"])
        assert x[0] == pytest.approx(19.9, abs=0.2)
        assert x[-1] == pytest.approx(30.1, abs=0.2)
    assert shown.evaluate(f"{holder}._fullLayout.xaxis2.range") == [20, 30]
    shown.evaluate(f"Plotly.relayout({holder}, {{'xaxis.autorange': true}}).then(() => 0)")
    shown.settle()
    assert len(traces(shown, "risk")[0]["x"]) == 601
    assert shown.console == []


def test_signals_can_be_chosen(browser_page: Any) -> None:
    shown = browser_page
    names = "document.getElementById('timeline0').data.map(t => t.name)"
    assert "speed" in shown.evaluate(names)
    box = "document.querySelector('.chips input[value=speed]')"
    height = "document.getElementById('timeline0').offsetHeight"
    before = shown.evaluate(height)
    shown.evaluate(f"{box}.click()")
    shown.settle()
    assert "speed" not in shown.evaluate(names)
    assert "nearest" in shown.evaluate(names)
    assert shown.evaluate(height) < before - 80
    shown.evaluate("document.querySelector('[data-choose=none]').click()")
    shown.settle()
    assert "nearest" not in shown.evaluate(names)
    shown.evaluate("document.querySelector('[data-choose=all]').click()")
    shown.settle()
    assert {"speed", "nearest", "bumper"} <= set(shown.evaluate(names))
    assert shown.evaluate(height) == before
    assert shown.console == []


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_sticks_out_of_the_page(look: Look, page: str, width: int) -> None:
    shown = look(page)  # of its own: others look at a page of the usual width
    shown.resize(width, 1000)
    shown.wait(f"document.getElementById('timeline0')._fullLayout.width < {width}")
    shown.settle()
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    wide = shown.evaluate(
        "[...document.querySelectorAll('section, .plot, .card, .chips, h2, p')]"
        ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.className || e.tagName)"
    )
    assert wide == []
    assert shown.console == []


def test_in_the_dark_every_colour_has_its_counterpart(look: Look, page: str) -> None:
    shown = look(page, scheme="dark")
    try:
        found = shown.evaluate(
            "document.getElementById('timeline0').data.filter(t => t.name === 'state')[0]"
            ".colorscale.map(each => each[1])"
        )
        ink = shown.evaluate("document.getElementById('timeline0').layout.font.color")
    finally:
        shown.prefer("light")
    assert found == [DARK[n] for n in ("lane", "unknown", "holds", "violation") for _ in "ab"]
    assert ink == DARK["ink"]
    assert shown.console == []


def test_a_click_on_an_event_shows_its_time(
    look: Look, page: str, replayed: RecordedRun, learned: tuple[Any, Any]
) -> None:
    shown = look(render(*learned, [replayed, replayed]))
    first = int(replayed.tracks[0].ticks[0])
    violation = replayed.events[1].violations[-1]
    at = (violation.tick - first) / RATE
    button = f"document.querySelector('button.jump[data-run=timeline1][data-at=\"{at:.3f}\"]')"
    assert shown.evaluate("document.getElementById('timeline1').layout === undefined")
    shown.evaluate(f"{button}.click()")
    shown.settle()
    layout = "document.getElementById('timeline1').layout"
    low, high = shown.evaluate(f"{layout}.xaxis.range")
    assert max(0, at - 12) <= low < at < high <= at + 6
    lines = shown.evaluate(f"{layout}.shapes.map(s => s.x0)")
    assert lines == pytest.approx([at])
    assert shown.evaluate(f"{button}.closest('tr').className") == "here"
    assert shown.evaluate(f"{button}.closest('details').open")
    assert shown.console == []


def test_a_browser_that_cannot_draw_says_so(look: Look, page: str) -> None:
    shown = look(page.replace("Plotly.newPlot(holder", "Plotly.noPlot(holder"))
    assert "noPlot" in shown.evaluate("document.body.dataset.problems")


def press(shown: Any, key: str) -> None:
    shown.evaluate(f"document.dispatchEvent(new KeyboardEvent('keydown', {{key: {key!r}}})), 0")
    shown.settle()


def test_keys_move_a_cursor_through_all_rows(look: Look, page: str, replayed: RecordedRun) -> None:
    shown = look(page)
    holder = "document.getElementById('timeline0')"
    readout = "document.getElementById('timeline0-readout')"
    assert shown.evaluate(f"{readout}.hidden")
    assert all(key in shown.evaluate("document.querySelector('.figure').innerText") for key in "np")
    track = replayed.tracks[0]
    first = int(track.ticks[0])
    ticks = {e.start for events in replayed.events for e in events.alerts}
    ticks |= {v.tick for events in replayed.events for v in events.violations}
    times = sorted((tick - first) / RATE for tick in ticks)
    for at in times[:3]:
        press(shown, "n")
        assert shown.evaluate(f"{holder}.run.at") == pytest.approx(at)
    press(shown, "p")
    assert shown.evaluate(f"{holder}.run.at") == pytest.approx(times[1])
    press(shown, "ArrowRight")
    press(shown, "ArrowRight")
    press(shown, "ArrowLeft")
    at = times[1] + 1 / RATE
    lines = shown.evaluate(f"{holder}.layout.shapes.map(s => [s.x0, s.y0, s.y1, s.yref])")
    assert lines == [[pytest.approx(at), 0, 1, "paper"]]
    told = shown.evaluate(f"{readout}.innerText")
    tick = round(at * RATE)
    assert f"{at:.2f} s" in told
    for each in replayed.tracks:
        risk = each.probability[tick]
        assert f"{each.name} {'no risk' if np.isnan(risk) else format(risk, '.3f')}" in told
    for series in replayed.signals:
        assert series.name in told
    press(shown, "Escape")
    assert shown.evaluate(f"{readout}.hidden")
    assert shown.evaluate(f"{holder}.layout.shapes.length") == 0
    assert shown.console == []


def test_the_cursor_stays_in_the_run_and_in_view(look: Look, page: str) -> None:
    shown = look(page)
    holder = "document.getElementById('timeline0')"
    shown.evaluate(f"Plotly.relayout({holder}, {{'xaxis.range': [20, 21]}}).then(() => 0)")
    shown.settle()
    press(shown, "ArrowRight")  # the first puts it where the picture begins
    assert shown.evaluate(f"{holder}.run.at") == pytest.approx(20)
    press(shown, "ArrowLeft")
    low, high = shown.evaluate(f"{holder}._fullLayout.xaxis.range")
    assert low < 19.9 < high
    assert high - low == pytest.approx(1)
    shown.evaluate("document.querySelector('[data-whole]').click()")
    shown.settle()
    press(shown, "ArrowLeft")
    press(shown, "ArrowLeft")
    press(shown, "ArrowLeft")
    assert shown.evaluate(f"{holder}.run.at") == 0
    assert shown.console == []


def test_a_click_in_the_picture_puts_the_cursor_there(look: Look, page: str) -> None:
    shown = look(page)
    holder = "document.getElementById('timeline0')"
    shown.evaluate(f"{holder}.scrollIntoView({{behavior: 'instant'}})")
    x, y = shown.evaluate(
        f"(() => {{const box = {holder}.getBoundingClientRect(), a = {holder}._fullLayout.xaxis;"
        "return [box.left + a._offset + a.d2p(30), box.top + 120];})()"
    )
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        press_of = {"button": "left", "clickCount": 1} if kind != "mouseMoved" else {}
        shown.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **press_of)
    shown.wait(f"{holder}.run.at !== null")
    shown.settle()
    assert shown.evaluate(f"{holder}.run.at") == pytest.approx(30, abs=0.15)
    assert shown.console == []


def test_very_large_screens_have_larger_letters_and_pictures(look: Look, page: str) -> None:
    sizes = []
    for width in (1400, 3840):
        shown = look(page, width)
        sizes.append(
            shown.evaluate(
                "[document.getElementById('timeline0').layout.font.size, "
                "document.getElementById('timeline0').offsetHeight,"
                "parseFloat(getComputedStyle(document.body).fontSize)]"
            )
        )
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
    by = 23 / 15
    assert sizes[1] == pytest.approx([by * each for each in sizes[0]], abs=1)
