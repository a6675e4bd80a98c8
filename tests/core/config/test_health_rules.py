"""The rules `rules:health`: quiet on recordings of others, loud where a fault was planted."""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import others_data
import pytest

import forewarn

JACKAL = others_data.DATA / "bags" / "robot_localization_test2.bag"
SEQUOR = others_data.DATA / "robots" / "sequor"
DUT = others_data.DATA / "dut"
RULES = {
    "keeps_commanded_speed": ("speed", "commanded_speed"),
    "keeps_commanded_turn": ("yaw_rate", "commanded_yaw_rate"),
    "does_not_slip": ("yaw_rate", "turn_rate"),
    "does_not_jump": ("speed", "x", "y"),
    "wheels_are_read": ("speed", "commanded_speed"),
    "gyroscope_is_read": ("yaw_rate", "turn_rate"),
    "scanner_is_read": ("speed", "mean_range"),
}

Row = dict[str, float]
Broken = Callable[[list[list[Row]], list[str]], dict[str, int]]


@pytest.fixture
def broken(tmp_path: Path) -> Broken:
    """Return how often each of some rules is broken in runs."""

    def judge(runs: list[list[Row]], rules: list[str]) -> dict[str, int]:
        names = sorted({name for rule in rules for name in RULES[rule]})
        config = tmp_path / "health.yaml"
        signals = ", ".join(f"{name}: {{timeout: 0.3}}" for name in names)
        config.write_text(
            "version: 1\nrate: 10\n"
            f"include: [{{file: 'rules:health', properties: [{', '.join(rules)}]}}]\n"
            f"signals: {{{signals}}}\n"
        )
        paths = [tmp_path / f"{number}.jsonl" for number in range(len(runs))]
        for path, run in zip(paths, runs, strict=True):
            path.write_text("".join(json.dumps(row) + "\n" for row in run))
        found = forewarn.replay(forewarn.load_monitor(config), paths)
        return {name: score.violations for name, score in found.scores.items()}

    return judge


def jackal() -> list[Row]:
    """Return odometry and gyroscope of a real robot with skid steering."""
    from rosbags.highlevel import AnyReader

    rows: list[Row] = []
    with AnyReader([JACKAL]) as reader:
        for connection, time, data in reader.messages():
            message: Any = reader.deserialize(data, connection.msgtype)
            if connection.topic == "/imu/data":
                row = {"turn_rate": message.angular_velocity.z}
            else:
                twist, place = message.twist.twist, message.pose.pose.position
                row = {"speed": twist.linear.x, "yaw_rate": twist.angular.z}
                row |= {"x": place.x, "y": place.y}
            rows.append({"t": time / 1e9} | {name: float(value) for name, value in row.items()})
    return rows


def drive(seconds: float = 20.0) -> list[Row]:
    """Return a robot that follows changing commands with a lag, at 20 Hz."""
    rows, speed, turn, x, heading = [], 0.0, 0.0, 0.0, 0.0
    for step in range(int(seconds * 20)):
        t = step / 20
        wanted, turning = 0.6 + 0.3 * math.sin(t), 0.8 * math.sin(0.7 * t)
        speed += 0.2 * (wanted - speed)
        turn += 0.2 * (turning - turn)
        heading += turn / 20
        x += speed * math.cos(heading) / 20
        rows.append(
            {
                "t": t, "speed": speed, "yaw_rate": turn, "turn_rate": turn + 0.01 * math.cos(t),
                "commanded_speed": wanted, "commanded_yaw_rate": turning, "x": x, "y": 0.0,
                "mean_range": 4 + math.sin(t),
            }
        )  # fmt: skip
    return rows


def frozen(rows: list[Row], *names: str, since: float = 10.0) -> list[Row]:
    """Return a run in which some values stand still from a moment on."""
    held = next(row for row in rows if row["t"] - rows[0]["t"] >= since)
    return [
        row | ({name: held[name] for name in names if name in row} if row["t"] >= held["t"] else {})
        for row in rows
    ]


