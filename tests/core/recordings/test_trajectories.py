"""Poses of all objects become what one of them sees, as the monitor file says."""

from __future__ import annotations

import gzip
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extent import sampled
from others_data import DATA

from forewarn.config.trajectories import TrajectoriesSpec
from forewarn.errors import RecordingError
from forewarn.recordings.interface import Recording
from forewarn.recordings.parts import Part
from forewarn.recordings.registry import open_recording
from forewarn.recordings.trajectories.recording import find_trajectories

DRIVE = {
    "drive": "d/1", "period": 0.5, "crash": None, "road": "r1",
    "types": {"Ego": ["Lincoln", "Ego"], "A": ["Bus", "NPC"]},
    "frames": [
        {"Ego": [1.0, 9.9, 2.0, 90.0, 3.0, 0.0, 0.0]},
        {"Ego": [2.5, 9.9, 2.0, 90.0, 3.0, 0.0, 0.0], "A": [20.0, 9.9, 2.0, 270.0, -4.0, 0.0, 0.5]},
    ],
}  # fmt: skip
LAYOUT: dict[str, Any] = {
    "run": "drive", "frames": "frames", "period": "period", "kinds": "types", "ego": "Ego",
    "columns": {"x": 0, "y": 2, "heading": 3, "vx": 4, "vy": 6},
    "heading": {"unit": "degrees", "zero": "y", "turn": "clockwise"},
    "sizes": {"Bus": [11, 2.5], "default": [4, 2]}, "ending": "crash",
}  # fmt: skip


def layout(**changes: Any) -> TrajectoriesSpec:
    return TrajectoriesSpec.model_validate({**LAYOUT, **changes})


def write(path: Path, *lines: Any) -> Path:
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def opened(path: Path, spec: TrajectoriesSpec) -> list[Recording]:
    return [open_recording(one) for one in find_trajectories(path, spec)]


def values(recording: Recording) -> list[dict[str, Any]]:
    return [dict(sample.data) for sample in recording.read()]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["town.jsonl", "town.jsonl.gz"])
def test_each_line_is_a_drive_of_the_ego(tmp_path: Path, name: str) -> None:
    other = {**DRIVE, "drive": "d2", "crash": "wall", "frames": DRIVE["frames"][:1]}  # type: ignore[index]
    first, second = opened(write(tmp_path / name, DRIVE, other), layout())
    assert first.path.name == f"{name}::run=d%2F1"
    assert (first.count, first.start_ns, first.end_ns) == (2, 0, 500_000_000)
    before, after = values(first)
    assert [len(column) for column in before["objects"]] == [0] * 7
    assert before["pose"] == pytest.approx([1.0, 2.0, 0.0])
    assert (before["speed"], before["size"], before["kinds"]) == (pytest.approx(3.0), [4, 2], [])
    expected = [20.0, 2.0, -math.pi, -4.0, 0.5, 11.0, 2.5]
    assert np.concatenate(after["objects"]) == pytest.approx(expected)
    assert (after["kinds"], after["last"], after["crash"]) == (["NPC"], True, "")
    assert [one["crash"] for one in values(second)] == ["wall"]
    assert first.metadata()["run"]["road"] == "r1"


def test_an_address_travels_with_what_the_monitor_file_says(tmp_path: Path) -> None:
    (path,) = find_trajectories(write(tmp_path / "town.jsonl", DRIVE), layout())
    again = pickle.loads(pickle.dumps(path))
    (written,) = find_trajectories(Path(str(path)), layout())
    with open_recording(written) as one, open_recording(again) as other:
        assert one.digest() == other.digest()
    with open_recording(Part("0.4", None).of(path)) as part:
        assert [sample.time_ns for sample in part.read()] == [500_000_000]


