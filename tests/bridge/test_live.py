"""From a Cyber channel over bridge and monitor to a pad message: real Cyber RT, real ROS 2."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import Any

import pytest

pytestmark = [pytest.mark.ros, pytest.mark.timeout(280), pytest.mark.usefixtures("pycyber")]
STOP, RESUME_CRUISE = 4, 5


def pad(action: int) -> Any:
    return lambda line: line.get("pad") == action


def test_a_risky_speed_ends_in_a_stop_and_a_safe_one_in_a_release(world: Any) -> None:
    apollo = world.apollo(50)
    record = world.folder / "session.mcap"
    monitor = world.monitor(record=record)
    world.bridge(repeat=0.5)
    apollo.tell(speed=4.5)
    first = apollo.wait_for(pad(STOP))
    again = apollo.wait_for(pad(STOP))
    assert again["number"] > first["number"]  # Planning ignores a header that it has seen.
    apollo.tell(speed=0.5)
    assert apollo.wait_for(pad(RESUME_CRUISE))["number"] > again["number"]
    monitor.process.send_signal(signal.SIGINT)
    monitor.process.wait(timeout=30)
    verified = subprocess.run(
        [sys.executable, "-m", "forewarn", "verify", str(record)], capture_output=True, text=True
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_a_dead_channel_is_seen_as_stale_and_a_restarted_one_is_found_again(world: Any) -> None:
    apollo = world.apollo(50)
    world.monitor()
    world.bridge()
    apollo.tell(speed=4.5)
    apollo.wait_for(pad(STOP))
    apollo.stop(kill=True)
    apollo = world.apollo(50)
    apollo.tell(speed=0.5)
    # The monitor learns of the new values: the intervention ends.
    apollo.wait_for(pad(RESUME_CRUISE))


def test_a_bridge_that_was_killed_goes_on_where_it_stopped(world: Any) -> None:
    apollo = world.apollo(50)
    world.monitor()
    bridge = world.bridge(repeat=0.5)
    apollo.tell(speed=4.5)
    apollo.wait_for(pad(STOP))
    bridge.stop(kill=True)
    late = time.time_ns() + 1_000_000_000  # what the dead bridge had written has arrived by then
    world.bridge(repeat=0.5)
    # The intervention is latched: the new bridge begins with what holds.
    apollo.wait_for(lambda line: line.get("pad") == STOP and line["time"] > late)
    apollo.tell(speed=0.5)
    apollo.wait_for(pad(RESUME_CRUISE))
