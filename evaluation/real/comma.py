"""A segment of comma2k19 as rosbag2 files: what the car's bus said, on ROS 2 topics.

    python -m evaluation.real.comma --data DATA --output FOLDER

DATA is a segment (a folder with `processed_log`). Two bags are written, cut at `--cut` seconds:
`first` to learn from and `rest` to predict. Log times are those of the source, which count from
the phone's start, and begin at zero here.

| Topic | Type | Source |
|---|---|---|
| `/vehicle/speed` | `geometry_msgs/msg/TwistStamped` | speed on the bus, 83 Hz |
| `/vehicle/acceleration` | `geometry_msgs/msg/AccelStamped` | its change over the last 0.5 s |
| `/radar/tracks` | `visualization_msgs/msg/MarkerArray` | all tracks of one sweep, 20 Hz |
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.harness.command import command
from evaluation.harness.messages import Message, Topic, header, message, write_bag
from forewarn.errors import InputError

SPEED = Topic("/vehicle/speed", "geometry_msgs/msg/TwistStamped")
ACCELERATION = Topic("/vehicle/acceleration", "geometry_msgs/msg/AccelStamped")
TRACKS = Topic("/radar/tracks", "visualization_msgs/msg/MarkerArray")

SWEEP_GAP = 0.02
"""Seconds without a track that part two sweeps; the tracks of one come within 10 ms."""

SLOPE = 0.5

TRACK = ("ahead", "left", "relative speed", "", "", "number", "new")

Floats = NDArray[np.float64]


class Segment(NamedTuple):
    """Times in seconds from the beginning, and what was measured at them.

    Columns of `radar` are distance ahead, to the left, and relative speed (m, m, m/s), then two
    that are empty, the track's number, and whether it is new.
    """

    speed_time: Floats
    speed: Floats
    radar_time: Floats
    radar: Floats


def load_segment(folder: Path) -> Segment:
    """Read a segment of comma2k19; raises FileNotFoundError if it is none."""
    bus = folder / "processed_log" / "CAN"
    if not bus.is_dir():
        raise FileNotFoundError(f"{folder} is no segment of comma2k19: it lacks processed_log/CAN")
    speed_time, speeds = _measured(bus / "speed", 1)
    radar_time, radar = _measured(bus / "radar", len(TRACK))
    start = min(speed_time[0], radar_time[0])
    return Segment(speed_time - start, speeds[:, 0], radar_time - start, radar)


def _measured(folder: Path, columns: int) -> tuple[Floats, Floats]:
    """Return times and rows of values; raises InputError if they are of another kind."""
    try:
        times, values = (np.load(folder / name) for name in ("t", "value"))
        values = values.reshape(len(times), -1) if len(times) else np.zeros((0, 0))
        known = np.isfinite(times) & np.isfinite(values[:, : min(columns, 3)]).all(axis=1)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"cannot be read: {error}", accepted="t and value as NumPy writes them", file=folder
        ) from error
    if not known.any() or values.shape[1] < columns:
        raise InputError(
            f"has {int(known.sum())} rows of {values.shape[1]} values",
            accepted=f"rows of {columns} values or more, which are finite", file=folder,
        )  # fmt: skip
    times = times[known]
    if (falls := np.flatnonzero(np.diff(times) < 0)).size:
        raise InputError(
            f"is {times[falls[0] + 1]} after {times[falls[0]]}", accepted="times that do not fall",
            file=folder, key="t",
        )  # fmt: skip
    return times, values[known]


def _message(time: float, topic: Topic, fields: dict[str, Any]) -> Message:
    stamp = round(float(time) * 1e9)
    if topic is not TRACKS:
        fields["header"] = header(stamp, "base_link")
    return Message(stamp, topic, message(topic.type, fields))


def _motion(segment: Segment) -> Iterator[Message]:
    times, speeds = segment.speed_time, segment.speed
    before = np.maximum(np.searchsorted(times, times - SLOPE), 0)
    spans = times - times[before]
    for row, time in enumerate(times):
        yield _message(time, SPEED, {"twist": {"linear": {"x": float(speeds[row])}}})
        if spans[row] > SLOPE / 2:
            slope = float((speeds[row] - speeds[before[row]]) / spans[row])
            yield _message(time, ACCELERATION, {"accel": {"linear": {"x": slope}}})


def _sweeps(segment: Segment) -> Iterator[Message]:
    cuts = np.flatnonzero(np.diff(segment.radar_time) > SWEEP_GAP) + 1
    times, sweeps = (np.split(item, cuts) for item in (segment.radar_time, segment.radar))
    for stamps, tracks in zip(times, sweeps, strict=True):
        # A sweep is known when its last track is.
        yield _message(stamps[-1], TRACKS, {"markers": list(map(_marker, tracks))})


def _marker(track: Floats) -> dict[str, Any]:
    """Return a track: points[0] is where it is, points[1] less points[0] its relative velocity."""
    x, y, speed = (float(value) for value in track[:3])
    here = {"x": x, "y": y}
    points = [here, {"x": x + speed, "y": y}]
    return {
        "ns": "radar",
        "id": int(np.nan_to_num(track[5])),
        "pose": {"position": here},
        "points": points,
    }


def write_bags(data: Path, output: Path, cut: float = 40.0) -> tuple[Path, Path]:
    """Write what came before `cut` seconds and what came from then on; return both bags."""
    segment = load_segment(data)
    ends = max(segment.speed_time[-1], segment.radar_time[-1])
    if ends <= cut:
        raise InputError(
            f"is {ends:.3g} s long", accepted=f"more than the {cut:g} s that are learned from",
            file=data,
        )  # fmt: skip
    everything = sorted([*_motion(segment), *_sweeps(segment)], key=lambda each: each.time_ns)
    output.mkdir(parents=True, exist_ok=True)
    early = [m for m in everything if m.time_ns < cut * 1e9]
    parts = {output / "first": early, output / "rest": everything[len(early) :]}
    for path, kept in parts.items():
        shutil.rmtree(path, ignore_errors=True)  # of the run before
        write_bag(path, (SPEED, ACCELERATION, TRACKS), kept)
    return output / "first", output / "rest"


def main(data: Path, output: Path, cut: float = 40.0) -> None:
    """Write the bags."""
    print(*write_bags(data, output, cut), sep="\n")


if __name__ == "__main__":
    command(main)
