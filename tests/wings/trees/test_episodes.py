"""Runs of bags, of the node's own records and of traces, as the learners of trees see them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from forewarn.cli import main
from forewarn.config.file import load_spec
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.messages.definitions import MessageType, installed_message_type
from forewarn.monitoring.record import Names, RecordWriter
from forewarn.monitoring.session_events import Reset, Start
from forewarn.recordings.writing import RecordingWriter
from forewarn.signals.sources import EXTERNAL_TYPE
from forewarn.wings.trees.examples import classifier, read_run

STORE = get_typestore(Stores.ROS2_HUMBLE)
TEXT, NUMBER = "std_msgs/msg/String", "std_msgs/msg/Float64"
SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND

DRIVE = """\
version: 1
rate: 1
signals:
  gap: {topic: /gap, type: std_msgs/msg/Float64, value: data, timeout: 5}
  decision: {topic: /planner/decision, type: std_msgs/msg/String, value: data, timeout: never}
predicates: {near: gap < 3}
terminal: {crash: gap <= 0}
action: decision
properties: {apart: {formula: always(not near), horizon: 3}}
"""


def write(path: Path, rows: list[tuple[float, str, str, Any]]) -> Path:
    """Write messages of (seconds, topic, type, value)."""
    with RecordingWriter(path) as writer:
        for seconds, topic, name, value in rows:
            message = STORE.types[name](value)
            definition, _ = STORE.generate_msgdef(name, ros_version=2)
            data = bytes(STORE.serialize_cdr(message, name))
            writer.write(topic, name, definition, START + round(seconds * SECOND), data)
    return path


def drive(gaps: list[float]) -> list[tuple[float, str, str, Any]]:
    """Return a drive whose planner brakes where the gap is below 4."""
    rows = []
    for second, gap in enumerate(gaps):
        rows.append((second, "/gap", NUMBER, gap))
        rows.append((second, "/planner/decision", TEXT, "brake" if gap < 4 else "go"))
    return rows


def compiled(tmp_path: Path, text: str = DRIVE) -> CompiledSpec:
    (tmp_path / "monitor.yaml").write_text(text)
    return compile_spec(load_spec(tmp_path / "monitor.yaml"))


def test_a_bag_gives_the_decisions_of_its_planner(tmp_path: Path) -> None:
    spec = compiled(tmp_path)
    bag = write(tmp_path / "a.mcap", drive([6, 5, 3, 2, 5]))
    (run,) = read_run(bag, spec, ["gap"])
    assert [(one.values["gap"], one.action) for one in run] == [
        (6, "go"), (5, "go"), (3, "brake"), (2, "brake"), (5, "go"),
    ]  # fmt: skip


def test_what_lies_between_two_episodes_joins_nothing(tmp_path: Path) -> None:
    spec = compiled(tmp_path)
    bag = write(tmp_path / "a.mcap", drive([5, 3, 0, -1, 9, 8]))
    first, second = read_run(bag, spec, ["gap"])
    assert [one.values["gap"] for one in first] == [5, 3]
    assert [one.values["gap"] for one in second] == [9, 8]
    state, suffix = classifier("state", spec), classifier("suffix:3", spec)
    assert state(first, 1) == "!crash"
    assert suffix(first, 1) == ("brake",)


@pytest.mark.parametrize("phase", ["active_when", "intervened_when"])
def test_phases_that_do_not_count_break_a_run(tmp_path: Path, phase: str) -> None:
    condition = "gap < 5" if phase == "active_when" else "gap >= 5"
    spec = compiled(tmp_path, f"{DRIVE}{phase}: {condition}\n")
    bag = write(tmp_path / "a.mcap", drive([4, 3, 6, 7, 4, 2]))
    runs = read_run(bag, spec, ["gap"])
    assert [[one.values["gap"] for one in run] for run in runs] == [[4, 3], [4, 2]]


def test_an_episode_is_over_where_its_goal_is_reached(tmp_path: Path) -> None:
    spec = compiled(tmp_path)
    bag = write(tmp_path / "a.mcap", drive([5, 3, 0, 0, 9, 2, 1, 8]))
    by_label = read_run(bag, spec, ["gap"], "crash")
    assert [[one.values["gap"] for one in run] for run in by_label] == [[5, 3, 0], [9, 2, 1, 8]]
    assert [run[-1].reached for run in by_label] == [True, False]
    by_predicate = read_run(bag, spec, ["gap"], "near")
    assert [[one.values["gap"] for one in run] for run in by_predicate] == [[5, 3], [9, 2]]


def test_nodes_of_a_behaviour_tree_are_steps(tmp_path: Path) -> None:
    text = (
        DRIVE.replace("rate: 1", "clock: steps\nstep: /bt")
        .replace("/planner/decision", "/bt")
        .replace("timeout: 5}", "timeout: never}")
    )
    rows = [
        (0.0, "/gap", NUMBER, 6.0), (0.1, "/bt", TEXT, "drive"),
        (0.9, "/gap", NUMBER, 2.0), (1.0, "/bt", TEXT, "wait"), (5.0, "/bt", TEXT, "back_up"),
    ]  # fmt: skip
    (run,) = read_run(write(tmp_path / "a.mcap", rows), compiled(tmp_path, text), ["gap"])
    assert [(one.values["gap"], one.action) for one in run] == [
        (6, "drive"), (2, "wait"), (2, "back_up"),
    ]  # fmt: skip


NAMED = """\
version: 1
clock: steps
signals: {errors: {}, files: {}}
predicates: {failing: errors >= 1}
action: "'mend' if errors > 0 else 'write'"
properties: {calm: {formula: always(not failing), horizon: 3}}
"""


@pytest.fixture
def record(
    risk_type: MessageType, risk_array: Callable[..., bytes], tmp_path: Path
) -> Callable[..., Path]:
    """Return a function that writes the record of a node to which signals come by name."""
    mtype = installed_message_type(EXTERNAL_TYPE)
    types = mtype.typestore.types

    def write(text: str, episodes: list[list[tuple[float, float]]], name: str = "0.mcap") -> Path:
        names = Names.of("/monitor")
        writer = RecordWriter(tmp_path / name, names, text, {names.external: mtype})
        now = START + int(Path(name).stem) * 3600 * SECOND
        writer.start(Start("activated", 0, now), None)
        for number, episode in enumerate(episodes):
            if number:
                writer.event(Reset(("calm",)))
            for errors, files in episode:
                now += SECOND
                stamp = types["builtin_interfaces/msg/Time"](now // SECOND, 0)
                message = types[EXTERNAL_TYPE](
                    header=types["std_msgs/msg/Header"](stamp, ""),
                    names=["errors", "files"],
                    values=np.array([errors, files], dtype=np.float64),
                    stamps=[],
                )
                data = bytes(mtype.typestore.serialize_cdr(message, mtype.name))
                writer.message(names.external, now, data)
                writer.risk(now, risk_array(risk_type, (), now))
        writer.close()
        return tmp_path / name

    return write


def test_a_record_whose_signals_came_by_name_is_read(
    tmp_path: Path, record: Callable[..., Path]
) -> None:
    spec = compiled(tmp_path, NAMED)
    path = record(NAMED, [[(0, 1), (1, 1), (0, 2)], [(0, 0), (0, 1)]])
    first, second = read_run(path, spec, ["errors", "files"])
    assert [(one.values["errors"], one.values["files"], one.action) for one in first] == [
        (0, 1, "write"), (1, 1, "mend"), (0, 2, "write"),
    ]  # fmt: skip
    assert [one.values["files"] for one in second] == [0, 1]
    # Counting sees the same: no step leads from one episode into the other.
    model = learn([path], spec.spec, spec.abstraction).model
    assert int(model.counts.sum()) == 3


def test_every_command_on_traces_takes_records_and_bags(
    tmp_path: Path, record: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    folders = {}
    for kind, number in (("past", 30), ("normal", 25), ("today", 3)):
        folders[kind] = tmp_path / kind
        folders[kind].mkdir()
        for i in range(number):
            files, errors, rows = 0, 0, []
            for _ in range(12):
                rows.append((errors, files))
                files += errors == 0
                errors = int(rng.random() < 0.2) if errors == 0 else 0
            record(NAMED, [rows], f"{kind}/{i}.mcap")
    config, model = tmp_path / "monitor.yaml", tmp_path / "model.json"
    config.write_text(NAMED)

    def call(*words: object) -> Any:
        assert main([*map(str, words), "--json"]) in (0, 1)
        return json.loads(capsys.readouterr().out)

    grown = call("learn-states", folders["past"], "-c", config, "--write")
    assert "errors > 0" in [split["condition"] for split in grown["splits"]]
    refined = call("refine", folders["past"], "-c", config, "--query", "Pmax(failing) <= 0.999")
    assert refined["ending"] in ("holds", "real", "no split")
    call("learn", folders["past"], "-c", config, "-o", model)
    judged = call(
        "anomalies", folders["today"], "-c", config, "-m", model, "--calibrate", folders["normal"]
    )
    assert len(judged["runs"]) == 3
    replayed = call("replay", folders["today"] / "0.mcap", "-c", config, "-m", model)
    assert replayed["properties"]["calm"]["violations"] > 0
