"""A node that holds what it asks for while a signal says so, over real topics and in its record."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from live_ros import Probe, Process
from small_world import DISTANCE, MONITOR, ODOMETRY

from forewarn.assessment.record_replay import replay_record
from forewarn.cli import main

pytestmark = pytest.mark.ros

TEXT = (
    MONITOR.replace("rate: 10", f"clock: steps\nstep: {DISTANCE}")
    .replace("timeout: 0.5", "timeout: 1000")
    .replace("hold: 0.2", "hold: 2\n    hold_while: speed > 2")
    .replace("  no_collision:", "  no_collision:\n    out_of_model: ignore")
    + "mode: act\n"
)
FACT = "brake is held while speed > 2; it is true"


def test_a_node_holds_what_it_asks_for_and_its_record_says_the_same(
    start: Callable[..., Process], probe: Probe, by_steps: Callable[..., dict[str, str]]
) -> None:
    files = by_steps(TEXT)
    process = start(**files, mode="act")
    probe.wait_for_start()
    probe.meet()

    probe.say(ODOMETRY, 3.0)
    for _ in range(3):
        probe.step(5.0)
    for _ in range(12):
        probe.step(40.0)
    probe.say(ODOMETRY, 1.0)
    for _ in range(6):
        probe.step(40.0)
    assert process.stop() == 0, process.output
    ticks = list(replay_record(files["record"]))
    assert [line for tick in ticks for line in tick.differences()] == []
    levels = [tick.result.rows[0].level for tick in ticks]
    low = [tick.result.rows[0].probability < 0.15 for tick in ticks]
    held = [
        tick.result.request is not None and FACT in tick.result.request.evidence for tick in ticks
    ]
    begun = levels.index(2)
    assert levels[begun:15] == [2] * (15 - begun) and levels[-1] == 0
    assert held == [level == 2 for level in levels[:15]] + [False] * (len(held) - 15)
    assert any(low[i - 3 : i] == [True] * 3 for i in range(begun + 3, 15))
    active = [one.active for one in probe.interventions if "brake" in one.properties]
    assert active and all(active)
    assert main(["verify", files["record"]]) == 0
