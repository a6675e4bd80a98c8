"""What stands on top of the report: the sentence, the worst moments, states in words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.assessment.events import Outcome, find_events
from forewarn.assessment.lanes import OFF, ON, UNKNOWN, Lanes
from forewarn.assessment.replay import FLATTERS, RecordedRun, Replaying, replay
from forewarn.assessment.results import scores
from forewarn.assessment.verdict import time_in_alert, verdict
from forewarn.models.counts import CountModel
from forewarn.monitoring.policy import Level
from forewarn.monitoring.step import Monitor
from forewarn.recordings.registry import open_recording
from forewarn.reports.html import render
from forewarn.reports.states import in_words
from forewarn.reports.timeline import used
from forewarn.reports.verdict import verdict_line, worst_moments

Learned = tuple[Monitor, CountModel]


def line(monitor: Monitor, runs: list[RecordedRun]) -> str:
    return verdict_line(verdict(monitor, runs, scores(monitor, runs)))


def sentence(monitor: Monitor, runs: list[RecordedRun]) -> str:
    return re.sub(r"<[^>]+>", "", line(monitor, runs))


def with_levels(run: RecordedRun, level: Callable[[Any], Any]) -> RecordedRun:
    tracks = tuple(replace(track, level=level(track)) for track in run.tracks)
    return replace(run, tracks=tracks, events=tuple(map(find_events, tracks)))


def test_the_sentence_has_the_figures_of_the_replay(
    learned: Learned, replayed: RecordedRun
) -> None:
    monitor = learned[0]
    violations = [v for events in replayed.events for v in events.violations]
    leads = [v.lead for v in violations if v.lead is not None]
    alerts = [a for events in replayed.events for a in events.alerts]
    false = [a for a in alerts if a.outcome is Outcome.FALSE]
    on = np.any([track.level == Level.ACT for track in replayed.tracks], axis=0)
    told = sentence(monitor, [replayed])
    assert f"{len(violations)} violations" in told
    assert f"{min(leads):.2f} s to {max(leads):.2f} s ahead" in told
    assert f"{len(alerts)} alerts" in told
    assert f"{len(false)} of" in told or "none of" in told
    assert time_in_alert(monitor, [replayed]).share == pytest.approx(on.mean())
    assert f"({on.sum() / 10:.1f} s) was spent in alert" in told
    assert told.count(".", 0, -1) == len(re.findall(r"\d\.\d", told)), "one sentence"


def test_figures_on_what_was_learned_from_are_called_flattering(
    learned: Learned, replayed: RecordedRun
) -> None:
    seen, good = replace(replayed, notes=(*replayed.notes, FLATTERS)), 'class="verdict good"'
    plain, told = sentence(learned[0], [replayed]), sentence(learned[0], [seen])
    assert "flatters" not in plain
    assert (
        told == f"{plain[:-1]}; the model was learned from this very recording, which flatters it."
    )
    assert good not in line(learned[0], [seen])
    both = [seen, replayed]
    assert "learned from 1 of the 2 recordings, which flatters it." in sentence(learned[0], both)
    assert "learned from these very recordings," in sentence(learned[0], [seen, seen])


def test_a_monitor_that_never_alarms_has_missed_them_all(
    learned: Learned, replayed: RecordedRun
) -> None:
    quiet = with_levels(replayed, lambda track: np.zeros_like(track.level))
    count = sum(len(events.violations) for events in quiet.events)
    told = sentence(learned[0], [quiet])
    assert f"All {count} violations were missed, there was no alert" in told
    assert "0 % of the time" in told
    assert 'class="verdict bad"' in line(learned[0], [quiet])


def test_a_monitor_that_always_alarms_is_told_so(learned: Learned, replayed: RecordedRun) -> None:
    loud = with_levels(replayed, lambda track: np.full_like(track.level, Level.ACT))
    told = sentence(learned[0], [loud])
    assert "100.0 % of the time" in told
    assert told.endswith("who alarms most of the time foresees everything.")


def test_without_a_violation_it_says_so(
    learned: Learned, tmp_path: Path, drive: Any, record: Any
) -> None:
    with open_recording(record(tmp_path / "calm.mcap", drive(3, 6.0))) as recording:
        run = replay(Replaying(learned[0], keep_signals=True), recording)
    assert sentence(learned[0], [run]).startswith("No violation happened, ")
    assert "No violation happened in 2 recordings" in sentence(learned[0], [run, run])
    none = with_levels(run, lambda track: np.zeros_like(track.level))
    assert "No violation and no false alarm" in worst_moments(learned[0], [none], 1)


def test_the_worst_moments_come_first(learned: Learned, replayed: RecordedRun) -> None:
    text = worst_moments(learned[0], [replayed, replayed], 1)
    rows = re.findall(r"<tr><td.*?</tr>", text, flags=re.DOTALL)
    assert len(rows) == 8
    kinds = [0 if "missed" in row else 1 if "foreseen" in row else 2 for row in rows]
    assert kinds == sorted(kinds)
    leads = [float(found) for row in rows for found in re.findall(r">(\d\.\d\d)</td>", row)]
    assert leads == sorted(leads)
    violations = [v for events in replayed.events for v in events.violations]
    false = [a for e in replayed.events for a in e.alerts if a.outcome is Outcome.FALSE]
    left = 2 * (len(violations) + len(false)) - 8
    assert f"{left} more are in the tables" in text
    # Of the second recording there is no picture that a click could show.
    assert "timeline1" not in text


def test_what_never_held_has_no_lane() -> None:
    lanes = Lanes(("a", "b", "c"), np.array([0, 1]), ((OFF, ON, OFF), (UNKNOWN, OFF, OFF)))
    shown, never = used(lanes)
    assert shown.names == ("a", "b")
    assert shown.table == ((OFF, ON), (UNKNOWN, OFF))
    assert never == ("c",)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("must_brake & gap<2", "must brake, gap < 2"),
        ("ttc<-0.5", "ttc < -0.5"),
        ("(none)", "none of the predicates"),
        ("s0_y enter: x, 'y'", "s0_y enter: x, 'y'"),
        ("near@-1 & far", "near@-1, far"),
    ],
)
def test_states_are_told_in_words(name: str, words: str) -> None:
    assert in_words(name) == words


@given(st.text(max_size=30))
def test_any_name_of_a_state_can_be_told(name: str) -> None:
    assert in_words(name) or not name


def test_on_a_phone_lead_and_state_of_each_event_are_in_view(
    learned: Learned, replayed: RecordedRun, look: Any
) -> None:
    shown = look(render(*learned, [replayed]))
    shown.resize(390, 844)
    shown.settle()
    cells = shown.evaluate(
        "[...document.querySelectorAll('#worst td')].filter(c => c.textContent)"
        ".map(c => [c.dataset.label, c.getBoundingClientRect().right])"
    )
    assert {"state", "time"} <= {label for label, _ in cells}
    assert any(label.startswith("lead") for label, _ in cells)
    assert max(right for _, right in cells) <= 390
