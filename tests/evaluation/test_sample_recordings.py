"""The recordings that ship: what evaluation/sumo/README.md says about them is so."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from pathlib import Path

import pytest
from rosbags.highlevel import AnyReader

from forewarn.config.file import load_spec
from forewarn.logic.specification import compile_spec
from forewarn.models.file import load_model
from forewarn.recordings.registry import open_recording

NAMES = ("train_1", "train_2", "train_3", "held_out")
LIMIT = 4_000_000
STANDARD = {"nav_msgs", "geometry_msgs", "visualization_msgs", "std_msgs", "sensor_msgs"}
ROW = re.compile(r"^\| `(/\S+)` \| `(\S+)` \| (\d+) Hz \|", re.MULTILINE)


@pytest.fixture(scope="module")
def folder(repository: Path) -> Path:
    return repository / "evaluation" / "sumo" / "recordings"


@pytest.fixture(scope="module")
def documented(repository: Path) -> dict[str, tuple[str, float]]:
    text = (repository / "evaluation" / "sumo" / "README.md").read_text(encoding="utf-8")
    return {topic: (kind, float(rate)) for topic, kind, rate in ROW.findall(text)}


@pytest.fixture(scope="module")
def events(folder: Path) -> dict[str, dict[str, list[float]]]:
    return json.loads((folder / "events.json").read_text(encoding="utf-8"))


def test_they_take_at_most_four_megabytes(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= LIMIT


def test_they_last_about_seven_minutes(events: dict[str, dict[str, float]]) -> None:
    assert sorted(events) == sorted(NAMES)
    assert 360 <= sum(events[name]["duration"] for name in NAMES) <= 480


@pytest.mark.parametrize("name", NAMES)
def test_topics_types_and_rates_are_those_of_the_readme(
    folder: Path,
    documented: dict[str, tuple[str, float]],
    events: dict[str, dict[str, float]],
    name: str,
) -> None:
    duration = events[name]["duration"]
    with AnyReader([folder / name]) as reader:
        assert set(reader.topics) == set(documented)
        for topic, info in reader.topics.items():
            kind, rate = documented[topic]
            assert info.msgtype == kind
            assert kind.split("/")[0] in STANDARD
            assert info.msgcount == pytest.approx(rate * duration, abs=1.5)


@pytest.mark.parametrize("name", NAMES)
def test_every_message_is_readable_and_arrives_after_its_stamp_in_its_frame(
    folder: Path, name: str
) -> None:
    last: dict[str, int] = defaultdict(int)
    with AnyReader([folder / name]) as reader:
        for connection, arrival, raw in reader.messages():
            message = reader.deserialize(raw, connection.msgtype)
            assert arrival > last[connection.topic]
            last[connection.topic] = arrival
            headers = [
                item.header
                for item in (message, *getattr(message, "markers", ()))
                if hasattr(item, "header")
            ]
            for header in headers:
                stamp = header.stamp.sec * 10**9 + header.stamp.nanosec
                assert 0 < arrival - stamp < 200_000_000
                expected = "base_link" if connection.topic == "/ego/acceleration" else "map"
                assert header.frame_id == expected


def test_velocities_of_objects_agree_with_their_motion(folder: Path) -> None:
    """The difference of a marker's two points is how far it gets in a second."""
    seen: dict[int, tuple[float, float, float, float, float]] = {}
    errors = []
    with AnyReader([folder / "held_out"]) as reader:
        chosen = [c for c in reader.connections if c.topic == "/perception/objects"]
        for connection, _, raw in reader.messages(chosen):
            for marker in reader.deserialize(raw, connection.msgtype).markers:
                time = marker.header.stamp.sec + marker.header.stamp.nanosec * 1e-9
                here, ahead = marker.points
                now = (time, here.x, here.y, ahead.x - here.x, ahead.y - here.y)
                before = seen.get(marker.id)
                if before is not None and time - before[0] < 0.15:
                    step = time - before[0]
                    moved = math.hypot(here.x - before[1], here.y - before[2]) / step
                    speed = math.hypot(now[3] + before[3], now[4] + before[4]) / 2
                    errors.append(abs(moved - speed))
                seen[marker.id] = now
    assert len(errors) > 1000
    errors.sort()
    assert errors[len(errors) * 9 // 10] < 0.5


def test_the_monitor_sees_the_red_lights_that_the_simulator_saw_crossed(
    repository: Path, folder: Path, events: dict[str, dict[str, list[float]]]
) -> None:
    """The predicate `ran_red` holds within a few ticks of each crossing, and at no other time."""
    from forewarn.learning.observing import observe

    spec = load_spec(repository / "config" / "demo.yaml")
    abstraction = compile_spec(spec).abstraction
    bit = 1 << abstraction.vocabulary.predicates.index("ran_red")
    with open_recording(folder / "held_out") as recording:
        start = recording.start_ns
        held = [
            snapshot.tick / spec.rate - start * 1e-9
            for snapshot, ((state, *_), *_), *_ in observe(recording, spec, abstraction)
            if state is not None and state >= 0 and state & bit
        ]
    crossings = events["held_out"]["red_light"]
    assert crossings
    for crossing in crossings:
        assert any(0 <= time - crossing < 0.35 for time in held)
    for time in held:
        assert any(0 <= time - crossing < 0.8 for crossing in crossings)


def test_the_shipped_model_has_seen_none_of_them(repository: Path, folder: Path) -> None:
    model = load_model(repository / "config" / "demo.model.json.gz")
    learned_from = {source.digest for source in model.provenance}
    assert len(learned_from) >= 100
    for name in NAMES:
        with open_recording(folder / name) as recording:
            assert recording.digest() not in learned_from
