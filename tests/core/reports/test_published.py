"""Recordings with the topics of a live monitor: what it said is compared with the replay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forewarn.assessment.replay import RecordedRun, Replaying, replay
from forewarn.assessment.results import remarks
from forewarn.config.file import load_spec
from forewarn.logic.specification import compile_spec
from forewarn.messages.definitions import MessageType
from forewarn.models.counts import CountModel
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.record import Names, RecordWriter
from forewarn.monitoring.session_events import Mute, Start, UnknownEvent
from forewarn.monitoring.step import Monitor
from forewarn.recordings.registry import open_recording
from forewarn.reports.html import render

MUTED_AT, FORGED = 20.0, slice(100, 130)


@pytest.fixture
def live(
    risk_type: MessageType,
    risk_array: Callable[..., bytes],
    corridor_run: Any,
    learned: tuple[Monitor, CountModel],
    tmp_path: Path,
) -> Callable[[slice | None], RecordedRun]:
    """Return a function that records a live session and replays the record.

    In it an operator muted a property for nothing, and at some ticks another risk was published.
    """

    def run(forged: slice | None) -> RecordedRun:
        path = tmp_path / f"live_{forged is not None}.mcap"
        compiled = compile_spec(load_spec(corridor_run.config))
        with open_recording(corridor_run.held_out) as recording:
            types = {t: i.message_type for t, i in recording.topics.items() if i.message_type}
            watch = LiveSession(compiled, learned[1], types)
            grid = watch.monitor.clock
            writer = RecordWriter(path, Names.of("/car/monitor"), "", types)
            first = tick = grid.tick_at_or_after(recording.start_ns)
            writer.start(Start("activated", first, recording.start_ns), None)
            for sample in recording.read():
                while grid.time_ns(tick) < sample.time_ns:
                    rows = watch.tick(tick).rows
                    if forged is not None and forged.start <= tick - first < forged.stop:
                        rows = (rows[0]._replace(probability=0.987), *rows[1:])
                    writer.risk(grid.time_ns(tick), risk_array(risk_type, rows, 0))
                    if tick - first == MUTED_AT * 10:
                        writer.event(Mute(("<b>",), 0.0))
                        writer.event(UnknownEvent({"event": "zap", "power": 3}))
                    tick += 1
                watch.accept(sample.topic, sample.time_ns, sample.data)
                writer.message(sample.topic, sample.time_ns, bytes(sample.data))
            writer.close()
        with open_recording(path) as record:
            return replay(Replaying(learned[0], keep_signals=True), record)

    return run


def test_a_record_of_the_node_says_that_the_replay_agrees(
    live: Callable[[slice | None], RecordedRun], learned: tuple[Monitor, CountModel]
) -> None:
    run = live(None)
    assert run.published is not None
    assert run.published.topic == "/car/monitor/output/risk"
    assert run.published.ticks == 600
    for track in run.tracks:
        told = run.published.risks[track.name]
        assert np.array_equal(told[:600], track.probability[:600], equal_nan=True)
    same = "the same risk as published on /car/monitor/output/risk at"
    assert sum(same in line for line in remarks(run)) == 2
    page = render(*learned, [run])
    assert "published live" not in page


def test_commands_of_an_operator_are_among_the_events(
    live: Callable[[slice | None], RecordedRun], learned: tuple[Monitor, CountModel]
) -> None:
    run = live(None)
    assert run.published is not None
    event, unknown = run.published.events
    assert (unknown.kind, unknown.details) == ("zap", "power: 3")
    assert (event.kind, event.details) == ("mute", "properties: ['<b>'], duration: 0.0")
    assert event.seconds == pytest.approx(MUTED_AT, abs=0.11)
    page = render(*learned, [run])
    assert "live: mute" in page
    assert "properties: [&#x27;&lt;b&gt;&#x27;], duration: 0.0" in page


def test_where_the_node_said_something_else_both_are_drawn(
    live: Callable[[slice | None], RecordedRun], learned: tuple[Monitor, CountModel], look: Any
) -> None:
    run = live(FORGED)
    (line,) = [line for line in remarks(run) if "another risk than" in line]
    assert line.startswith(
        "slow_down: another risk than published on /car/monitor/output/risk at 30 "
    )
    shown = look(render(*learned, [run]))
    x, y = shown.evaluate(
        "document.getElementById('timeline0').data.filter(t => t.name === 'published live')"
        ".map(t => [t.x, t.y])[0]"
    )
    drawn = dict(zip(np.rint(np.array(x) * 10).astype(int).tolist(), y, strict=True))
    assert all(drawn[tick] == pytest.approx(0.987) for tick in range(FORGED.start, FORGED.stop))
    assert drawn[90] == pytest.approx(run.tracks[0].probability[90], abs=1e-6)
    assert shown.console == []


def test_a_recording_without_a_monitor_has_nothing_to_compare(replayed: RecordedRun) -> None:
    assert replayed.published is None
