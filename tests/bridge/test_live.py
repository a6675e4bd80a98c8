"""From a Cyber channel over bridge and monitor back to Cyber: real Cyber RT, real ROS 2.

Apollo, monitor and bridge are processes of their own that the tests share, for starting them takes
longer than any test; those with the fixture `running` begin with nothing asked of Apollo.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forewarn.cli.main import main

pytestmark = [pytest.mark.ros, pytest.mark.timeout(900), pytest.mark.usefixtures("pycyber")]
STOP, RESUME_CRUISE = 4, 5
OK, WARN, ERROR = 0, 1, 2
CHASSIS, PLANNING = "/apollo/canbus/chassis", "/apollo/planning/command"
SIGNALS = "/monitor/input/signals"


def pad(action: int) -> Any:
    return lambda line: line.get("pad") == action


@pytest.fixture(scope="module")
def processes(module_world: Any, pycyber: None, apollo: Any) -> Any:
    return apollo.live().Running(module_world)


@pytest.fixture
def bridged(processes: Any) -> dict[str, Any]:
    """Return the parameters with which most tests want their bridge."""
    return {"repeat": 0.5, "journal": processes.world.folder / "journal.json"}


@pytest.fixture
def running(processes: Any, module_listener: Any, bridged: dict[str, Any]) -> Iterator[Any]:
    apollo, _, _ = processes.apollo, processes.monitor, processes.bridge(**bridged)
    apollo.tell(pause=False, speed=0.5)
    module_listener.diagnostic(CHASSIS, lambda level, text, values: level == OK)
    module_listener.diagnostic("commands", lambda level, text, values: text == "none in force")
    while not apollo.lines.empty():
        apollo.lines.get()
    yield processes


def test_by_the_service_of_actions(processes: Any) -> None:
    apollo, _ = processes.apollo, processes.monitor
    processes.bridge(way="action", repeat=0.5)
    apollo.tell(speed=4.5)
    first = apollo.wait_for(lambda line: line.get("action") == 5)
    again = apollo.wait_for(lambda line: line.get("action") == 5)
    assert again["number"] > first["number"]
    apollo.tell(speed=0.5)
    apollo.wait_for(lambda line: line.get("action") == 6)


def test_a_risky_speed_ends_in_a_stop_and_a_safe_one_in_a_release(running: Any) -> None:
    apollo = running.apollo
    apollo.tell(speed=4.5)
    first = apollo.wait_for(pad(STOP))
    again = apollo.wait_for(pad(STOP))
    assert again["number"] > first["number"]  # Planning ignores a header that it has seen.
    apollo.tell(speed=0.5)
    assert apollo.wait_for(pad(RESUME_CRUISE))["number"] > again["number"]


def test_a_channel_that_falls_silent_is_told_and_stale_for_the_monitor(
    running: Any, module_listener: Any
) -> None:
    from forewarn_msgs.msg import Signals

    running.apollo.tell(pause=True)
    module_listener.wait_for(Signals, SIGNALS, lambda m: m.values and m.values[0] != m.values[0])
    _, text, _ = module_listener.diagnostic(CHASSIS, lambda level, text, values: level == WARN)
    assert "nothing came for" in text
    running.apollo.tell(pause=False)
    module_listener.wait_for(Signals, SIGNALS, lambda m: m.values and m.values[0] == m.values[0])


def test_a_restarted_publisher_is_found_again(running: Any) -> None:
    running.apollo.tell(speed=4.5)
    running.apollo.wait_for(pad(STOP))
    running.apollo.stop(kill=True)
    apollo = running.apollo  # another one
    apollo.tell(speed=0.5)
    # The monitor learns of the new values: the intervention ends.
    apollo.wait_for(pad(RESUME_CRUISE))


def test_a_bridge_that_was_killed_goes_on_where_it_stopped(
    running: Any, bridged: dict[str, Any]
) -> None:
    running.apollo.tell(speed=4.5)
    running.apollo.wait_for(pad(STOP))
    running.bridge(**bridged).stop(kill=True)
    late = time.time_ns() + 300_000_000  # what the dead bridge had written has arrived by then
    running.bridge(**bridged)
    # The intervention is latched: the new bridge begins with what holds.
    running.apollo.wait_for(lambda line: line.get("pad") == STOP and line["time"] > late)
    running.apollo.tell(speed=0.5)
    running.apollo.wait_for(pad(RESUME_CRUISE))


@pytest.mark.parametrize("mode", ["data", "scout"])
def test_a_process_that_holds_cyber_is_started_again(
    running: Any, module_listener: Any, bridged: dict[str, Any], mode: str
) -> None:
    bridge = running.bridge(**bridged).process.pid
    children = Path(f"/proc/{bridge}/task/{bridge}/children").read_text().split()
    commands = {
        child: Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0") for child in children
    }
    (found,) = (command for command, words in commands.items() if mode.encode() in words)
    os.kill(int(found), signal.SIGKILL)
    level, _, _ = module_listener.diagnostic(
        "connection", lambda level, text, values: f"({mode}) ended" in text
    )
    assert level == ERROR
    module_listener.diagnostic("connection", lambda level, text, values: level == OK)
    running.apollo.tell(speed=4.5)
    running.apollo.wait_for(pad(STOP))
    running.apollo.tell(speed=0.5)
    running.apollo.wait_for(pad(RESUME_CRUISE))


def test_a_session_with_all_that_replays_bit_for_bit(running: Any) -> None:
    running.apollo.tell(speed=4.5)
    running.apollo.wait_for(pad(STOP))
    monitor, record = running.monitor, running.record
    monitor.interrupt()
    assert main(["verify", str(record)]) == 0
