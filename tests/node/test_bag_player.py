"""The player: what it publishes, how, and what it says when it cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_ros import Probe, Process, Stepper
from nav_msgs.msg import Odometry
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from small_world import DISTANCE, ODOMETRY, START_NS, TYPES, serialized
from std_msgs.msg import Float32

from forewarn.errors import ForewarnError
from forewarn.messages.definitions import installed_message_type
from forewarn.recordings.writing import RecordingWriter
from forewarn_ros.messages import from_time
from monitor_node.bag_player import BagPlayer

pytestmark = pytest.mark.ros
Play = Callable[..., Process]


@pytest.fixture
def play(domain: int, world: Path) -> Iterator[Play]:
    """Return a function that starts a player; it is stopped at the end."""
    processes: list[Process] = []

    def player(*more: str, **parameters: Any) -> Process:
        parameters = {"bag": str(world / "bag.mcap"), **parameters}
        processes.append(Process("bag_player", domain, parameters, *more))
        return processes[-1]

    yield player
    for process in processes:
        process.__exit__()


def finished(probe: Probe, process: Process) -> int:
    return probe.wait(lambda: process.process.poll() is not None, "its end") and (
        process.process.returncode
    )


def write(path: Path, *messages: tuple[str, str, int, bytes]) -> Path:
    with RecordingWriter(path) as writer:
        for topic, kind, time_ns, data in messages:
            if kind.startswith("no_msgs"):
                definition = "float32 data\n"
            else:
                store = installed_message_type(kind).typestore
                definition = store.generate_msgdef(kind, ros_version=2)[0]
            writer.write(topic, kind, definition, time_ns, data)
    return path


def test_bytes_order_and_clock_at_any_rate(play: Play, probe: Probe) -> None:
    heard: list[tuple[str, bytes]] = []
    clocks: list[int] = []
    create = probe.node.create_subscription
    odometry = create(Odometry, "/elsewhere", lambda m: heard.append(("o", m)), 2000, raw=True)
    create(Float32, DISTANCE, lambda m: heard.append(("d", m)), 2000, raw=True)
    create(Clock, "/clock", lambda m: clocks.append(from_time(m.clock)), 2000)
    arguments = ("-r", f"{ODOMETRY}:=/elsewhere")
    # So slow that a busy machine, too, has discovered the publishers before the end.
    process = play(*arguments, rate=0.05, clock=True, start_offset=11.0)
    probe.wait(odometry.get_publisher_count, "a publisher of the other name")
    probe.wait(lambda: clocks and sum(kind == "o" for kind, _ in heard) > 10, "ten messages")
    assert process.stop() == 130
    assert clocks == sorted(clocks)
    assert START_NS + 11_000_000_000 <= clocks[0] <= clocks[-1] <= START_NS + 12_100_000_000
    speeds = [data for kind, data in heard if kind == "o"]
    assert len(speeds) <= 51
    assert all(len(data) == len(serialized(ODOMETRY, 1.0)) for data in speeds)


def test_a_recording_played_to_its_end_is_a_success(play: Play, probe: Probe) -> None:
    assert finished(probe, play(rate=1000.0)) == 0


def test_the_quality_of_the_recording_is_offered(play: Play, probe: Probe, tmp_path: Path) -> None:
    bag = tmp_path / "bag"
    bag.mkdir()
    time_ns, end_ns = START_NS, START_NS + 30_000_000_000
    write(
        bag / "bag.mcap",
        (DISTANCE, TYPES[DISTANCE], time_ns, serialized(DISTANCE, 4.0)),
        (ODOMETRY, TYPES[ODOMETRY], end_ns, serialized(ODOMETRY, 1.0)),
    )
    (bag / "metadata.yaml").write_text(METADATA)
    play(bag=str(bag))
    probe.wait(lambda: probe.node.get_publishers_info_by_topic(ODOMETRY), "publishers")
    (info,) = probe.node.get_publishers_info_by_topic(ODOMETRY)
    assert info.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT
    late: list[Float32] = []
    kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    probe.node.create_subscription(Float32, DISTANCE, late.append, kept)
    probe.wait(lambda: late, "the message that was kept for late subscribers")
    assert late[0].data == 4.0


METADATA = f"""\
rosbag2_bagfile_information:
  version: 9
  storage_identifier: mcap
  duration: {{nanoseconds: 30000000000}}
  starting_time: {{nanoseconds_since_epoch: {START_NS}}}
  message_count: 2
  topics_with_message_count:
    - topic_metadata:
        name: {DISTANCE}
        type: std_msgs/msg/Float32
        serialization_format: cdr
        offered_qos_profiles: [{{reliability: reliable, durability: transient_local}}]
      message_count: 1
    - topic_metadata:
        name: {ODOMETRY}
        type: nav_msgs/msg/Odometry
        serialization_format: cdr
        offered_qos_profiles: "- reliability: 2\\n  durability: 2\\n"
      message_count: 1
  compression_format: ""
  compression_mode: ""
  relative_file_paths: [bag.mcap]
  files:
    - path: bag.mcap
      starting_time: {{nanoseconds_since_epoch: {START_NS}}}
      duration: {{nanoseconds: 30000000000}}
      message_count: 2
