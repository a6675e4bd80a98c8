"""The HTML report: self-contained, safe, and readable whatever is missing."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forewarn.assessment.events import find_events
from forewarn.assessment.history import History
from forewarn.assessment.lanes import Lanes
from forewarn.assessment.replay import RecordedRun, Replaying, replay
from forewarn.assessment.results import remarks_on
from forewarn.config.file import load_spec
from forewarn.logic.specification import compile_spec
from forewarn.models.counts import CountModel
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.step import Monitor
from forewarn.recordings.registry import open_recording
from forewarn.reports.html import render
from forewarn.reports.packing import unpack

Drive = Callable[[int, float], list[Any]]


def data(page: str, name: str) -> Any:
    found = re.search(rf'<script type="application/json" id="{name}-data">(.*?)</script>', page)
    assert found is not None
    return json.loads(found.group(1))


def row(page: str, key: str, holder: str = "timeline0") -> dict[str, Any]:
    (found,) = [one_row for one_row in data(page, holder)["rows"] if one_row["key"] == key]
    return dict(found)


def visible(page: str) -> str:
    """Return the page's text without scripts and tags."""
    text = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", text))


def test_nothing_is_fetched_from_anywhere(page: str) -> None:
    without_scripts = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(?!#|data:)', without_scripts)
    assert "@import" not in without_scripts
    assert "url(" not in without_scripts
    assert len(page) < 6_000_000


def test_the_table_of_events_leads_to_their_times(page: str, replayed: RecordedRun) -> None:
    first = int(replayed.tracks[0].ticks[0])
    violations = [v for e in replayed.events for v in e.violations]
    for violation in violations:
        at = (violation.tick - first) / 10
        start = at if violation.lead is None else at - violation.lead
        button = f'data-run="timeline0" data-at="{at:.3f}" data-from="{start:.3f}"'
        assert button in page
    events = page[page.index("<div class=events>") :]
    assert events.count('class="jump"') == len(violations) + sum(
        len(e.early_alerts) for e in replayed.events
    )


def test_every_signal_has_a_row_and_those_that_decide_are_shown(page: str) -> None:
    rows = [one_row for one_row in data(page, "timeline0")["rows"] if "signal" in one_row]
    assert {one_row["signal"]: one_row["shown"] for one_row in rows} == {
        "speed": True, "nearest": True, "bumper": True,
    }  # fmt: skip


def test_a_run_without_model_says_why_there_is_no_risk(
    corridor_run: Any, tmp_path: Path, drive: Drive, record: Any
) -> None:
    monitor = build_monitor(compile_spec(load_spec(corridor_run.config)), None)
    with open_recording(record(tmp_path / "calm.mcap", drive(3, 2.0))) as recording:
        run = replay(Replaying(monitor), recording)
    page = render(monitor, None, [run])
    text = visible(page)
    assert "No alert and no violation." in text
    assert "No model: give one with -m" in text
    assert "Without a model there is no risk to judge." in text
    assert "no threshold to choose" in text
    assert row(page, "risk:slow_down")["note"].startswith("without a model there is no risk")
    with open_recording(corridor_run.held_out) as recording:
        run = replay(Replaying(monitor), recording)
    assert any(event.violations for event in run.events)
    page = render(monitor, None, [run])
    assert row(page, "risk:no_contact")["note"].startswith("without a model there is no risk")


def test_without_a_violation_false_alarms_are_shown_against_thresholds(
    learned: tuple[Monitor, CountModel], tmp_path: Path, drive: Drive, record: Any
) -> None:
    with open_recording(record(tmp_path / "calm.mcap", drive(3, 6.0))) as recording:
        run = replay(Replaying(learned[0], keep_signals=True), recording)
    assert not any(event.violations for event in run.events)
    page = render(*learned, [run])
    assert "No violation in these recordings" in visible(page)
    assert data(page, "trade-alarms")["data"]


def test_phases_without_a_risk_say_why(
    learned: tuple[Monitor, CountModel], tmp_path: Path, drive: Drive, record: Any
) -> None:
    """The laser is silent from 4 s to 9 s, and never there in the second recording."""
    messages = drive(99, 12.0)
    start = messages[0].time_ns
    gap = [
        message
        for message in messages
        if message.topic != "/scan" or not 4 < (message.time_ns - start) / 1e9 < 9
    ]
    blind = [message for message in messages if message.topic != "/scan"]
    runs = []
    for name, kept in (("gap.mcap", gap), ("blind.mcap", blind)):
        with open_recording(record(tmp_path / name, kept)) as recording:
            runs.append(
                replay(Replaying(learned[0], keep_signals=True, allow_missing=True), recording)
            )
    page = render(*learned, runs)
    shown = data(page, "timeline0")
    (lane,) = [t for t in row(page, "state")["traces"] if t["draw"] == "lanes"]
    _, position = unpack(shown["packed"]["state"])
    table = np.array(lane["table"])[position.astype(int)]
    # Unknown is marked for the three cuts of the distance alone; the speed is known.
    assert (table[60, 1:4] == 1).all()
    assert table[60, 0] in (0, 2)
    assert (table[30] != 1).all()
    blind_row = row(page, "signal:nearest", "timeline1")
    assert blind_row["note"] == "never had a value here"
    assert not blind_row["shown"]
    assert "nearest on" in visible(page)


def test_states_that_the_model_never_saw_are_marked(
    learned: tuple[Monitor, CountModel], replayed: RecordedRun
) -> None:
    track = replayed.tracks[0]
    out_of_model = np.zeros(601, dtype=bool)
    out_of_model[100:140] = True
    strange = replace(
        track,
        in_model=~out_of_model,
        probability=np.where(out_of_model, np.nan, track.probability),
        lower=np.where(out_of_model, 0.0, track.lower),
        upper=np.where(out_of_model, 1.0, track.upper),
    )
    page = render(*learned, [replace(replayed, tracks=(strange, replayed.tracks[1]))])
    (strip,) = [
        t for t in row(page, "risk:slow_down")["traces"] if "never seen" in t.get("name", "")
    ]
    _, missing = unpack(data(page, "timeline0")["packed"][strip["column"]])
    assert ((missing == strip["equals"]) == out_of_model).all()


HOSTILE = '</script><img src=x onerror="alert(1)">'


def test_text_from_files_cannot_become_markup(
    learned: tuple[Monitor, CountModel], replayed: RecordedRun
) -> None:
    run = replace(replayed, path=Path(f"/tmp/{HOSTILE.replace('/', '')}"), notes=(HOSTILE,))
    text = render(*learned, [run])
    assert HOSTILE not in text
    assert "<img" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert html.escape(HOSTILE) in text


def test_hostile_names_are_shown_as_they_are(
    corridor_run: Any, learned: tuple[Monitor, CountModel], replayed: RecordedRun, look: Any
) -> None:
    """Names that a monitor file cannot have, put where its names go, in a real browser."""
    evil = "<script>window.hacked=1</script><b>&amp; \u2603 'x\"\\ $y$ %{z} \u202e"
    spec = learned[0].spec.model_copy(
        update={
            "properties": {
                evil: learned[0].spec.properties["slow_down"].model_copy(
                    update={"description": evil, "formula": evil}
                ),
                "no_contact": learned[0].spec.properties["no_contact"],
            },
            "signals": {**learned[0].spec.signals, evil: learned[0].spec.signals["speed"]
                        .model_copy(update={"unit": evil})},
        }
    )  # fmt: skip
    compiled = tuple(
        replace(prop, name=evil if prop.name == "slow_down" else prop.name)
        for prop in learned[0].properties
    )
    monitor = replace(learned[0], spec=spec, properties=compiled)
    tracks = (replace(replayed.tracks[0], name=evil), replayed.tracks[1])
    series = (replayed.signals[0]._replace(name=evil),
              replayed.signals[1]._replace(kind="text", texts=(evil, "b")))  # fmt: skip
    events = replayed.events[0]
    events = events._replace(
        alerts=tuple(a._replace(name=evil) for a in events.alerts),
        violations=tuple(v._replace(name=evil) for v in events.violations),
    )
    run = replace(
        replayed, tracks=tracks, signals=series, events=(events, replayed.events[1]),
        notes=(evil,), path=Path("/tmp/" + evil.replace("/", "")),
    )  # fmt: skip
    shown = look(render(monitor, learned[1], [run]))
    shown.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    shown.settle()
    shown.evaluate("document.querySelector('[data-choose=all]').click()")
    shown.settle()
    assert shown.evaluate("window.hacked") is None
    assert shown.evaluate("document.body.dataset.problems") == ""
    assert shown.console == []
    card = shown.evaluate("document.querySelector('.card h3').textContent")
    assert card == evil
    titles = shown.evaluate(
        "[...document.querySelectorAll('#timeline0 .annotation-text')].map(e => e.textContent)"
    )
    assert any(
        "<script>window.hacked=1</script><b>&amp; \u2603 'x\"\\ $y$ %{z}" in t for t in titles
    )
    legends = shown.evaluate(
        "[...document.querySelectorAll('#reliability .legendtext')].map(e => e.textContent)"
    )
    assert evil in legends


def tiled(replayed: RecordedRun, monitor: Monitor, times: int) -> RecordedRun:
    """Return a run repeated, column by column."""
    history = History(monitor)
    tracks = []
    for track in replayed.tracks:
        columns = {
            name: np.tile(getattr(track, name), times)
            for name in ("state", "status", "violation", "possible", "counted", "broken", "figure",
                         "out_of_model", "held", "probability",
                         "lower", "upper", "in_model", "terminal", "ambiguous", "level",
                         "automaton")
        }  # fmt: skip
        ticks = np.arange(len(columns["state"]), dtype=np.int64) + int(track.ticks[0])
        tracks.append(replace(track, ticks=ticks, **columns))
    history.states = replayed.history.states
    history._ticks.extend(tracks[0].ticks.tolist())
    history._states.extend(tracks[0].state.tolist())
    lanes = replayed.lanes
    return replace(
        replayed,
        history=history,
        tracks=tuple(tracks),
        events=tuple(find_events(track) for track in tracks),
        lanes=Lanes(lanes.names, np.tile(lanes.position, times), lanes.table),
        signals=tuple(s._replace(values=np.tile(s.values, times)) for s in replayed.signals),
    )


def test_a_peak_of_one_tick_in_two_hours_is_shown(
    learned: tuple[Monitor, CountModel], replayed: RecordedRun, look: Any
) -> None:
    run = tiled(replayed, learned[0], 120)
    assert len(run.history) == 72_120
    speed = next(s for s in run.signals if s.name == "speed")
    speed.values[41_234] = 9.5
    speed.values[52_345] = np.nan
    text = render(*learned, [run])
    assert len(text) < 8_000_000
    shown = look(text)

    def drawn(name: str) -> tuple[list[float], list[float | None]]:
        found = shown.evaluate(
            f"[...document.getElementById('timeline0').data.filter(t => t.name === {name!r})]"
            ".map(t => [t.x, t.y])[0]"
        )
        return found[0], found[1]

    x, y = drawn("speed")
    assert len(x) < 6000
    assert y[x.index(4123.4)] == 9.5
    assert y[x.index(5234.5)] is None
    assert max(v for v in drawn("risk")[1] if v is not None) == 1.0
    # Zoomed in, every tick is there, exactly.
    holder = "document.getElementById('timeline0')"
    shown.evaluate(f"Plotly.relayout({holder}, {{'xaxis.range': [4100, 4160]}}).then(() => 0)")
    shown.settle()
    x, y = drawn("risk")
    ticks = np.rint(np.array(x) * 10).astype(int)
    assert ticks.tolist() == list(range(ticks[0], ticks[-1] + 1))
    expected = run.tracks[0].probability[ticks]
    assert np.allclose(np.array(y, dtype=float), expected, atol=1e-6, equal_nan=True)
    labels = shown.evaluate(f"{holder}._fullLayout.xaxis.ticktext")
    assert "1:08:30" in labels


def test_a_page_about_many_recordings_stays_small(
    learned: tuple[Monitor, CountModel], replayed: RecordedRun
) -> None:
    text = render(*learned, [replayed] * 100)
    assert len(text) < 20_000_000
    assert text.count("<details open>") == 1
    assert text.count("Not drawn") == 20
    assert data(text, "timeline79")["rows"]


def test_columns_are_thinned_where_they_have_no_room(
    learned: tuple[Monitor, CountModel], replayed: RecordedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forewarn.reports.html.MAX_DATA", 2_500)
    monkeypatch.setattr("forewarn.reports.html.LIMITS", (None, 300, 100))
    packed = data(render(*learned, [replayed]), "timeline0")["packed"]
    rows, values = unpack(packed["risk0"])
    risk = replayed.tracks[0].probability
    assert len(rows) < 120
    assert np.nanmax(values) == pytest.approx(np.nanmax(risk))
    assert np.allclose(values, risk[rows], atol=1e-6, equal_nan=True)
    assert "rows" not in packed["state"], "states and levels have no extremes: none is left out"


def test_what_is_said_of_many_runs_is_said_once(
    learned: tuple[Monitor, CountModel], replayed: RecordedRun
) -> None:
    def runs(number: int, note: str) -> list[RecordedRun]:
        return [
            replace(replayed, path=Path(f"run{i}"), notes=(note.format(i),), published=None)
            for i in range(number)
        ]

    def remarks(number: int, note: str) -> list[str]:
        return [line for line in remarks_on(learned[0], runs(number, note)) if "went" in line]

    for number in (1, 3):
        told = remarks(number, "{} of 9 went")
        assert told == [f"run{i}: {i} of 9 went" for i in range(number)]
    told = remarks(200, "{} of 9 went")
    assert told == ["run0, and 199 more recordings like it: 0 of 9 went"]
    # Names with a digit are other names.
    assert len(remarks(5, "s{} went")) == 5
    page = render(*learned, runs(50, "{} of 9 went"))
    assert page.count("of 9 went") == 1
