"""Scanners that measure nothing where a rule asks, and sensors that are stuck."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corridor import START_NS, STORE, Message, write_recording

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.observing import observe
from forewarn.logic.specification import compile_spec
from forewarn.recordings.registry import open_recording

SCAN = "sensor_msgs/msg/LaserScan"
FILE = """
rate: 10
TIME
signals:
  nearest:
    topic: /scan
    type: sensor_msgs/msg/LaserScan
    value: nearest_beam(ranges, range_min, range_max)
    timeout: 0.5
  stamp:
    topic: /scan
    type: sensor_msgs/msg/LaserScan
    value: header.stamp.sec + header.stamp.nanosec / 1000000000
    timeout: 0.5
  live: {value: nearest if for_how_long(stamp == previous(stamp)) < 0.5 else nan}
  room: {value: nearest - 0.1}
predicates: {near: nearest < 0.3, tight: room < 0.25, far: nearest > 2, seen: live < 9}
bins: {room: [0.35, 1.0]}
properties: {keep_off: {formula: always(not near), horizon: 1}}
"""


def scan(tick: int, beams: list[float], stamp: int | None = None, low: float = 0.4) -> Message:
    types, floats = STORE.types, np.array(beams, np.float32)
    stamp_ns = START_NS + (tick if stamp is None else stamp) * 100_000_000
    time = types["builtin_interfaces/msg/Time"](stamp_ns // 10**9, stamp_ns % 10**9)
    header = types["std_msgs/msg/Header"](time, "laser")
    message = types[SCAN](header, 0.0, 1.0, 0.1, 0.0, 0.0, low, 8.0, floats, floats[:0])
    data = bytes(STORE.serialize_cdr(message, SCAN))
    return Message(START_NS + tick * 100_000_000, "/scan", SCAN, data)


@pytest.mark.parametrize(
    ("beams", "told"),
    [
        ([0.5, 3.0], True),
        ([0.0, math.nan], True),
        ([-math.inf, 3.0], False),
        ([0.2, 3.0], False),
    ],
)
def test_a_limit_below_what_a_scanner_measures_is_named(
    forewarn: Callable[..., Any], tmp_path: Path, beams: list[float], told: bool
) -> None:
    config = tmp_path / "monitor.yaml"
    config.write_text(FILE.replace("TIME", ""))
    bag = write_recording(
        tmp_path / "run.mcap", [scan(tick, beams if tick == 5 else [3.0]) for tick in range(10)]
    )
    result = forewarn("validate", config, "--bag", bag)
    assert result.code == int(told)
    text = " ".join(result.text.split())
    # room < 0.35 is nearest < 0.45, which the scanner does measure.
    expected = "near, tight changes only below 0.4 m, which is range_min of /scan"
    assert (expected in text) is told
    assert ("changes only below" in text) is told


def known(tmp_path: Path, time: str) -> dict[str, list[int]]:
    """Return the ticks at which signals have a value, where a scanner is stuck from tick 20 on."""
    spec = parse_spec(parse_document(FILE.replace("TIME", time)))
    abstraction = compile_spec(spec).abstraction
    bag = write_recording(
        tmp_path / f"stuck{len(time)}.mcap",
        [scan(tick, [1.0], min(tick, 20)) for tick in range(50)],
    )
    found: dict[str, list[int]] = {name: [] for name in abstraction.signals}
    with open_recording(bag) as recording:
        for number, tick in enumerate(observe(recording, spec, abstraction)):
            for name, value in zip(abstraction.signals, tick.seen.values, strict=True):
                if value is not None:
                    found[name].append(number)
    return found


def test_a_scanner_that_says_the_same_again_and_again_becomes_unknown(tmp_path: Path) -> None:
    by_arrival = known(tmp_path, "")
    assert by_arrival["nearest"] == [*range(50)]  # which is why there are two ways to say so
    assert by_arrival["live"] == [*range(1, 26)]
    by_stamp = known(tmp_path, "timestamp_source: header")
    assert by_stamp["nearest"] == [*range(26)]
