"""The figures of evaluation/study, made from the sample recordings: no SUMO is needed here."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rtamt", reason="the study's rivals need RTAMT")

from evaluation.harness.page import replaced
from evaluation.harness.runs import learn_from, pass_over, with_risk
from evaluation.study import record, rivals
from evaluation.study.analysis import judge
from evaluation.study.study import disagreements, jobs_for
from evaluation.study.table import MARK, document, readable
from evaluation.sumo.simulation import Frame
from forewarn.assessment.replay import Replaying, replay
from forewarn.config import load_spec
from forewarn.errors import RecordingError
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.build import build_monitor
from forewarn.recordings import open_recording

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
    unseen: ignore
bounds: {{kind: none}}
"""


@pytest.fixture(scope="module")
def monitor_file(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("study") / "red.yaml"
    file.write_text(MONITOR.format(study=repository / "evaluation" / "study"), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def figures(repository: Path, monitor_file: Path) -> dict[str, object]:
    folder = repository / "evaluation" / "sumo" / "recordings"
    line = rivals.Law(
        "line >= 0",
        lambda s: {"line": np.where(s["must_stop"] > 0, s["stop_line_distance"] - 1, 1000.0)},
    )
    against = rivals.Rivals(line, (rivals.Quantity("brake_needed"),))
    train = [folder / f"train_{i}" for i in (1, 2, 3)]
    return judge(monitor_file, against, 6.0, train, [folder / "held_out"])


def test_every_monitor_is_judged_on_the_same_violations(figures: dict[str, object]) -> None:
    rows = figures["rows"]
    assert isinstance(rows, list)
    assert {row["violations"] for row in rows} == {1}  # the red light of held_out at 32.1 s
    assert len({row["hours"] for row in rows}) == 1
    names = [row["monitor"] for row in rows]
    assert names.count("Forewarn") == 4
    assert names.count("robustness") == 4
    assert names.count("rule broken") == 1
    assert names[-1] == "single: brake_needed"


def test_risks_that_are_looked_up_are_those_of_the_monitor_to_the_bit(
    monitor_file: Path, repository: Path
) -> None:
    compiled = compile_spec(load_spec(monitor_file))
    folder = repository / "evaluation" / "sumo" / "recordings"
    model = learn([folder / "train_3"], compiled.spec, compiled.abstraction).model
    counted = learn_from(compiled, [pass_over(compiled, folder / "train_3")])
    assert counted.states == model.states
    assert (counted.counts != model.counts).nnz == 0
    (found,) = with_risk(compiled, counted, [pass_over(compiled, folder / "held_out")])
    with open_recording(folder / "held_out") as recording:
        run = replay(Replaying(build_monitor(compiled, model)), recording)
    for name in ("probability", "in_model", "violation", "status", "state"):
        ours, theirs = getattr(found.tracks[0], name), getattr(run.tracks[0], name)
        assert ours.tobytes() == theirs.tobytes(), name


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


def test_a_reactive_monitor_foresees_nothing(figures: dict[str, object]) -> None:
    (row,) = (row for row in figures["rows"] if row["monitor"] == "rule broken")  # type: ignore[attr-defined]
    assert row["detected"] == 0
    assert row["false_alarms"] == 0
    assert row["lead_mean"] is None


def test_the_red_light_of_the_held_out_sample_is_foreseen(figures: dict[str, object]) -> None:
    rows = [row for row in figures["rows"] if row["monitor"] == "Forewarn"]  # type: ignore[attr-defined]
    assert rows[0]["threshold"] == "0.3"
    assert rows[0]["detected"] == 1
    assert rows[0]["lead_median"] > 0.5


def test_the_tables_name_every_monitor_and_every_figure(figures: dict[str, object]) -> None:
    versions = {"forewarn": "x", "sumo": "1.0", "numpy": "2", "rtamt": "0", "python": "3"}
    text = document({"versions": versions, "scenarios": {"s2": json.loads(json.dumps(figures))}})
    assert "| s2 | red, straight on" in text
    for row in readable(figures["rows"]):  # type: ignore[arg-type]
        assert f"| {row['monitor']} |" in text
    assert "| < 0.4 |" in text


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


def test_the_page_has_the_figures(repository: Path) -> None:
    folder = repository / "evaluation"
    results = json.loads((folder / "study" / "results.json").read_text(encoding="utf-8"))
    page = (folder / "RESULTS.md").read_text(encoding="utf-8")
    assert replaced(page, MARK, document(results)) == page
    errors = [
        scenario["calibration"]["expected_error"] for scenario in results["scenarios"].values()
    ]
    assert f"right on average (expected error {min(errors):.3f} to {max(errors):.3f})" in page
    learned = [results["scenarios"][name]["violations_in_training"] for name in ("s4", "s2")]
    assert "With {} or {} violations to learn from".format(*learned) in page


def test_robustness_has_the_most_false_alarms_where_the_page_says_so(repository: Path) -> None:
    results = json.loads(
        (repository / "evaluation" / "study" / "results.json").read_text(encoding="utf-8")
    )
    for name, figures in results["scenarios"].items():
        rates = {
            (row["monitor"], row["threshold"]): row["false_alarms_per_hour"]
            for row in figures["rows"]
        }
        others = [rate for (monitor, _), rate in rates.items() if monitor != "robustness"]
        assert (rates["robustness", "-1.2"] > max(others)) == (name != "s1"), name
