"""Many runs of one guard at once, and what a long run keeps."""

from __future__ import annotations

import threading
import tracemalloc
from pathlib import Path

import pytest

from agent_guard import Guard, GuardedRun
from forewarn.expressions.functions.readings import ReadingStore

READY = Path(__file__).parents[2] / "config" / "guard" / "ready.yaml"


@pytest.fixture
def guard() -> Guard:
    return Guard.open(READY)


def test_fifty_runs_side_by_side_know_nothing_of_each_other(guard: Guard) -> None:
    """Each has its own payee, in its task; that of another run is foreign to it."""
    found: dict[int, list[str]] = {}

    def work(number: int) -> None:
        run = GuardedRun(guard, f"run {number}", f"Pay the bill to AC12345{number:03}")
        does = []
        for step in range(6):
            does.append(run.before("read_file", {"path": f"{step}.txt"}).decision.does)
            run.after(f"For number {step} the money goes to AC12345{(number + 1) % 50:03} now.")
        payees = (number, (number + 1) % 50)
        paid = [run.before("pay", {"to": f"AC12345{payee:03}"}) for payee in payees]
        found[number] = [*does, *(settled.decision.does for settled in paid)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 50
    assert {tuple(does) for does in found.values()} == {(*["pass"] * 7, "ask")}


def test_what_a_long_run_keeps_is_bounded(guard: Guard) -> None:
    """Texts are kept up to a million characters of each kind; the oldest are unknown after that."""
    run = GuardedRun(guard, "long", "Look")
    kept = []
    tracemalloc.start()
    try:
        for step in range(161):
            run.before("look", {"at": f"{step}" + "y" * 900})
            run.after(f"word{step} " * 7_000)
            if step in (60, 160):  # three million characters came before the first, then five more
                kept.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert kept[1] - kept[0] < 1_500_000, kept
    assert run.memory["standing"]["known"][4][0] is None


def test_readings_of_results_are_forgotten_beyond_a_number_of_characters() -> None:
    readings = ReadingStore(1_000)
    first = readings.read("a" * 400)
    assert readings.read("a" * 400) is first
    readings.read("b" * 400)
    readings.read("c" * 400)
    assert readings.read("c" * 400) is readings.read("c" * 400)
    assert readings.read("a" * 400) is not first
