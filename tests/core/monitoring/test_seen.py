"""The verdict carries what was seen, and nobody need look twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from forewarn.assessment.replay import Replaying, replay
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.session import Session
from forewarn.monitoring.step import Monitor
from forewarn.recordings.registry import open_recording

TEXT = """
version: 1
rate: 10
signals:
  x: {timeout: 0.2}
  double: {value: "[2 * x][0]"}  # an index is left to the function that the test counts
  root: {value: sqrt(0.5 - x)}
predicates: {high: double > 3}
properties: {calm: {formula: always(not high), horizon: 1}}
"""


def monitor() -> Monitor:
    return build_monitor(compile_spec(parse_spec(parse_document(TEXT))), None)


def test_a_verdict_carries_the_values_and_failures_of_its_tick() -> None:
    session = Session(monitor(), {})
    session.accept("", 0, {"x": 1.0})
    first = session.tick(0)
    assert first.values == [1.0, 2.0, None]
    assert [failure.where for failure in first.failures] == ["root"]
    assert session.tick(5).values == [None, None, None]


def test_a_replay_that_keeps_signals_computes_each_tick_once(tmp_path: Path) -> None:
    calls = 0
    found = monitor()
    [double, root] = found.abstraction.derived

    def counted(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def call(arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            return function(arguments)

        return call

    double = replace(double, function=counted(double.function))
    found = replace(found, abstraction=replace(found.abstraction, derived=(double, root)))
    path = tmp_path / "run.jsonl"
    path.write_text("".join(f'{{"t": {i / 10}, "x": {i}}}\n' for i in range(8)))
    with open_recording(path) as recording:
        run = replay(Replaying(found, keep_signals=True), recording)
    assert calls == len(run.history) == 8
    series = {one.name: one.values.tolist() for one in run.signals}
    assert series["double"] == [2.0 * i for i in range(8)]
