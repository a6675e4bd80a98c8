"""What a recording holds, shown by ``forewarn info``: against the recording's own messages."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forewarn.cli.info_command import HEIGHT, WIDTH, plotted
from forewarn.recordings.registry import open_recording


def test_topics_with_their_rates_and_gaps(forewarn: Any, corridor_run: Any) -> None:
    path = corridor_run.recordings[0]
    found = json.loads(forewarn("info", path, "--json").out)["recordings"][0]
    with open_recording(path) as recording:
        arrivals: dict[str, list[int]] = {}
        for time_ns, topic, _ in recording.read(None):
            arrivals.setdefault(topic, []).append(time_ns)
        assert found["messages"] == recording.count
        assert found["duration"] == pytest.approx(recording.duration)
    assert [one["name"] for one in found["topics"]] == sorted(arrivals)
    for one in found["topics"]:
        steps = np.diff(arrivals[one["name"]]) / 1e9
        assert one["messages"] == len(arrivals[one["name"]])
        assert one["rate"] == pytest.approx(1 / np.median(steps))
        assert one["longest"] == pytest.approx(steps.max())
    watched = {one["name"]: one["watched"] for one in found["topics"]}
    assert watched["/odom"][0] == "twist.twist.linear.x"
    shown = forewarn("info", path)
    assert shown.code == 0
    assert "nav_msgs/msg/Odometry" in shown.out and "longest gap" in shown.out


def test_a_field_is_drawn_and_a_wrong_one_names_what_there_is(
    forewarn: Any, corridor_run: Any
) -> None:
    path = corridor_run.recordings[0]
    drawn = forewarn("info", path, "--plot", "/odom:twist.twist.linear.x")
    assert drawn.out.count("┤") == HEIGHT
    wrong = forewarn("info", path, "--plot", "/speed:data")
    assert wrong.code == 2
    assert "has no topic '/speed'" in wrong.err and "/odom" in wrong.err
    assert forewarn("info", path, "--plot", "/odom:speed").code == 2


def test_values_of_a_trace_and_stamps_of_another_clock(forewarn: Any, tmp_path: Path) -> None:
    trace = tmp_path / "run.jsonl"
    rows = [{"t": i / 10, "gap": 9 - i, **({"mode": "go"} if i else {})} for i in range(10)]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = json.loads(forewarn("info", trace, "--json").out)["recordings"][0]
    assert found["names"]["gap"] == {"lines": 10, "low": 0.0, "high": 9.0}
    assert found["names"]["mode"]["lines"] == 9
    assert "no value 'speed'" in forewarn("info", trace, "--plot", "speed").err
    assert forewarn("info", trace, "--plot", "gap").out.count("┤") == HEIGHT


def test_a_picture_has_the_range_of_each_part_of_the_time() -> None:
    lines = [*plotted([0.0, 1.0, 1.0, 2.0], [0.0, 5.0, 10.0, math.nan])]
    assert len(lines) == HEIGHT + 2
    assert lines[0].startswith("10 ┤") and lines[HEIGHT - 1].startswith(" 0 ┤█")
    middle = 5 + WIDTH // 2 - 1
    filled = [line[middle : middle + 1] == "█" for line in lines[:HEIGHT]]
    assert filled == [True] * 6 + [False] * 6, "from 5 to 10 at the middle of the time"
    assert [*plotted([0.0], [math.nan])] == ["no number arrived"]
