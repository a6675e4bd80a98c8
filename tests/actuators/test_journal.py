"""A monitor that is killed at any moment goes on with what it owed."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from typing import IO, Any

import pytest
from acting import ESCALATING, alert, calm, config
from forewarn_msgs.msg import RiskArray
from forewarn_msgs.srv import Acknowledge
from life import WORLD, measured, unsigned
from live_ros import Probe, Process, Stepper, environment, monitor_parameters, of
from planners import Planner
from rclpy.serialization import deserialize_message
from small_world import MONITOR, TYPES, serialized

from forewarn.assessment.record_replay import replay_record
from forewarn.config.file import load_spec
from forewarn.messages.definitions import installed_message_type
from forewarn.models.file import load_model
from forewarn.monitoring.build import compile_spec
from forewarn.monitoring.intervention import withdraw
from forewarn.monitoring.live_session import LiveSession
from monitor_node.conversions import RiskMessages, Signature
from monitor_node.conversions import serialized as serialized_message
from monitor_node.journal import Journal

pytestmark = pytest.mark.ros
LIFE = Path(__file__).with_name("life.py")
KILLS = int(os.environ.get("FOREWARN_KILLS", "2"))  # `make soak` sets it to 100


def writing(path: Path, first: int) -> tuple[int, IO[str]]:
    """Fork a process that writes memories until it is killed; it tells of each fiftieth."""
    read, told = os.pipe()
    child = os.fork()
    if not child:
        try:
            journal = Journal(path, 60.0)
            for tick in range(first, 1 << 60):
                journal.write({"tick": tick, "pending": True, "padding": "x" * (tick % 5000)}, [])
                if tick % 50 == 0:
                    os.write(told, f"{tick}\n".encode())
        finally:
            os._exit(1)
    os.close(told)
    return child, os.fdopen(read)


def test_killed_at_any_moment_the_file_is_whole_and_the_newest(tmp_path: Path) -> None:
    path, dice, tick = tmp_path / "journal", random.Random(3), 1
    for _ in range(4 * KILLS):
        child, told = writing(path, tick)
        with told:
            lines = [told.readline() for _ in range(dice.randrange(1, 20))]
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            newest = max(map(int, [*lines, *told]))
        journal = Journal(path, 60.0)
        found = journal.left
        assert found is not None, journal.lost
        assert found.memory["tick"] >= newest
        tick = found.memory["tick"] + 1
    drafts = {one_path.name for one_path in tmp_path.iterdir()} - {"journal"}
    assert all(re.fullmatch(r"\.journal\.\d+\.tmp", name) for name in drafts)


@pytest.fixture
def begin(world: Path, probe: Probe) -> Iterator[Callable[..., Process]]:
    """Return a function that starts a monitor; none outlives the test."""
    processes: list[Process] = []

    def begin(**changes: Any) -> Process:
        parameters = monitor_parameters(world, use_sim_time=True, **changes)
        processes.append(Process("main", probe.domain, parameters))
        return processes[-1]

    yield begin
    for process in processes:
        process.__exit__()


def kill(process: Process) -> None:
    """Kill it. Its readers acknowledge nothing more: who speaks to another one is a new probe."""
    process.process.kill()
    process.wait()


def test_an_obligation_is_still_pending_after_a_kill(
    begin: Callable[..., Process], tmp_path: Path, probe: Probe
) -> None:
    file, record = tmp_path / "monitor.yaml", tmp_path / "record.mcap"
    file.write_text(MONITOR.replace("eventually[0:1]", "eventually[0:2]"))
    process = begin(journal=str(tmp_path / "journal"), config=str(file))
    stepper = Stepper(probe)
    stepper.begin()
    stepper.steps(3, speed=3.0, distance=30.0)
    stepper.steps(5, speed=3.0, distance=5.0)
    assert of(probe.risks[-1], "brake").details.automaton_state_names != ["idle"]
    kill(process)
    process = begin(journal=str(tmp_path / "journal"), config=str(file), record=str(record))
    later = Probe(probe.domain)
    again = Stepper(later)
    again.begin(stepper.tick + 3)
    after = of(again.step(speed=3.0, distance=5.0), "brake")
    (recalled,) = (event for event in later.events if event["event"] == "recall")
    assert recalled["first"] == again.tick - 1
    assert recalled["memory"]["tick"] == stepper.tick - 1, "what was published was kept"
    later.wait_for_status("journal", "OK", "recalled: obligations and alerts of tick")
    # Three ticks were missed: the obligation of before has three fewer to go, or was met.
    assert len(after.details.automaton_state_names) > 1
    again.steps(5, speed=3.0, distance=5.0)
    assert later.change("deactivate")
    later.close()
    assert process.stop() == 0
    replayed = list(replay_record(record))
    assert len(replayed) == 6
    assert not [text for tick in replayed for text in tick.differences()]


def test_a_damaged_journal_is_reported_until_the_service_acknowledges_it(
    start: Callable[..., Process], tmp_path: Path, probe: Probe
) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"\0" * 100)  # as a loss of power leaves it
    start(journal=str(path))
    probe.wait_for_start()
    probe.wait_for_status("journal", "ERROR", "damaged-1: obligations, alerts, counts and mutes")
    probe.wait(path.exists, "a new journal")
    assert path.with_name("journal.damaged-1").read_bytes() == b"\0" * 100
    probe.wait_for_status("journal", "ERROR", "then call ~/acknowledge")
    told = {"requester": "anna", "reason": "the robot stands"}
    answer = probe.call(Acknowledge, "acknowledge", **told)
    assert answer.success and "by anna: the robot stands" in answer.message
    probe.wait_for_status("journal", "OK")
    assert told.items() <= probe.wait(lambda: probe.events[-1], "the event").items()
    assert not probe.call(Acknowledge, "acknowledge").success


def uninterrupted(world: Path, first: int) -> Iterator[tuple[int, str]]:
    """Yield what a monitor that nobody kills publishes at each tick."""
    types = {topic: installed_message_type(name) for topic, name in TYPES.items()}
    model = load_model(world / "model.json")
    watch = LiveSession(compile_spec(load_spec(world / "monitor.yaml")), model, types)
    digest = watch.monitor.model.digest if watch.monitor.model else ""
    for tick in count(first):
        time_ns = watch.clock.time_ns(tick)
        for name, value in measured(tick).items():
            watch.accept(WORLD[name], time_ns, serialized(WORLD[name], value))
        rows, request = watch.tick(tick)[1:]
        asked = request or withdraw(watch.memory.advisor, "")
        message = RiskMessages().fill(time_ns, digest, rows, Signature("observe"), asked)
        # Compared as text: the padding of CDR has no defined bits, and NaN is no NaN's equal.
        yield tick, unsigned(deserialize_message(serialized_message(message), RiskArray))


def watched(
    process: Process, timer: threading.Timer, domain: int, tick: int, *, early: bool
) -> tuple[dict[int, str], int]:
    """Return what a life published until it was killed, and which tick it was at."""
    command = [sys.executable, LIFE, str(domain), str(process.process.pid), str(tick)]
    with subprocess.Popen(
        command, env=environment(domain), stdout=subprocess.PIPE, text=True
    ) as watcher:
        assert watcher.stdout is not None
        assert watcher.stdout.readline() == "begun\n"
        if not early:
            timer.start()
        found = json.loads(watcher.stdout.readline())
    timer.join()
    return {int(item): text for item, text in found["told"].items()}, found["tick"]


@pytest.mark.long
def test_killed_at_any_moment_it_goes_on_as_if_nothing_had_been(
    begin: Callable[..., Process], world: Path, tmp_path: Path, domain: int
) -> None:
    """Whatever lives publish in turn is, bit for bit, what one life would have published."""
    dice, path = random.Random(11), tmp_path / "journal"
    first = tick = 17_000_000_000
    whole, expected = uninterrupted(world, first), dict[int, str]()
    published = recalled = silent = 0
    for number in range(KILLS):
        process = begin(journal=str(path))
        early = dice.random() < 0.2  # while it starts, or reads what was left
        timer = threading.Timer(dice.uniform(0.0, 2.0 if early else 1.0), process.process.kill)
        if early:
            timer.start()
        told, reached = watched(process, timer, domain, tick, early=early)
        newest = max(told, default=tick - 1)
        expected.update(islice(whole, max(0, newest - first + 1 - len(expected))))
        assert told == {item: expected[item] for item in range(tick, newest + 1)}, f"life {number}"
        published += len(told)
        silent += not told
        journal = Journal(path, 60.0)
        left = journal.left
        assert not journal.lost
        if left is not None:
            if left.memory["pending"]:
                assert newest <= left.memory["tick"] <= reached
                recalled += 1
            newest = max(newest, left.memory["tick"])
        tick = newest + 1
    print(
        f"{KILLS} kills: {published} ticks published, {tick - first} evaluated; {recalled} lives "
        f"left something pending, {silent} published nothing"
    )
    assert published


@contextmanager
def life(
    begin: Callable[..., Process], domain: int, tick: int, **given: Any
) -> Iterator[tuple[Process, Probe, Stepper]]:
    """Begin a life whose first tick is this one; yield it, what it publishes, and its clock."""
    process, probe = begin(**given), Probe(domain)
    stepper = Stepper(probe)
    stepper.begin(tick)
    yield process, probe, stepper
    probe.close()


def limited(planner: Planner, probe: Probe) -> Stepper:
    """Let the monitor limit the speed, and return what steps its clock."""
    stepper = Stepper(probe)
    stepper.begin()
    alert(stepper, 2)
    planner.wait("in force", lambda m: m["sender"] == "forewarn")
    return stepper


def test_a_limit_that_a_killed_monitor_left_is_taken_back(
    begin: Callable[..., Process], tmp_path: Path, probe: Probe, installed: dict[str, str]
) -> None:
    file = config(tmp_path, "{autoware: {}}", ESCALATING)
    journal = tmp_path / "journal"
    with Planner("autoware", probe, installed) as planner:
        process = begin(journal=str(journal), config=file, mode="act")
        stepper = limited(planner, probe)
        probe.wait(lambda: json.loads(journal.read_text())["body"]["owing"] == ["autoware"])
        kill(process)
        assert not planner.of("clear")
        given = {"journal": str(journal), "config": file, "mode": "act", "journal_max_age": 1.0}
        later = stepper.tick + 100  # nobody saw the alert end
        with life(begin, probe.domain, later, **given) as (process, _, again):
            again.step(speed=3.0, distance=30.0)
            again.steps(2, speed=3.0, distance=5.0)
            assert not planner.of("clear")
            calm(again)
            assert planner.wait("clear")["known"] is True
            planner.wait("in force", lambda m: m["sender"] == "")
            request = planner.wait("request")
            assert request["strategy"] == 1
            assert process.stop() == 0


def test_a_monitor_that_ends_leaves_its_limit_in_force_and_says_so(
    begin: Callable[..., Process], tmp_path: Path, probe: Probe, installed: dict[str, str]
) -> None:
    file = config(tmp_path, "{autoware: {}}", ESCALATING)
    with Planner("autoware", probe, installed) as planner:
        process = begin(config=file, mode="act")
        limited(planner, probe)
        assert process.stop() == 0
        assert not planner.of("clear")
    log = process.output
    assert "what was asked of autoware stays in force: deactivate the node first" in log
    (begun,) = [line for line in log.splitlines() if "intervention 1: " in line]
    assert "intervention 1: LIMIT_SPEED: " in begun and "is at least" in begun