"""


def test_what_cannot_be_played_is_said_in_one_line(play: Play) -> None:
    process = play(bag="/nowhere/bag.mcap")
    assert process.wait() == 1
    (line,) = process.output.splitlines()
    assert "[ERROR]" in line
    assert "/nowhere/bag.mcap: does not exist" in line


def refusal(probe: Probe, **parameters: Any) -> str:
    """Return why a player in this process plays nothing."""
    overrides = [Parameter(name, value=value) for name, value in parameters.items()]
    player = BagPlayer(context=probe.context, parameter_overrides=overrides)
    try:
        with pytest.raises(ForewarnError) as error:
            player.play()
    finally:
        player.destroy_node()
    return str(error.value)


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"bag": ""}, "parameter bag: is not set"),
        ({"topics": ["/none"]}, "the topic /none is not in the recording (accepted: /world/"),
        ({"start_offset": 100.0}, "parameter start_offset: 100 s (accepted: less than"),
    ],
)
def test_what_is_wrong_with_the_parameters_is_named(
    probe: Probe, world: Path, parameters: dict[str, Any], told: str
) -> None:
    assert told in refusal(probe, **{"bag": str(world / "bag.mcap"), **parameters})


def test_a_type_that_is_not_installed_is_named(
    probe: Probe, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = serialized(DISTANCE, 1.0)
    bag = str(write(tmp_path / "bag.mcap", ("/odd", "no_msgs/msg/Odd", START_NS, data)))
    assert "none of its topics can be published" in refusal(probe, bag=bag)
    assert "left out: /odd (no_msgs/msg/Odd): ROS publishes only types" in capfd.readouterr().err
    assert "an installed package no_msgs" in refusal(probe, bag=bag, topics=["/odd"])


def test_lock_step_needs_a_monitor_under_simulated_time(
    play: Play, probe: Probe, start: Callable[..., Process]
) -> None:
    start()
    probe.wait_for_start()
    process = play(lockstep=True, timeout=1.0)
    assert finished(probe, process) == 1
    assert "/monitor does not listen to /clock" in process.output


def test_it_waits_for_a_monitor_as_long_as_it_takes(
    play: Play, probe: Probe, start: Callable[..., Process]
) -> None:
    process = play(lockstep=True, timeout=60.0, topics=[DISTANCE], start_offset=11.0)
    probe.wait(lambda: "waiting for /monitor ..." in process.output, "what it waits for")
    start(use_sim_time=True)
    assert finished(probe, process) == 0
    assert process.output.count("waiting for /monitor") <= 2, "a busy machine may be told again"


def test_another_clock_is_left_alone(play: Play, probe: Probe) -> None:
    Stepper(probe)  # has a publisher of /clock
    process = play(rate=0.01)
    told = "/clock comes from another node"
    probe.wait(lambda: told in process.output, "whose clock it is")
    clocks = probe.node.get_publishers_info_by_topic
    probe.wait(lambda: [info.node_name for info in clocks("/clock")] == ["probe"], "one clock")
    assert process.stop() == 130


def test_an_interrupted_player_ends_at_once(play: Play, probe: Probe) -> None:
    process = play(rate=0.01)
    probe.wait(lambda: probe.node.get_publishers_info_by_topic(ODOMETRY), "publishers")
    assert process.stop() == 130