def test_a_robot_that_does_what_it_is_told_breaks_no_rule(broken: Broken) -> None:
    assert broken([drive()], list(RULES)) == dict.fromkeys(RULES, 0)


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        ("wheels_are_read", ["speed"]),
        ("gyroscope_is_read", ["turn_rate"]),
        ("scanner_is_read", ["mean_range"]),
    ],
)
def test_a_sensor_that_repeats_itself_is_found(broken: Broken, rule: str, names: list[str]) -> None:
    assert broken([frozen(drive(), *names)], [rule])[rule] >= 1


def test_a_robot_that_does_not_do_what_it_is_told_is_found(broken: Broken) -> None:
    rules = ["keeps_commanded_speed", "keeps_commanded_turn", "does_not_slip"]
    blocked = [row | ({"speed": 0.0} if row["t"] > 10 else {}) for row in drive()]
    assert broken([blocked], rules)["keeps_commanded_speed"] >= 1
    spun = [row | ({"yaw_rate": 1.5} if row["t"] > 10 else {}) for row in drive()]
    found = broken([spun], rules)
    assert found["keeps_commanded_turn"] >= 1 and found["does_not_slip"] >= 1


@pytest.mark.parametrize("metres", [1.2, -2.0, 5.0])
def test_a_localization_that_jumps_is_found_once(broken: Broken, metres: float) -> None:
    moved = [row | ({"y": row["y"] + metres} if row["t"] > 10 else {}) for row in drive()]
    assert broken([moved], ["does_not_jump"]) == {"does_not_jump": 1}


@pytest.mark.skipif(not JACKAL.exists(), reason="the bag of others is not here")
def test_a_real_robot_is_nominal_but_for_what_was_planted(broken: Broken) -> None:
    rows, rules = jackal(), ["does_not_jump", "gyroscope_is_read"]
    assert broken([rows], rules) == {"does_not_jump": 0, "gyroscope_is_read": 0}
    assert broken([frozen(rows, "turn_rate", since=30.0)], rules)["gyroscope_is_read"] >= 1
    for row in rows[len(rows) // 2 :]:
        row |= {"x": row["x"] + 3.5} if "x" in row else {}
    assert broken([rows], rules) == {"does_not_jump": 1, "gyroscope_is_read": 0}
    # Its skid steering reports 0.7 rad/s more than the gyroscope half of the time: that is slip.
    assert broken([rows], ["does_not_slip"])["does_not_slip"] >= 1


@pytest.mark.skipif(not SEQUOR.exists(), reason="the trials of others are not here")
def test_no_scanner_of_a_warehouse_robot_stands_still(broken: Broken) -> None:
    runs = []
    for path in sorted(SEQUOR.glob("*.json.gz")):
        frames = json.loads(gzip.decompress(path.read_bytes()))["frames"]
        ranges = [[value for _, value in frame["scan"] if value > 0] for frame in frames]
        runs.append(
            [
                {"t": frame["timestamp"], "speed": frame["lin_vel"][0],
                 "mean_range": sum(values) / max(1, len(values))}
                for frame, values in zip(frames, ranges, strict=True)
            ]
        )  # fmt: skip
    assert len(runs) == 109
    assert broken(runs, ["scanner_is_read"]) == {"scanner_is_read": 0}


@pytest.mark.skipif(not DUT.exists(), reason="the vehicles of others are not here")
def test_no_tracked_vehicle_jumps(broken: Broken) -> None:
    runs: dict[tuple[str, str], list[Row]] = {}
    for path in sorted(DUT.glob("*veh_filtered*")):
        with gzip.open(path, "rt") as stream:
            for row in csv.DictReader(stream):
                names = {"speed": "vel_est", "x": "x_est", "y": "y_est"}
                at = {name: float(row[column]) for name, column in names.items()}
                at["t"] = float(row["frame"]) / 23.98
                runs.setdefault((path.name, row["id"]), []).append(at)
    assert len(runs) == 42
    assert broken(list(runs.values()), ["does_not_jump"]) == {"does_not_jump": 0}
