"""The seven scenarios: rivals, passes and jobs; no SUMO is needed here."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rtamt", reason="the study's rivals need RTAMT")

from evaluation.harness.runs import pass_over
from evaluation.study import record, rivals
from evaluation.study.study import disagreements, jobs_for
from evaluation.sumo.simulation import Frame
from forewarn.config.file import load_spec
from forewarn.errors import RecordingError
from forewarn.logic.specification import compile_spec

MONITOR = """
version: 1
rate: 10
include: [{study}/signals.yaml]
predicates:
  moving: speed > 1
  red: light == 1
  ran_red: light == 1 and stop_line <= 0 and stop_line > -0.2 - 0.15 * speed
bins:
  brake_needed: [1, 3, 5]
  time_to_line: [1, 3]
properties:
  red_light:
    formula: always(not ran_red)
    horizon: 3.0
    thresholds: {{warn: 0.3, act: 0.5, release: 0.3}}
    out_of_model: ignore
bounds: {{kind: none}}
"""


@pytest.fixture(scope="module")
def monitor_file(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("study") / "red.yaml"
    file.write_text(MONITOR.format(study=repository / "evaluation" / "study"), encoding="utf-8")
    return file


def test_what_a_pass_over_a_trace_gave_is_kept_for_its_monitor_file_and_content(
    monitor_file: Path, tmp_path: Path
) -> None:
    compiled = compile_spec(load_spec(monitor_file))
    path = tmp_path / "run.jsonl"
    values = {"speed": 5.0, "light": 1, "light_age": 1.0, "stop_line": 9.0}
    lines = [json.dumps({"t": 0.1 * i, **values}) for i in range(1, 20)]
    path.write_text("\n".join(lines), encoding="utf-8")
    first = pass_over(compiled, path)
    (kept,) = tmp_path.glob("run.*.npz")
    written = kept.stat().st_mtime_ns
    again = pass_over(compiled, path)
    assert kept.stat().st_mtime_ns == written
    assert again.signals["brake_needed"].tolist() == first.signals["brake_needed"].tolist()
    assert again.tracks[0].state.tolist() == first.tracks[0].state.tolist()
    other = monitor_file.read_text(encoding="utf-8").replace("speed > 1", "speed > 2")
    changed = tmp_path / "other.yaml"
    changed.write_text(other, encoding="utf-8")
    pass_over(compile_spec(load_spec(changed)), path)
    assert len([*tmp_path.glob("run.*.npz")]) == 2
    path.write_text("another run\n", encoding="utf-8")
    with pytest.raises(RecordingError):
        pass_over(compiled, path)


@pytest.mark.parametrize("name", sorted(rivals.SCENARIOS))
def test_the_monitor_file_of_each_scenario_has_all_that_its_rivals_read(
    repository: Path, name: str
) -> None:
    compiled = compile_spec(load_spec(repository / "evaluation" / "study" / f"{name}.yaml"))
    signals = {signal: np.zeros(3) for signal in compiled.abstraction.signals}
    against = rivals.SCENARIOS[name]
    assert len(compiled.spec.properties) == 1
    for quantity in against.quantities:
        assert quantity.score(signals).shape == (3,)
    assert rivals.robustness(against.law, signals).shape == (3,)
    if against.collisions:
        assert rivals.inverse_ttc(signals).max() == pytest.approx(1000.0)


def test_the_robustness_of_a_bounded_response_falls_below_zero_when_the_law_is_broken() -> None:
    # Red from tick 10 on, 1 m before the line, and the car keeps its 5 m/s: broken 2 s later.
    red = np.arange(60) >= 10
    signals = {
        "light_colour": np.where(red, 1.0, 3.0),
        "stop_line_distance": np.ones(60),
        "junction_distance": np.full(60, math.inf),
        "lead_distance": np.full(60, math.inf),
        "speed": np.full(60, 5.0),
    }
    values = rivals.robustness(rivals.RED, signals)
    assert int(np.flatnonzero(values < 0)[0]) == 30


def test_a_memory_keeps_the_worst_of_the_last_seconds() -> None:
    signals = {"q": np.array([0.0, 5.0, 1.0, 1.0, 1.0])}
    assert rivals.Quantity("q", memory=0.2).score(signals).tolist() == [0, 5, 5, 5, 1]
    assert rivals.Quantity("q", falling=True).score(signals).tolist() == [
        0, -5, -1, -1, -1,
    ]  # fmt: skip


def test_recordings_of_one_run_agree_only_to_the_bit(monitor_file: Path, tmp_path: Path) -> None:
    values = {"speed": 5.0, "light": 1, "light_age": 1.0, "stop_line": 9.0}
    lines = [{"t": 0.1 * i, **values} for i in range(1, 20)]
    paths = [tmp_path / f"{name}.jsonl" for name in ("one", "same", "other")]
    for path in paths:
        if path.stem == "other":
            lines[7] = {**lines[7], "speed": np.nextafter(5.0, 6.0)}
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    one, same, other = paths
    assert disagreements(monitor_file, one, same) == []
    assert "speed" in disagreements(monitor_file, one, other)


def test_a_run_that_fails_leaves_a_reason_and_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody_enters(*_: object) -> Iterator[Frame]:
        raise RuntimeError("no room")
        yield

    monkeypatch.setattr(record, "frames", nobody_enters)
    found = record.record("s2", 7, tmp_path, tmp_path)
    assert found["failed"] == "no room" and found["seed"] == 7
    assert [path.name for path in tmp_path.iterdir()] == ["00007.json"]


def test_training_and_test_runs_share_the_number_that_is_asked_for() -> None:
    jobs = jobs_for(80)
    assert {job.scenario for job in jobs} == set(rivals.SCENARIOS)
    assert {(job.part, job.runs) for job in jobs} == {("train", 50), ("test", 30)}
