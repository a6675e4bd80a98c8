"""From a Cyber channel over bridge and monitor back to Cyber: real Cyber RT, real ROS 2.

Apollo, monitor and bridge are processes of their own that the tests share, for starting them takes
longer than any test; those with the fixture `running` begin with nothing asked of Apollo.
"""

from __future__ import annotations

import os
import signal
import struct
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from apollo_bridge.layouts import own_class
from forewarn.cli.main import main

pytestmark = [pytest.mark.ros, pytest.mark.timeout(900), pytest.mark.usefixtures("pycyber")]
STOP, RESUME_CRUISE = 4, 5
OK, WARN, ERROR = 0, 1, 2
CHASSIS, PLANNING = "/apollo/canbus/chassis", "/apollo/planning/command"
PLANNING_COMMAND = "apollo.planning.PlanningCommand"
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


def test_messages_lost_in_a_burst_are_counted(running: Any, module_listener: Any) -> None:
    def counts(values: dict[str, str]) -> tuple[int, int, int]:
        received, lost, late = (int(values[key]) for key in ("received", "lost", "late"))
        return received, lost, late

    running.apollo.tell(pause=True)
    _, _, values = module_listener.diagnostic(
        CHASSIS, lambda level, text, values: text.startswith("nothing came for")
    )
    before = counts(values)
    running.apollo.tell(burst=1000)
    running.apollo.wait_for(lambda line: "burst" in line)
    running.apollo.tell(pause=False)
    # The numbers in the headers leave no gap unnoticed: whatever was sent since the first message
    # that came was received, or is lost.
    _, _, values = module_listener.diagnostic(
        CHASSIS,
        lambda level, text, values: (
            level == OK and sum(counts(values)[:2]) >= sum(before[:2]) + 1000
        ),
    )
    received, lost, late = (new - old for new, old in zip(counts(values), before, strict=True))
    assert received + lost <= 1000 + 500
    assert 0 <= late <= received


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


def test_an_intervention_that_ends_while_no_bridge_runs_is_ended_by_the_next_bridge(
    running: Any, module_listener: Any, bridged: dict[str, Any]
) -> None:
    from forewarn_msgs.msg import Intervention, Signals

    running.apollo.tell(speed=4.5)
    running.apollo.wait_for(pad(STOP))
    running.bridge(**bridged).stop(kill=True)
    running.apollo.tell(speed=0.5)
    publisher = module_listener.node.create_publisher(Signals, SIGNALS, 10)

    def safe() -> None:  # in the place of the dead bridge
        stamp = module_listener.node.get_clock().now().to_msg()
        publisher.publish(Signals(names=["speed"], values=[0.5], stamps=[stamp]))

    timer = module_listener.node.create_timer(0.1, safe)
    over = module_listener.wait_for(
        Intervention, "/monitor/output/intervention", lambda message: not message.active
    )
    assert over is True
    module_listener.node.destroy_timer(timer)
    module_listener.node.destroy_publisher(publisher)
    running.bridge(**bridged)
    running.apollo.wait_for(pad(RESUME_CRUISE))


def test_a_session_with_all_that_replays_bit_for_bit(running: Any) -> None:
    running.apollo.tell(speed=4.5)
    running.apollo.wait_for(pad(STOP))
    monitor, record = running.monitor, running.record
    monitor.interrupt()
    assert main(["verify", str(record)]) == 0


@pytest.fixture
def other(processes: Any) -> Any:
    """Return a bridge with a type of its own and speed limits, for a monitor that tests play."""
    text = (processes.world.folder / "monitor.yaml").read_text()
    for old, new in (
        ("/apollo/canbus/chassis", "/demo/tyres"),
        ("apollo.canbus.Chassis", "demo.Tyres"),
        ("speed_mps", "grip"),
        ("intervention: COMFORTABLE_STOP", "intervention: LIMIT_SPEED\n    speed_limit: 2.0"),
    ):
        assert old in text
        text = text.replace(old, new)
    config = processes.world.folder / "other.yaml"
    config.write_text(text)
    return processes.bridge(config=config, monitor="/other", repeat=0.5)


def test_a_limit_of_speed_is_given_for_the_route_and_taken_back(
    processes: Any, module_listener: Any, other: Any
) -> None:
    from forewarn_msgs.msg import Intervention, RiskArray
    from rclpy.qos import DurabilityPolicy, QoSProfile

    latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = module_listener.node.create_publisher(
        Intervention, "/other/output/intervention", latched
    )
    verdicts = module_listener.node.create_publisher(RiskArray, "/other/output/risk", 1)

    def say() -> None:  # nothing is taken back unless the newest verdict is fresh
        verdict = RiskArray()
        verdict.header.stamp = module_listener.node.get_clock().now().to_msg()
        verdicts.publish(verdict)
        publisher.publish(wanted)

    route = own_class(PLANNING_COMMAND)(lane_follow_command=b"a route", is_motion_command=True)
    numbers = count(1)

    def drive() -> None:  # Cyber keeps nothing for a bridge that comes later: say it again
        route.header.sequence_num = next(numbers)
        data = route.SerializeToString().hex()
        processes.apollo.tell(publish=PLANNING, message=PLANNING_COMMAND, data=data)

    wanted = Intervention(action=Intervention.LIMIT_SPEED, active=True, speed_limit=2.0, id=1)
    timers = [
        module_listener.node.create_timer(0.2, drive),
        module_listener.node.create_timer(0.05, say),
    ]

    def wait_for(condition: Any) -> Any:
        def found(_: Any) -> Any:
            while not processes.apollo.lines.empty():
                line = processes.apollo.lines.get()
                message = own_class(PLANNING_COMMAND).FromString(
                    bytes.fromhex(line.get("planning", ""))
                )
                if message.header.module_name == "forewarn" and condition(message):
                    return message
            return None

        return module_listener.wait_for_any(found)

    limit = wait_for(lambda message: message.target_speed == 2.0)
    assert (limit.lane_follow_command, limit.is_motion_command) == (b"a route", False)
    wanted.active, wanted.action = False, Intervention.NONE
    end = wait_for(lambda message: not message.HasField("target_speed"))
    assert end.lane_follow_command == b"a route"
    for timer in timers:
        module_listener.node.destroy_timer(timer)
    for one in (publisher, verdicts):
        module_listener.node.destroy_publisher(one)


def test_a_channel_of_a_type_that_only_its_publisher_knows(
    processes: Any, module_listener: Any, other: Any, apollo: Any
) -> None:
    from forewarn_msgs.msg import Signals

    file = apollo.FileDescriptorProto(name="demo/tyres.proto", package="demo", syntax="proto2")
    file.message_type.add(name="Tyres").field.add(name="grip", number=7, type=1, label=1)
    grip = b"\x39" + struct.pack("<d", 0.25)  # field 7, 64 bits
    definition = file.SerializeToString().hex()

    def publish() -> None:
        processes.apollo.tell(
            publish="/demo/tyres", message="demo.Tyres", data=grip.hex(), file=definition
        )

    timer = module_listener.node.create_timer(0.2, publish)
    found = module_listener.wait_for(
        Signals, "/other/input/signals", lambda m: m.values and m.values[0] == 0.25
    )
    module_listener.node.destroy_timer(timer)
    assert found
