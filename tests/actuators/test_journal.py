"""A monitor that is killed at any moment goes on with what it owed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from acting import ESCALATING, alert, config
from live_ros import Probe, Process, Stepper, monitor_parameters, of
from planners import Planner
from small_world import MONITOR

from forewarn.monitoring.record import replay_record
from monitor_node.journal import Journal

pytestmark = pytest.mark.ros
KILLS = int(os.environ.get("FOREWARN_KILLS", "2"))  # `make soak` sets it to 100


def idle(tick: int) -> dict[str, Any]:
    return {"tick": tick, "pending": False, "violations": [0]}


def test_the_file_is_replaced_as_a_whole_and_only_when_something_changed(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, 60.0)
    assert journal.read() is None
    journal.write(idle(1), [])
    first = path.stat()
    journal.write(idle(2), [])
    assert path.stat().st_mtime_ns == first.st_mtime_ns
    journal.write({**idle(3), "pending": True}, ["autoware"])
    journal.write({**idle(4), "pending": True}, ["autoware"])
    found = Journal(path, 60.0).read()
    assert found is not None
    assert (found.memory["tick"], found.owing) == (4, ("autoware",))
    assert [each.name for each in tmp_path.iterdir()] == ["journal"]


@pytest.mark.parametrize("cut", [0, 1, 40, -1])
def test_a_torn_file_is_reported_and_not_used(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "journal"
    Journal(path, 60.0).write(idle(1), ["autoware"])
    path.write_bytes(path.read_bytes()[:cut])
    journal = Journal(path, 60.0)
    assert journal.read() is None
    assert "damaged" in journal.problem


@pytest.mark.parametrize("text", ["[]", "1", '{"body": {}, "sum": ""}', "[" * 100_000, "\0" * 99])
def test_a_strange_file_is_reported_and_not_used(tmp_path: Path, text: str) -> None:
    path = tmp_path / "journal"
    path.write_text(text)
    journal = Journal(path, 60.0)
    assert journal.read() is None
    assert "damaged" in journal.problem


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    Journal(path, 60.0).write(idle(1234), [])
    path.write_text(path.read_text().replace("1234", "1235"))
    assert Journal(path, 60.0).read() is None


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "absent" / "journal", 60.0)
    journal.write(idle(1), [])
    assert journal.status().level == 2


WRITER = """
import sys
from pathlib import Path
from monitor_node.journal import Journal
journal = Journal(Path(sys.argv[1]), 60.0)
for tick in range(int(sys.argv[2]), 1 << 60):
    journal.write({"tick": tick, "pending": True, "padding": "x" * (tick % 5000)}, [])
    if tick % 50 == 0:
        print(tick, flush=True)
"""


def test_killed_at_any_moment_the_file_is_whole_and_the_newest(tmp_path: Path) -> None:
    path, dice, tick = tmp_path / "journal", random.Random(3), 1
    for _ in range(4 * KILLS):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(tick)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(dice.randrange(1, 20))]
        writer.kill()
        lines += writer.stdout.readlines()
        writer.wait()
        told = max(int(line) for line in lines if line.endswith("\n"))
        journal = Journal(path, 60.0)
        found = journal.read()
        assert found is not None, journal.problem
        assert found.memory["tick"] >= told
        tick = found.memory["tick"] + 1
    assert {each.name for each in tmp_path.iterdir()} <= {"journal", ".journal.draft"}


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
    process.process.kill()
    process.wait()


def test_an_obligation_is_still_pending_after_a_kill(
    begin: Callable[..., Process], tmp_path: Path, probe: Probe
) -> None:
    dice = random.Random(5)
    stepper = Stepper(probe)
    text = MONITOR.replace("eventually[0:1]", "eventually[0:2]")
    file = tmp_path / "monitor.yaml"
    file.write_text(text)
    for number in range(KILLS):
        record = tmp_path / f"record{number}.mcap"
        process = begin(journal=str(tmp_path / "journal"), config=str(file))
        stepper.begin(stepper.tick + 100)
        stepper.steps(3, speed=3.0, distance=30.0)
        stepper.steps(dice.randrange(1, 8), speed=3.0, distance=5.0)
        before = of(probe.risks[-1], "brake")
        assert before.automaton_state_names != ["idle"]
        kill(process)
        known = len(probe.risks)
        process = begin(journal=str(tmp_path / "journal"), config=str(file), record=str(record))
        stepper.begin(stepper.tick + 3)
        after = of(stepper.step(speed=3.0, distance=5.0), "brake")
        assert len(probe.risks) > known
        (recalled,) = (
            each
            for each in probe.events
            if each["event"] == "recall" and each["first"] == stepper.tick - 1
        )
        assert recalled["memory"]["tick"] == stepper.tick - 5, "what was published was kept"
        probe.wait_for_status("journal", "OK", "recalled: obligations and alerts of tick")
        # Three ticks were missed: the obligation of before has three fewer to go, or was met.
        assert len(after.automaton_state_names) > 1
        stepper.steps(5, speed=3.0, distance=5.0)
        assert probe.change("deactivate")
        assert process.stop() == 0
        replayed = list(replay_record(record))
        assert len(replayed) == 6
        assert not [text for tick in replayed for text in tick.differences()]


def test_without_a_journal_it_is_forgotten(begin: Callable[..., Process], probe: Probe) -> None:
    stepper = Stepper(probe)
    for _ in range(2):
        process = begin()
        stepper.begin(stepper.tick + 3)
        after = of(stepper.step(speed=3.0, distance=30.0), "brake")
        assert after.automaton_state_names == ["idle"]
        stepper.step(speed=3.0, distance=5.0)
        kill(process)
    assert not [each for each in probe.events if each["event"] == "recall"]


def test_a_limit_that_a_killed_monitor_left_is_taken_back(
    begin: Callable[..., Process],
    tmp_path: Path,
    probe: Probe,
    interfaces: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in interfaces.items():
        monkeypatch.setenv(name, value)
    file = config(tmp_path, "{autoware: {}}", ESCALATING)
    journal = tmp_path / "journal"
    with Planner("autoware", probe, interfaces) as planner:
        process = begin(journal=str(journal), config=file, mode="act")
        stepper = Stepper(probe)
        stepper.begin()
        alert(stepper, 2)
        planner.wait("in force", lambda m: m["sender"] == "forewarn")
        probe.wait(lambda: json.loads(journal.read_text())["body"]["owing"] == ["autoware"])
        kill(process)
        assert not planner.of("clear")
        process = begin(journal=str(journal), config=file, mode="act", journal_max_age=1.0)
        stepper.begin(stepper.tick + 100)  # long after: the alert itself is forgotten
        stepper.step(speed=3.0, distance=30.0)
        assert planner.wait("clear")["known"] is True
        planner.wait("in force", lambda m: m["sender"] == "")
        request = planner.wait("request")
        assert request["strategy"] == 1
        assert process.stop() == 0