def test_the_same_poses_are_the_same_recording(tmp_path: Path) -> None:
    copy = {**DRIVE, "drive": "d2", "road": "r9"}
    moved = json.loads(json.dumps({**DRIVE, "drive": "d3"}))
    moved["frames"][1]["A"][0] += 0.1
    crash = {**DRIVE, "drive": "d4", "crash": "wall"}
    found = opened(write(tmp_path / "town.jsonl", DRIVE, copy, moved, crash), layout())
    first, *others = (one.digest() for one in found)
    assert [one == first for one in others] == [True, False, False]


def test_headings_do_not_jump(tmp_path: Path) -> None:
    frames = [{"Ego": [0, 0, 0, yaw, 0, 0, 0]} for yaw in (170, 190, 350, 371 - 360)]
    (recording,) = opened(write(tmp_path / "a.jsonl", {**DRIVE, "frames": frames}), layout())
    yaws = [math.degrees(one["pose"][2]) for one in values(recording)]
    assert np.diff(yaws) == pytest.approx([-20, -160, -21])


def test_what_is_not_told_comes_from_places(tmp_path: Path) -> None:
    spec = TrajectoriesSpec.model_validate(
        {
            "objects": "seen",
            "time": "stamp",
            "time_unit": "ms",
            "each": ["car"],
            "columns": {"object": "id", "kind": "class", "x": "at.x", "y": "at.y"},
            "sizes": {"car": [4, 2], "dog": [1, 0.5]},
        }
    )
    frames = [
        {"stamp": 100 * k, "seen": [
            {"id": 1, "class": "car", "at": {"x": 0.5 * k, "y": 0.0}},
            {"id": 2, "class": "car", "at": {"x": 9.0, "y": -1.0 * k}},
            {"id": "d", "class": "dog", "at": {"x": 3.0, "y": 3.0}},
        ]}
        for k in range(3)
    ]  # fmt: skip
    first, second = opened(write(tmp_path / "run.jsonl", *frames), spec)
    before, after, _ = values(first)
    assert all(math.isnan(number) for number in before["velocity"])  # nobody knows it yet
    assert (after["speed"], after["pose"]) == (pytest.approx(5.0), [0.5, 0.0, 0.0])
    car, dog = np.array(after["objects"]).T
    assert car == pytest.approx([9.0, -1.0, -math.pi / 2, 0.0, -10.0, 4.0, 2.0])
    assert dog[[2, 5, 6]] == pytest.approx([0.0, 1.0, 1.0])  # it lies as it may
    assert second.path.name == "run.jsonl::run=run,object=2"


TABLES = {
    "a_cars.csv": "id,frame,x,y,psi,v\n1,10,0,0,1.5707963,2\n1,11,0,1,1.5707963,2\n",
    "a_people.csv": "id,frame,x,y,vx,vy\n1,11,5,5,0,-1\n1,12,5,4,0,-1\n",
}
OF_TABLES: dict[str, Any] = {
    "files": {"car": "*_cars", "person": "*_people"}, "period": 0.1, "each": "car",
    "columns": {"object": "id", "frame": "frame", "x": "x", "y": "y", "heading": "psi",
                "speed": "v", "vx": "vx", "vy": "vy"},
    "sizes": {"car": [4, 2], "person": [0.5, 0.5]},
}  # fmt: skip


def tables(folder: Path, **changes: str) -> Path:
    for name, text in TABLES.items():
        (folder / name).write_text(changes.get(name.partition(".")[0], text), encoding="utf-8")
    return folder


def test_tables_of_kinds_are_one_run(tmp_path: Path) -> None:
    (recording,) = opened(tables(tmp_path), TrajectoriesSpec.model_validate(OF_TABLES))
    assert recording.path.name == "a_cars.csv::run=a,object=car-1"
    assert [sample.time_ns for sample in recording.read()] == [1_000_000_000, 1_100_000_000]
    alone, met = values(recording)
    assert met["velocity"] == pytest.approx([0.0, 2.0], abs=1e-6)
    assert len(alone["kinds"]) == 0
    expected = [5, 5, -math.pi / 2, 0, -1, 0.5, 0.5]
    assert np.concatenate(met["objects"]) == pytest.approx(expected)
    assert met["kinds"] == ["person"]


