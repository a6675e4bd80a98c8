"""What all studies share: passes over recordings, messages, options, and episodes that are kept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from evaluation.harness.command import Seeds, command, seeds_of
from evaluation.harness.episodes import Episodes, read_lines
from evaluation.harness.messages import STORE, Message, Topic, header, message, write_bag
from evaluation.harness.page import put, table, write_json
from evaluation.harness.runs import learn_from, leave_one_out, pass_over, with_risk
from evaluation.real.commonroad import load_scene
from forewarn.assessment.replay import Replaying, replay
from forewarn.config import load_spec
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.monitoring.build import build_monitor
from forewarn.recordings import open_recording

ROOT = Path(__file__).parents[2]
MONITOR = """
version: 1
rate: 10
signals:
  speed: {unit: m/s, timeout: 0.15}
  gap: {unit: m, timeout: 0.15}
bins: {gap: [2, 5]}
predicates: {fast: speed > 1}
properties:
  kept: {formula: always(not gap<2), horizon: 1.0}
  slows: {formula: "always(gap<5 implies eventually[0:0.5](not fast))", horizon: 1.0}
bounds: {kind: none}
"""


@pytest.fixture
def compiled(tmp_path: Path) -> CompiledSpec:
    (tmp_path / "monitor.yaml").write_text(MONITOR, encoding="utf-8")
    return compile_spec(load_spec(tmp_path / "monitor.yaml"))


def drive(path: Path, seed: int, lost: float = 0.0) -> Path:
    """Write a run at random, in which a share of the gaps is unknown."""
    rng = np.random.default_rng(seed)
    gaps = 4 + np.cumsum(rng.normal(0, 0.6, 200))
    lines = [
        {"t": 0.1 * k, "speed": float(rng.random() * 2), "gap": float(abs(gap))}
        for k, gap in enumerate(gaps)
    ]
    for line in lines[1:]:
        if rng.random() < lost:
            line["gap"] = None  # type: ignore[assignment]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("lost", [0.0, 0.2])
def test_a_pass_and_a_model_say_what_replay_says_whatever_is_unknown(
    compiled: CompiledSpec, tmp_path: Path, lost: float
) -> None:
    training = [drive(tmp_path / f"{seed}.jsonl", seed) for seed in range(4)]
    judged = drive(tmp_path / "judged.jsonl", 9, lost)
    model = learn_from(compiled, [pass_over(compiled, path) for path in training])
    same = learn(training, compiled.spec, compiled.abstraction).model
    assert model.states == same.states and (model.counts != same.counts).nnz == 0
    (found,) = with_risk(compiled, model, [pass_over(compiled, judged)])
    with open_recording(judged) as recording:
        run = replay(Replaying(build_monitor(compiled, same)), recording)
    for ours, theirs in zip(found.tracks, run.tracks, strict=True):
        for name in ("probability", "in_model", "violation", "status", "state"):
            assert getattr(ours, name).tobytes() == getattr(theirs, name).tobytes(), name


def test_groups_are_predicted_and_tuned_without_themselves(
    compiled: CompiledSpec, tmp_path: Path
) -> None:
    groups = {
        name: [drive(tmp_path / f"{name}{k}.jsonl", 10 * at + k) for k in range(2)]
        for at, name in enumerate("abc")
    }
    folds = leave_one_out(compiled, groups)
    names = [{run.path.name[0] for run in fold.judged} for fold in folds]
    assert names == [{"a"}, {"b"}, {"c"}]
    assert [{run.path.name[0] for run in fold.tuning} for fold in folds] == [
        {"b", "c"}, {"a", "c"}, {"a", "b"}
    ]  # fmt: skip
    (first, *_) = folds[0].judged
    passes = [pass_over(compiled, path) for name in "bc" for path in groups[name]]
    (alone,) = with_risk(
        compiled, learn_from(compiled, passes), [pass_over(compiled, groups["a"][0])]
    )
    ours, theirs = (run.tracks[0].probability for run in (first, alone))
    assert ours.tobytes() == theirs.tobytes()


def test_what_is_left_out_of_a_message_is_zero_or_empty(tmp_path: Path) -> None:
    fields = {"header": header(1_500_000_000, "map"), "pose": {"pose": {"position": {"x": 1.5}}}}
    topic = Topic("/odom", "nav_msgs/msg/Odometry")
    found = message(topic.type, fields)
    assert (found.header.stamp.sec, found.header.stamp.nanosec) == (1, 500_000_000)
    assert found.pose.pose.position.x == 1.5 and found.pose.pose.orientation.w == 0.0
    assert found.pose.covariance.tolist() == [0.0] * 36 and found.child_frame_id == ""
    markers = message("visualization_msgs/msg/MarkerArray", {"markers": [{"points": [{"x": 2.0}]}]})
    data = STORE.serialize_cdr(markers, "visualization_msgs/msg/MarkerArray")
    again = STORE.deserialize_cdr(data, "visualization_msgs/msg/MarkerArray")
    assert again.markers[0].points[0].x == 2.0
    with pytest.raises(ValueError, match="no field colour"):
        message("visualization_msgs/msg/Marker", {"colour": 1})
    assert write_bag(tmp_path / "bag", [topic], [Message(7, topic, found)]) == 1
    with open_recording(tmp_path / "bag") as recording:
        assert recording.topics["/odom"].count == 1


def test_the_parameters_of_a_function_are_its_options() -> None:
    told = {}

    def main(
        folder: Path, seeds: Seeds = range(3), only: Sequence[str] = ("",), dry_run: bool = False
    ) -> None:
        told.update(folder=folder, seeds=seeds, only=only, dry_run=dry_run)

    command(main, ["--folder", "/x", "--seeds", "2:4", "--only", "a", "b", "--dry-run"])
    assert told["seeds"] == range(2, 4)
    assert (told["folder"], told["only"], told["dry_run"]) == (Path("/x"), ["a", "b"], True)
    command(main, ["--folder", "/x"])
    assert told["seeds"] == range(3) and not told["dry_run"]
    with pytest.raises(SystemExit):
        command(main, [])
    assert seeds_of("7,3") == [7, 3]


def test_data_that_cannot_be_read_end_a_study_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "cut.xml").write_text("<commonRoad><lanelet>")

    def main(path: Path) -> None:
        load_scene(path)

    for name, told in (("cut.xml", "cut.xml: cannot be read: "), ("none", "No such file")):
        with pytest.raises(SystemExit, match=f"error: .*{told}"):
            command(main, ["--path", str(tmp_path / name)])


@pytest.mark.parametrize("module", ["evaluation.study.record", "evaluation.sumo.scenarios"])
def test_what_simulates_needs_nothing_of_forewarn(module: str) -> None:
    hidden = f"import sys; sys.modules['forewarn'] = None; import {module} as it; print(it.main)"
    shown = subprocess.run([sys.executable, "-c", hidden], cwd=ROOT, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert "function main" in shown.stdout


def test_episodes_are_driven_once_unless_what_they_depend_on_changes(tmp_path: Path) -> None:
    driven = []

    def run(arm: str) -> dict[str, object]:
        driven.append(arm)
        return {"end": arm.upper()}

    for key in ("1", "1", "2"):
        episodes = Episodes(tmp_path, {"nobody": "", "at 0.2": key})
        episodes.drive(7, episodes.keys, run)
    assert driven == ["nobody", "at 0.2", "at 0.2"]
    found = episodes.by_arm([7, 8])
    assert [e["end"] for pair in found["at 0.2"] for e in pair] == ["AT 0.2", "NOBODY"]


def test_episodes_that_are_kept_are_not_driven_again_elsewhere(tmp_path: Path) -> None:
    kept, keys = tmp_path / "kept.jsonl.gz", {"nobody": "", "nobody else": "1"}
    here = Episodes(tmp_path / "here", keys, kept)
    for seed in (7, 8):
        here.drive(seed, keys, lambda arm: {"end": arm})
    here.keep(kept)
    assert [one["seed"] for one in read_lines(kept)] == [7, 7, 8, 8]
    there = Episodes(tmp_path / "there", keys, kept)
    assert there.by_arm([7, 8]) == here.by_arm([7, 8])
    # What depends on something else is neither taken nor kept.
    other = Episodes(tmp_path / "other", keys | {"nobody else": "2"}, kept)
    assert other.load(7, "nobody else") is None and other.load(7, "nobody") is not None
    before = kept.read_bytes()
    there.keep(kept)
    assert kept.read_bytes() == before
    other.keep(kept)
    assert {one["arm"] for one in read_lines(kept)} == {"nobody"}


@pytest.mark.parametrize(
    ("said", "arms"),
    [
        ([""], ["nobody", "nobody; lawful", "at 0.2"]),
        (["nobody"], ["nobody"]),
        (["nobody;", "at"], ["nobody; lawful", "at 0.2"]),
    ],
)
def test_a_whole_name_means_that_arm_alone(
    tmp_path: Path, said: list[str], arms: list[str]
) -> None:
    episodes = Episodes(tmp_path, dict.fromkeys(["nobody", "nobody; lawful", "at 0.2"], ""))
    assert episodes.chosen(said) == arms


def test_a_table_replaces_what_stands_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    page.write_text("a\n<!-- x -->\nold\n<!-- end of x -->\nb\n", encoding="utf-8")
    put("x", table(("h",), [("1",)]), page)
    put("x", table(("h",), [("2",)]), page)
    assert page.read_text(encoding="utf-8") == (
        "a\n<!-- x -->\n\n| h |\n|---|\n| 2 |\n\n<!-- end of x -->\nb\n"
    )
    with pytest.raises(ValueError, match="no marks for y"):
        put("y", "", page)


def test_figures_are_added_to_those_of_other_parts(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    write_json(file, {"a": 1.0}, within="one")
    write_json(file, {"b": (float("nan"), 2)}, within="two")
    assert json.loads(file.read_text()) == {"one": {"a": 1.0}, "two": {"b": [None, 2]}}
