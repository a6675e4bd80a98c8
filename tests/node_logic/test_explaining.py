"""How old the service `explain` says that signals are, from sessions by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from small_world import DISTANCE, MONITOR, ODOMETRY, TYPES, serialized

from forewarn.config.file import load_spec
from forewarn.logic.specification import compile_spec
from forewarn.messages.definitions import installed_message_type
from forewarn.monitoring.live_session import LiveSession
from monitor_node.composing import ages_at, seen_at
from monitor_node.explaining import explain

START_NS = 1_700_000_000 * 10**9


def watching(folder: Path, text: str) -> LiveSession:
    file = folder / "monitor.yaml"
    file.write_text(text)
    types = {topic: installed_message_type(name) for topic, name in TYPES.items()}
    return LiveSession(compile_spec(load_spec(file)), None, types)


def explained_ages(watch: LiveSession, tick: int) -> dict[str, float]:
    result = watch.tick(tick)
    found = explain(watch.monitor, result.verdict, ages_at(watch, result.verdict), result.rows[0])
    return dict(zip(found.signals, found.ages, strict=True))


def test_a_signal_from_one_that_never_came_never_came(tmp_path: Path) -> None:
    watch = watching(tmp_path, MONITOR)
    watch.accept(ODOMETRY, START_NS - 300_000_000, serialized(ODOMETRY, 2.0))
    ages = explained_ages(watch, START_NS // 10**8)
    assert ages == {"speed": pytest.approx(0.3), "distance": math.inf, "ttc": math.inf}


def test_ages_are_in_steps_where_the_clock_is(tmp_path: Path) -> None:
    text = MONITOR.replace("rate: 10", f"clock: steps\nstep: {DISTANCE}")
    watch = watching(
        tmp_path, text.replace("timeout: 0.5", "timeout: 3").replace("hold: 0.2", "hold: 2")
    )
    watch.accept(ODOMETRY, START_NS, serialized(ODOMETRY, 2.0))
    for step in range(3):
        watch.accept(DISTANCE, START_NS + step, serialized(DISTANCE, 6.0))
        ages = explained_ages(watch, step)
    assert ages == {"speed": 2.0, "distance": 0.0, "ttc": 2.0}


def test_values_and_truths_are_told_with_the_times_they_count_from(tmp_path: Path) -> None:
    watch = watching(tmp_path, MONITOR)
    watch.accept(ODOMETRY, START_NS - 300_000_000, serialized(ODOMETRY, 2.0))
    watch.accept(DISTANCE, START_NS - 100_000_000, serialized(DISTANCE, 6.0))
    verdict = watch.tick(START_NS // 10**8).verdict
    names, values, stamps = seen_at(watch, watch.clock, verdict)
    told = {
        name: (value, START_NS - at) for name, value, at in zip(names, values, stamps, strict=True)
    }
    assert told["distance"] == (6.0, 100_000_000)
    assert told["ttc"] == (3.0, 300_000_000)
    assert told["predicates.close"] == (True, 0)
    assert told["terminal.collision"] == (False, 0)
