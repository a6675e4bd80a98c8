"""The HTML report: self-contained, right in what it shows, and drawn by a real browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forewarn.config import load_spec
from forewarn.learning.pipeline import learn
from forewarn.models import CountModel
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.events import find_events
from forewarn.monitoring.history import History
from forewarn.monitoring.monitor import Monitor
from forewarn.properties.specification import compile_spec
from forewarn.recordings import open_recording
from forewarn.reports.html import render
from forewarn.reports.run import RecordedRun, replay

Drive = Callable[[int, float], list[Any]]


@pytest.fixture(scope="module")
def learned(corridor_run: Any) -> tuple[Monitor, CountModel]:
    compiled = compile_spec(load_spec(corridor_run.config))
    model = learn(corridor_run.recordings, compiled.spec, compiled.abstraction).model
    return build_monitor(compiled, model), model


@pytest.fixture(scope="module")
def replayed(corridor_run: Any, learned: tuple[Monitor, CountModel]) -> RecordedRun:
    with open_recording(corridor_run.held_out) as recording:
        return replay(learned[0], recording, keep_signals=True)


@pytest.fixture(scope="module")
def page(learned: tuple[Monitor, CountModel], replayed: RecordedRun) -> str:
    return render(*learned, [replayed])


def figure(page: str, name: str) -> Any:
    found = re.search(rf'<script type="application/json" id="{name}-data">(.*?)</script>', page)
    assert found is not None
    return json.loads(found.group(1))


def traces(page: str, name: str) -> list[dict[str, Any]]:
    return [t for t in figure(page, "timeline0")["data"] if t.get("name") == name]


def test_nothing_is_fetched_from_anywhere(page: str) -> None:
    without_scripts = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(?!#|data:)', without_scripts)
    assert "@import" not in without_scripts
    assert "url(" not in without_scripts
    assert len(page) < 20_000_000


def test_the_line_of_risk_is_the_risk_of_the_replay(page: str, replayed: RecordedRun) -> None:
    for track, trace in zip(replayed.tracks, traces(page, "risk"), strict=True):
        drawn = [np.nan if y is None else y for y in trace["y"]]
        assert np.allclose(drawn, track.probability, atol=1e-4, equal_nan=True)
        assert trace["x"][10] == pytest.approx(1.0)


def test_violations_and_alerts_stand_where_they_happened(page: str, replayed: RecordedRun) -> None:
    first = int(replayed.tracks[0].ticks[0])
    expected = sorted(
        round((v.tick - first) / 10, 3)
        for events in replayed.events
        for v in events.violations
        if v.lead is not None
    )
    drawn = sorted(x for trace in traces(page, "violation, foreseen") for x in trace["x"])
    assert drawn == expected
    assert len(expected) > 5
    false = sum(a.outcome.value == "false alarm" for e in replayed.events for a in e.alerts)
    assert sum(len(t["x"]) for t in traces(page, "false alarm")) == false


def test_signals_are_drawn_as_they_were(page: str, replayed: RecordedRun) -> None:
    (trace,) = traces(page, "nearest")
    series = next(s for s in replayed.signals if s.name == "nearest")
    drawn = [np.nan if y is None else y for y in trace["y"]]
    assert np.allclose(drawn, series.values, atol=1e-3, equal_nan=True)


def test_the_lanes_show_the_predicates_that_held(page: str, replayed: RecordedRun) -> None:
    (lanes,) = [t for t in figure(page, "timeline0")["data"] if t["type"] == "heatmap"]
    table = np.array(lanes["z"])
    assert table.shape == (5, 601)
    track = replayed.tracks[0]
    for column in (0, 1, 100, 300, 600):
        position = int(track.state[column])
        if position < 0:
            assert (table[:, column] == -1).all()
            continue
        code = replayed.history.known_states[position]
        expected = [0, 0, 0, 0, 2] if code < 0 else [code >> i & 1 for i in range(4)] + [0]
        assert table[:, column].tolist() == expected


def test_text_from_files_cannot_become_markup(
    learned: tuple[Monitor, CountModel], replayed: RecordedRun
) -> None:
    evil = '</script><img src=x onerror="alert(1)">'
    run = replace(replayed, path=Path(f"/tmp/{evil.replace('/', '')}"), notes=(evil,))
    text = render(*learned, [run])
    assert evil not in text
    assert "<img" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert html.escape(evil) in text


def test_a_run_without_model_or_events_has_a_page_too(
    corridor_run: Any, tmp_path: Path, drive: Drive, record: Any
) -> None:
    monitor = build_monitor(compile_spec(load_spec(corridor_run.config)), None)
    with open_recording(record(tmp_path / "calm.mcap", drive(3, 2.0))) as recording:
        run = replay(monitor, recording)
    text = render(monitor, None, [run])
    assert "No alert and no violation." in text
    assert "no model" in text


def test_a_long_recording_gives_a_small_page(
    learned: tuple[Monitor, CountModel], replayed: RecordedRun
) -> None:
    """Two hours: the held-out run, repeated 120 times, column by column."""
    history = History(learned[0].spec)
    tracks = []
    for track in replayed.tracks:
        columns = {
            name: np.tile(getattr(track, name), 120)
            for name in ("state", "status", "violation", "possible", "probability", "lower",
                         "upper", "in_model", "level", "automaton")
        }  # fmt: skip
        ticks = np.arange(len(columns["state"]), dtype=np.int64) + int(track.ticks[0])
        tracks.append(replace(track, ticks=ticks, **columns))
    history.states = replayed.history.states
    history._ticks.extend(tracks[0].ticks.tolist())
    history._states.extend(tracks[0].state.tolist())
    signals = tuple(s._replace(values=np.tile(s.values, 120)) for s in replayed.signals)
    run = replace(
        replayed,
        history=history,
        tracks=tuple(tracks),
        events=tuple(find_events(track) for track in tracks),
        signals=signals,
    )
    assert len(history) == 72_120
    text = render(*learned, [run])
    assert len(text) < 8_000_000
    assert max(max(y or 0 for y in t["y"]) for t in traces(text, "risk")) == 1.0


def test_a_page_about_many_recordings_stays_small(
    learned: tuple[Monitor, CountModel], replayed: RecordedRun
) -> None:
    text = render(*learned, [replayed] * 100)
    assert len(text) < 20_000_000
    assert text.count("<details") == 100
    assert text.count("Not drawn") == 20
    assert figure(text, "timeline79")["data"]


@pytest.fixture
def browse(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that draws a page in headless Chromium and gives the document back."""
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        pytest.skip("no Chromium here: install chromium to see the report drawn")

    def run(page: str) -> str:
        file = tmp_path / "report.html"
        file.write_text(page, encoding="utf-8")
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}",
             "--virtual-time-budget=20000", "--window-size=1250,3000", "--dump-dom", file.as_uri()],
            capture_output=True, text=True, timeout=240, check=True,
        )  # fmt: skip
        return done.stdout

    return run


def test_chromium_draws_every_figure_without_an_error(
    page: str, browse: Callable[[str], str]
) -> None:
    document = browse(page)
    assert 'data-drawn="yes"' in document
    assert 'data-problems=""' in document
    assert document.count('class="main-svg"') >= 3
    for text in ("slow_down", "no_contact", "nearest&lt;0.6", "seconds since the start"):
        assert text in document
    assert document.count("scatterlayer") >= 5
    assert document.count('class="hm"') == 1


def test_chromium_tells_when_a_figure_cannot_be_drawn(
    page: str, browse: Callable[[str], str]
) -> None:
    document = browse(page.replace("Plotly.newPlot(holder", "Plotly.noPlot(holder"))
    assert 'data-drawn="yes"' not in document or 'data-problems=""' not in document
    assert "noPlot" in document.split("data-problems=", 1)[1][:200]
