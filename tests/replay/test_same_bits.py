"""The same bits: what was published over real topics, and what is computed offline."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forewarn_msgs.srv import LoadModel, Mute, Release, Reset
from live_ros import MONITOR, Probe, Process, Stepper, of
from replayed import check_record, offline, play, published
from small_world import TYPES

from forewarn.recordings.interface import Sample
from forewarn.recordings.registry import open_recording
from forewarn.recordings.writing import RecordingWriter
from forewarn.signals.clock_kinds import Grid

pytestmark = pytest.mark.ros
Start = Callable[..., Process]


def write_part(bag: Path, part: Path, first: float, last: float) -> Path:
    """Write the messages between two times, in seconds from the start, to another recording."""
    with open_recording(bag) as recording:
        begin, end = (recording.start_ns + round(item * 1e9) for item in (first, last))
    return write_some(bag, part, lambda sample: begin <= sample.time_ns <= end)


def write_some(bag: Path, part: Path, wanted: Callable[[Sample], bool]) -> Path:
    """Write some messages of a recording to another one."""
    with open_recording(bag) as recording, RecordingWriter(part) as writer:
        kinds = {}
        for topic, info in recording.topics.items():
            assert info.message_type is not None
            store = info.message_type.typestore
            definition, _ = store.generate_msgdef(info.msgtype, ros_version=2)
            kinds[topic] = (info.msgtype, definition)
        for sample in recording.read():
            if wanted(sample):
                writer.write(sample.topic, *kinds[sample.topic], sample.time_ns, sample.data)
    return part


@pytest.mark.parametrize("executor", ["single", "events"])
def test_lock_step_gives_what_replay_gives(
    start: Start, probe: Probe, world: Path, tmp_path: Path, executor: str
) -> None:
    record = tmp_path / "record.mcap"
    process = start(use_sim_time=True, record=str(record), executor=executor)
    play(probe, bag=str(world / "bag.mcap"), lockstep=True, rate=0.0)
    expected = offline(world / "monitor.yaml", world / "model.json", world / "bag.mcap")
    probe.wait(lambda: len(probe.risks) >= len(expected) // 2, "the last verdicts")
    assert published(probe.risks) == expected
    assert len(expected) == 2 * 121
    assert process.stop() == 0
    assert check_record(record) == 121
    # The record is a bag as well: read as one, without its decisions, it says the same.
    assert offline(world / "monitor.yaml", world / "model.json", record) == expected


def test_header_stamps_in_lock_step(
    start: Start, probe: Probe, world: Path, tmp_path: Path
) -> None:
    config, record = tmp_path / "stamped.yaml", tmp_path / "record.mcap"
    config.write_text(MONITOR + "timestamp_source: header\nsettle: 0.05\n")
    process = start(config=str(config), model="", use_sim_time=True, record=str(record))
    play(probe, bag=str(world / "bag.mcap"), lockstep=True, rate=0.0)
    expected = offline(config, None, world / "bag.mcap")
    probe.wait(lambda: 2 * len(probe.risks) >= len(expected), "the last verdicts")
    assert published(probe.risks) == expected
    assert expected != offline(world / "monitor.yaml", None, world / "bag.mcap")
    assert process.stop() == 0
    assert check_record(record) == 121


def irregular(seed: int) -> Callable[[Sample], bool]:
    """Want 50 to 350 ms between two messages of a topic."""
    rng, following = random.Random(seed), dict.fromkeys(TYPES, 0)

    def wanted(sample: Sample) -> bool:
        if sample.time_ns < following[sample.topic]:
            return False
        following[sample.topic] = sample.time_ns + rng.randrange(50_000_000, 350_000_000)
        return True

    return wanted


def ages_at_ticks(bag: Path, topic: str) -> list[tuple[int, int]]:
    """Return the age of the newest message at each tick: in nanoseconds, and in ticks begun."""
    grid = Grid(10.0)
    with open_recording(bag) as recording:
        times = [sample.time_ns for sample in recording.read([topic])]
    ticks = range(grid.tick_at_or_after(times[0]), grid.tick_at_or_after(times[-1]))
    newest = [max(ns for ns in times if ns <= grid.time_ns(tick)) for tick in ticks]
    return [
        (grid.time_ns(tick) - ns, tick - grid.tick_at_or_after(ns))
        for tick, ns in zip(ticks, newest, strict=True)
    ]


@pytest.mark.parametrize("time", ["", "timestamp_source: header\nsettle: 0.05\n"])
def test_timeouts_that_end_between_ticks_in_lock_step(
    start: Start, probe: Probe, world: Path, tmp_path: Path, time: str
) -> None:
    bag = write_some(world / "bag.mcap", tmp_path / "irregular.mcap", irregular(3))
    between = [
        age for topic in TYPES for age, ticks in ages_at_ticks(bag, topic) if ticks <= 2 < age / 1e8
    ]
    assert len(between) > 10, "whole ticks would take these for young enough"
    config, record = tmp_path / "monitor.yaml", tmp_path / "record.mcap"
    config.write_text(MONITOR.replace("timeout: 0.5", "timeout: 0.2") + time)
    process = start(config=str(config), model="", use_sim_time=True, record=str(record))
    play(probe, bag=str(bag), lockstep=True, rate=0.0)
    expected = offline(config, None, bag)
    probe.wait(lambda: 2 * len(probe.risks) >= len(expected), "the last verdicts")
    assert published(probe.risks) == expected
    ages = [age for message in probe.risks for age in message.risks[0].stale_ages]
    assert any(0.2 < age < 0.3 for age in ages)
    assert process.stop() == 0
    assert check_record(record) == len(probe.risks)
    # The record holds the arrivals that were told: read as a bag it says the same. Verdicts come
    # later than their ticks, by `settle`, so that such a replay goes on for a tick.
    assert offline(config, None, record)[: len(expected)] == expected


def test_the_sample_recording_in_lock_step(
    start: Start, probe: Probe, repository: Path, tmp_path: Path
) -> None:
    config, model = tmp_path / "demo.yaml", repository / "config" / "demo.model.json.gz"
    shipped = (repository / "config" / "demo.yaml").read_text(encoding="utf-8")
    few = "\nbounds: {samples: 20}\n"  # each process draws them before its first tick
    config.write_text(shipped + few, encoding="utf-8")
    recorded = repository / "evaluation" / "sumo" / "recordings" / "held_out"
    bag = write_part(recorded, tmp_path / "part.mcap", 26.0, 36.0)
    record = tmp_path / "record.mcap"
    process = start(config=str(config), model=str(model), use_sim_time=True, record=str(record))
    play(probe, bag=str(bag), lockstep=True, rate=0.0)
    expected = offline(config, model, bag)
    probe.wait(lambda: len(probe.risks) * 3 >= len(expected), "the last verdicts")
    assert published(probe.risks) == expected
    assert probe.risks[-1].risks[0].violations == 1, "the red light that it runs"
    assert process.stop() == 0
    assert check_record(record) == len(probe.risks)


def test_a_loop_gives_the_same_again(start: Start, probe: Probe, world: Path) -> None:
    start(use_sim_time=True)
    bag, offset = str(world / "bag.mcap"), 6.0
    parameters = {"bag": bag, "lockstep": True, "rate": 0.0, "loop": True, "start_offset": offset}
    probe.meet()
    with Process("bag_player", probe.domain, parameters):
        probe.wait(lambda: len(probe.starts) >= 3, "two rounds")
    first = probe.starts[0]["tick"]
    rounds: list[list[Any]] = []
    for message in probe.risks:
        if message.risks[0].tick == first:
            rounds.append([])
        rounds[-1].append(message)
    assert len(rounds[0]) > 50
    assert published(rounds[0]) == published(rounds[1])


def test_a_free_running_session_replays_to_the_same_bits(
    start: Start, probe: Probe, world: Path, tmp_path: Path
) -> None:
    record = tmp_path / "record.mcap"
    process = start(record=str(record))
    bag = str(world / "bag.mcap")
    play(probe, bag=bag, rate=3.0, wait_for_monitor=True)
    assert process.stop() == 0
    assert check_record(record) >= 30
    told = probe.values("signals")["read in part"]
    assert re.search(r"than the ticks \(10 Hz\): .*/world/odometry \(\d+", told)
    with open_recording(record) as recording:
        assert recording.topics["/world/odometry"].count > 300
        assert not recording.warnings


def test_commands_and_jumps_are_replayed(
    start: Start, probe: Probe, world: Path, tmp_path: Path
) -> None:
    record = tmp_path / "record.mcap"
    process = start(use_sim_time=True, record=str(record), **{"properties.brake.act": 0.5})
    stepper = Stepper(probe)
    assert probe.call(Mute, "mute", properties=["brake"], duration=0.3).success
    stepper.begin()
    near = {"speed": 3.0, "distance": 5.0}
    assert [of(step, "brake").muted for step in stepper.steps(4, **near)] == [True] * 3 + [False]
    assert probe.call(Reset, "reset", properties=["brake"]).success
    stepper.steps(4, **near)
    assert probe.set(properties__brake__act=0.35, properties__brake__warn=0.3).successful
    stepper.steps(3, **near)
    assert probe.call(Release, "release").success
    stepper.steps(2, **near)
    assert probe.call(Mute, "mute", properties=["brake"], duration=0.4).success
    stepper.steps(6, **near)
    assert probe.call(LoadModel, "load_model", path=str(world / "other.json")).success
    stepper.steps(3, **near)
    assert probe.call(Mute, "mute", properties=["brake"], duration=0.3).success
    stepper.begin(stepper.tick - 300)
    assert [of(step, "brake").muted for step in stepper.steps(3, **near)] == [True, True, False]
    stepper.step(speed=b"\0\1\0\0nonsense")
    stepper.begin(stepper.tick + 300)
    stepper.steps(3, **near)
    stepper.tick += 5
    stepper.step(**near)
    assert probe.call(Mute, "mute", duration=float("inf"), reason="a test").success
    stepper.steps(2, **near)
    assert process.stop() == 0
    assert check_record(record) == 37


def test_a_record_of_a_killed_monitor_still_replays(
    start: Start, probe: Probe, tmp_path: Path
) -> None:
    record = tmp_path / "record.mcap"
    process = start(use_sim_time=True, record=str(record))
    stepper = Stepper(probe)
    stepper.begin()
    stepper.steps(30, speed=3.0, distance=20.0)
    process.process.kill()
    process.process.wait()
    assert check_record(record) >= 15


def test_an_existing_file_is_not_recorded_over_and_keeps_nobody_from_monitoring(
    start: Start, probe: Probe, tmp_path: Path
) -> None:
    record = tmp_path / "record.mcap"
    record.write_bytes(b"precious")
    (tmp_path / "record-2.mcap").write_bytes(b"another")
    start(record=str(record))  # as after a crash
    probe.wait_for_start()
    probe.wait_for_status("record", "OK")
    assert probe.values("record")["file"] == str(tmp_path / "record-3.mcap")
    assert record.read_bytes() == b"precious"
    assert (tmp_path / "record-2.mcap").read_bytes() == b"another"


def test_a_foreign_file_is_no_record(world: Path) -> None:
    with pytest.raises(Exception, match="is no record of a monitor"):
        check_record(world / "bag.mcap")


@pytest.mark.parametrize("lockstep", [True, False])
def test_all_messages_of_a_tick_count_live_as_in_replay(
    start: Start, probe: Probe, world: Path, tmp_path: Path, lockstep: bool
) -> None:
    config, record = tmp_path / "monitor.yaml", tmp_path / "record.mcap"
    changed = MONITOR.replace("value: twist.twist.linear.x\n", PLAIN + "    within: min\n")
    config.write_text(changed.replace("predicates:\n", COUNTED).replace("moving:", MANY))
    process = start(
        config=str(config), model="", use_sim_time=lockstep, record=str(record), queue_depth=1
    )
    bag, rate = str(world / "bag.mcap"), 0.0 if lockstep else 3.0
    play(probe, bag=bag, lockstep=lockstep, rate=rate, wait_for_monitor=True)
    expected = offline(config, None, world / "bag.mcap")
    if lockstep:
        probe.wait(lambda: 2 * len(probe.risks) >= len(expected), "the last verdicts")
        assert published(probe.risks) == expected
        assert "read in part" not in probe.values("signals")  # the distance comes at 10 Hz
        config.write_text(changed.replace("within: min", "within: last"))
        assert offline(config, None, world / "bag.mcap") != expected
    assert process.stop() == 0
    assert check_record(record) >= 30


PLAIN = "value: twist.twist.linear.x\n"
COUNTED = """\
  fast:
    topic: /world/odometry
    type: nav_msgs/msg/Odometry
    value: twist.twist.linear.x > 2.9
    within: count
predicates:
"""
MANY = "many: fast > 3\n  moving:"
