"""A scanner that goes blind while the robot drives, or has something too near to measure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from forewarn.cli.main import main

STORE = get_typestore(Stores.ROS2_HUMBLE)
SCAN = "sensor_msgs/msg/LaserScan"
RECIPES = (
    "nearest_beam(ranges, range_min, range_max)",
    "min((r for r in ranges if isfinite(r) and r >= range_min), default=inf)",
)
FROM = 6.0


@pytest.mark.parametrize("recipe", RECIPES)
def test_what_the_monitor_asks_for_when_a_scanner_goes_blind(
    corridor_run: Any,
    drive: Callable[[int, float], list[Any]],
    record: Callable[[Path, list[Any]], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    recipe: str,
) -> None:
    config, model = tmp_path / "monitor.yaml", tmp_path / "model.json"
    config.write_text(corridor_run.config.read_text().replace("min(ranges)", recipe))
    bags = [str(bag) for bag in corridor_run.recordings[:4]]
    assert main(["learn", *bags, "-c", str(config), "-o", str(model), "-q"]) == 0

    def first_alerts(ranges: list[float]) -> dict[str, float]:
        messages = drive(7, 10.0)
        begin = messages[0].time_ns + round(FROM * 1e9)
        changed = []
        for message in messages:
            if message.topic == "/scan" and message.time_ns >= begin:
                found = STORE.deserialize_cdr(message.data, SCAN)
                found.ranges = np.array(ranges, np.float32)
                message = message._replace(data=bytes(STORE.serialize_cdr(found, SCAN)))
            changed.append(message)
        bag = record(tmp_path / f"{len(ranges)}{ranges[:2]}.mcap", changed)
        capsys.readouterr()
        assert main(["replay", str(bag), "-c", str(config), "-m", str(model), "--json"]) in (0, 1)
        (found,) = json.loads(capsys.readouterr().out)["recordings"]
        alerts = [event for event in found["events"] if event["event"] == "alert"]
        return {event["property"]: event["elapsed"] for event in reversed(alerts)}

    for blind in ([math.nan] * 36, [0.0] * 36, [], [-math.inf] * 36, [-math.inf, *[12.0] * 35]):
        found = first_alerts(blind)
        assert found["no_contact"] <= FROM + 0.3
        # `enter: 2` if blind; what is near may still be answered for 0.8 s
        assert found["slow_down"] <= FROM + (1.0 if -math.inf in blind else 0.4)
    assert min(first_alerts([math.inf] * 36).values(), default=math.inf) > FROM + 0.4