def test_a_run_may_lack_the_table_of_a_kind(tmp_path: Path) -> None:
    (tables(tmp_path) / "a_people.csv").unlink()
    (recording,) = opened(tmp_path, TrajectoriesSpec.model_validate(OF_TABLES))
    assert [one["kinds"] for one in values(recording)] == [[], []]
    assert recording.warnings == ["the run has no table 'person': it is read without"]


@pytest.mark.parametrize(
    ("people", "shift", "heading", "warning"),
    [
        ("id,frame,x,y,vx,vy\n", 0.0, 0.0, "a_people.csv holds no row"),
        (None, 0.5, 0.0, "objects are missing in 49% of the frames"),
        (None, 0.0, 90.0, "if they are in degrees"),
    ],
)
def test_what_would_not_be_seen_is_told(
    tmp_path: Path, people: str | None, shift: float, heading: float, warning: str
) -> None:
    cars = "".join(f"1,{k},{k},0,0,{heading}\n" for k in range(20))
    walks = "".join(f"1,{k + shift},9,0,0,0\n" for k in range(20))
    folder = tables(
        tmp_path,
        a_cars=f"id,frame,x,y,v,psi\n{cars}",
        a_people=people or f"id,frame,x,y,vx,vy\n{walks}",
    )
    (recording,) = opened(folder, TrajectoriesSpec.model_validate(OF_TABLES))
    assert any(warning in told for told in recording.warnings)
    apart = [told for told in recording.warnings if "no time in common" in told]
    assert len(apart) == (2 if shift else 0)


def test_a_run_that_ended_in_contact_ends_there(tmp_path: Path) -> None:
    frames = [{"Ego": [0, 0, 0, 0, 0, 0, 0], "A": [x, 0, 0, 0, 0, 0, 0]} for x in (9, 9, 2.2, 7, 8)]
    drives = [
        {**DRIVE, "drive": str(k), "crash": crash, "frames": frames[:count]}
        for k, (crash, count) in enumerate([("car", 5), (None, 5), ("car", 2)])
    ]
    spec = layout(contact={"within": 2.0}, sizes={"default": [4, 2]})
    found = opened(write(tmp_path / "a.jsonl", *drives), spec)
    assert [one.count for one in found] == [3, 5, 2]


def test_who_was_in_contact_is_told_of_the_ending_and_no_other(tmp_path: Path) -> None:
    frames = [
        {name: [x, 0, 0, 0, 0, 0, 0] for name, x in (("Ego", 0), ("A", near), ("B", 20))}
        for near in (9, 9, 9, 2.2, 9)
    ]
    run = {**DRIVE, "frames": frames, "crash": "car", "types": dict.fromkeys(frames[0], "car")}
    spec = layout(ego=None, each="car", contact={"within": 2.0}, sizes={"default": [4, 2]})
    told = {
        one.path.name.partition("object=")[2]: (one.count, values(one)[-1]["crash"])
        for one in opened(write(tmp_path / "a.jsonl", run), spec)
    }
    assert told == {"Ego": (4, "car"), "A": (4, "car"), "B": (5, "")}


def change(**changes: Any) -> dict[str, Any]:
    return {**DRIVE, **changes}


