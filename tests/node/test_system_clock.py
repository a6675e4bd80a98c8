"""The system's clock is set while a monitor runs: it goes on, and takes nothing back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from forewarn_msgs.msg import Intervention
from live_process import LIMIT, environment
from live_ros import Probe, monitor_parameters
from set_clock import Setter, settable
from small_world import MONITOR

from forewarn_ros.messages import from_time

pytestmark = pytest.mark.ros
RUN = "from monitor_node.main import main; main()"


@pytest.fixture
def set_clock(world: Path, tmp_path: Path, domain: int) -> Iterator[Setter]:
    """Start a monitor, and return a function that sets its system's clock ahead, in seconds."""
    config = tmp_path / "monitor.yaml"
    config.write_text(f"{MONITOR}mode: act\n")
    arguments = ["--ros-args"]
    for name, value in monitor_parameters(world, config=str(config), mode="act").items():
        arguments += ["-p", f"{name}:={json.dumps(value)}"]
    with settable(tmp_path) as (variables, set_clock):
        monitor = subprocess.Popen(
            [sys.executable, "-c", RUN, *arguments], env=environment(domain) | variables
        )
        yield set_clock
        monitor.terminate()
        assert monitor.wait(LIMIT) == 0


@pytest.mark.parametrize("ahead", [-3600.0, pytest.param(100.0, marks=pytest.mark.long)])
def test_a_monitor_goes_on_by_a_clock_that_was_set_and_holds_what_it_asked_for(
    set_clock: Setter, probe: Probe, ahead: float
) -> None:
    probe.wait_for_start()

    def driven() -> bool:
        for topic, value in (("/world/odometry", 3.0), ("/world/distance", 5.0)):
            probe.say(topic, value)
        stopped = probe.risks and probe.interventions
        return bool(stopped) and probe.interventions[-1].action == Intervention.COMFORTABLE_STOP

    probe.wait(driven, "a stop")
    before, known, count = probe.risks[-1], len(probe.interventions), len(probe.risks)
    set_clock(ahead)
    start = probe.wait_for_start(2)
    assert "the clock jumped " in start["reason"]

    def seen() -> bool:
        """Wait for some ticks at which all is known again, by the clock as it is."""
        driven()
        after = [risks for risks in probe.risks[count:] if not risks.risks[0].stale_signals]
        passed = [from_time(r.header.stamp) - from_time(before.header.stamp) for r in after]
        return sum(abs(span / 1e9 - ahead) < 60.0 for span in passed) >= 5

    probe.wait(seen, "ticks after the clock was set")
    held = probe.interventions[known:]
    assert held
    assert all(one.active and one.id == held[0].id for one in held)
