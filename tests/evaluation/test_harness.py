"""What all studies share: passes over recordings, messages, options, and episodes that are kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluation.foresight.commonroad import load_scene
from evaluation.harness.command import Seeds, command, seeds_of
from evaluation.harness.episodes import Episodes
from evaluation.harness.messages import STORE, Message, Topic, header, message, write_bag
from forewarn.recordings.registry import open_recording

ROOT = Path(__file__).parents[2]


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