@pytest.mark.parametrize(
    ("line", "spec", "message"),
    [
        (change(frames=3), {}, "town.jsonl:1: frames: 3 is no list of frames"),
        (change(frames=[[]]), {}, "frames[0]: [] holds no objects|there is no object 'Ego'"),
        (change(frames=[{"Ego": [1, 2]}]), {}, "frames[0].Ego: has 2 values, and column 2"),
        (change(frames=[{"Ego": [1, 2, None, 4, 5, 6, 7]}]), {}, "x or y is not known"),
        (change(frames=[{"Ego": "far"}]), {}, "frames[0].Ego: 'far' is no list"),
        (change(frames=[{"Ego": ["1", 2, 3, 4, 5, 6, 7]}]), {}, "'1' is no number"),
        (change(period=0), {}, "period: 0 is no period in s"),
        (change(period=1e300), {}, "1e+300 is no time"),
        (change(frames=[{"Ego": [10**400, 2, 3, 4, 5, 6, 7]}]), {}, "is no number"),
        (change(drive=None), {}, "drive: None is no name of a run"),
        (change(types=[]), {}, "types: [] is no dictionary of kinds"),
        (change(types={"A": 3}), {}, "A: 3 is no kind"),
        (DRIVE, {"sizes": {"Ego": [4, 2]}}, "A is 'NPC', and trajectories.sizes has no size"),
        (DRIVE, {"ending": "end"}, "end: the run does not say it"),
        (DRIVE, {"ego": "Ego0"}, "there is no object 'Ego0'"),
        (DRIVE, {"ego": None, "each": "tram", "ending": []}, "holds no object of kind tram"),
        ([], {}, "is [], no object"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, line: Any, spec: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "town.jsonl", line)
    with pytest.raises(RecordingError) as raised:
        opened(path, layout(**spec))
    assert any(part in str(raised.value) for part in message.split("|"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a_cars", "id,frame,x,psi\n", "a_cars.csv:1: has no column 'y'"),
        ("a_cars", "id,frame,x,x,y,psi\n", "a_cars.csv:1: has two columns 'x'"),
        ("a_cars", "id,frame,x,y,psi\n1,1,0,0,0\n", "no table of the run has a column 'v'"),
        ("a_people", "id,frame,x,y,vx,vy\n1,1,0,0,0\n", "a_people.csv:2: has 5 cells"),
        ("a_people", "id,frame,x,y,vx,vy\n1,1,0,far,0,0\n", "y: 'far' is no number"),
        ("a_people", "id,frame,x,y,vx,vy\n1,1,1_0,0,0,0\n", "x: '1_0' is no number"),
        ("a_people", "id,frame,x,y,vx,vy\n1,1,0,,0,0\n", "x or y is not known"),
        ("a_people", "id,frame,x,y,vx,vy\n1,,0,0,0,0\n", "frame: '' is no time"),
        ("a_people", "id,frame,x,y,vx,vy\n1,1e99,0,0,0,0\n", "1e+99 is no time"),
        ("a_cars", TABLES["a_cars.csv"] + "1,11,0,1,0,2\n", "stands twice in frame 1"),
    ],
)
def test_what_is_wrong_in_a_table_is_named(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(RecordingError) as raised:
        opened(tables(tmp_path, **{name: text}), TrajectoriesSpec.model_validate(OF_TABLES))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"each": "car"}, "one of: ego (a name), each (kinds)"),
        ({"ego": None, "each": "car"}, "ending says of a whole run how it ended"),
        ({"time": "t"}, "one of: period"),
        ({"sizes": {}}, "sizes are missing"),
        ({"ending": [], "contact": {"within": 1}}, "contact needs ending"),
        ({"ending": "pose"}, "pose is a signal already"),
        ({"columns": {"x": 0, "y": 1, "vx": 2}}, "vx and vy go together"),
        ({"files": {"car": "cars"}}, "pattern"),
    ],
)
def test_a_section_that_contradicts_itself_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)")):
        layout(**changes)


@pytest.mark.long
@pytest.mark.skipif(not (DATA / "dut").exists(), reason="the recorded traffic is not here")
def test_recorded_traffic_is_read(repository: Path) -> None:
    from forewarn.config.file import load_spec

    spec = load_spec(repository / "config/traffic_trajectories.yaml").trajectories
    assert spec is not None
    found = find_trajectories(DATA / "dut", spec)
    assert len(found) > 30
    assert all(open_recording(one).count > 24 for one in sampled(found))
