"""Simulated time: ticks follow /clock, and a clock that jumps begins everything anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builtin_interfaces.msg import Time
from forewarn_msgs.msg import Risk
from live_ros import Probe, Process, Stepper, of, stepped

from forewarn_ros.messages import to_time

pytestmark = pytest.mark.ros
Start = Callable[..., Process]
MAX_STEP = 2.0
LAST = (2**31 - 1) * 10  # tick of the last second that a stamp can hold


@pytest.fixture(scope="module")
def monitor(world: Path) -> Iterator[tuple[Process, Probe, Stepper]]:
    with stepped(world, max_clock_step=MAX_STEP) as found:
        yield found


@pytest.fixture
def running(monitor: tuple[Process, Probe, Stepper]) -> tuple[Probe, Stepper]:
    """Begin anew, twenty seconds later, or earlier if that is where time ends."""
    _, probe, stepper = monitor
    stepper.begin((stepper.tick + 200) % LAST)
    return probe, stepper


def counted(stepper: Stepper, name: str) -> int:
    """Return a count of the ticks' timing, as it is now."""
    stepper.report()
    return int(stepper.probe.values("timing")[name])


def test_nothing_is_evaluated_before_the_clock_speaks(start: Start, probe: Probe) -> None:
    process = start(use_sim_time=True)
    probe.wait_for_status("timing", "WARN", "waiting for the clock")
    told = "use_sim_time is true, and no node publishes /clock: no ticks"
    probe.wait(lambda: told in process.output, "a word about the clock")
    assert not probe.risks
    stepper = Stepper(probe)
    stepper.begin()
    stepper.step(speed=1.0, distance=20.0)
    probe.wait_for_status("timing", "OK")


def test_a_clock_that_jumps_back_resets_the_automata_and_no_alert(
    monitor: tuple[Process, Probe, Stepper], running: tuple[Probe, Stepper]
) -> None:
    probe, stepper = running
    begin, known = stepper.tick, counted(stepper, "clock jumps")
    pending = stepper.steps(5, speed=3.0, distance=5.0)
    assert (
        of(pending[-1], "brake").details.automaton_states
        != of(pending[0], "brake").details.automaton_states
    )
    stepper.begin(begin)
    again = stepper.step(speed=3.0, distance=5.0)
    assert of(again, "brake").level == of(pending[-1], "brake").level == Risk.LEVEL_ACT
    for risk in (*again.risks, *pending[0].risks):
        risk.level, risk.most_likely_path = 0, []  # which goes with the level
    assert str(again.risks) == str(pending[0].risks)
    assert "the clock jumped back by 0.5" in probe.starts[-1]["reason"]
    assert "the clock jumped back by 0.5" in monitor[0].output
    assert counted(stepper, "clock jumps") == known + 1


def test_samples_from_before_a_jump_are_forgotten(running: tuple[Probe, Stepper]) -> None:
    _, stepper = running
    begin = stepper.tick
    stepper.step(speed=3.0, distance=5.0)
    stepper.begin(begin - 100)
    assert of(stepper.step(), "brake").stale_signals == ["speed", "distance"]


def test_a_large_step_ahead_is_a_jump_and_a_small_one_is_caught_up_with(
    running: tuple[Probe, Stepper],
) -> None:
    probe, stepper = running
    overruns = counted(stepper, "overruns")
    stepper.step(speed=3.0, distance=20.0)
    known = len(probe.risks)
    stepper.tick += 9
    stepper.step()
    ticks = [message.risks[0].tick for message in probe.risks[known - 1 :]]
    assert ticks == list(range(ticks[0], ticks[0] + 11)), "late ticks are evaluated in order"
    assert probe.risks[-1].header.stamp == to_time(stepper.grid.time_ns(stepper.tick - 1))
    assert counted(stepper, "overruns") == overruns + 9
    stepper.begin(stepper.tick + 100)
    assert "the clock jumped ahead by 10.0" in probe.starts[-1]["reason"]


def test_simulated_time_can_be_switched_on_and_off_while_running(
    start: Start, probe: Probe
) -> None:
    start()
    probe.wait_for_start()
    assert probe.set(use_sim_time=True).successful
    stepper = Stepper(probe)
    stepper.begin()
    stepper.step(speed=1.0, distance=20.0)
    assert probe.set(use_sim_time=False).successful
    system = probe.wait_for_start(3)
    assert system["tick"] > stepper.tick
    known = len(probe.risks)
    probe.wait(lambda: len(probe.risks) > known + 2, "ticks by the system's clock")


def test_a_clock_that_stands_still_holds_the_ticks_and_nothing_else(
    running: tuple[Probe, Stepper],
) -> None:
    probe, stepper = running
    jumps = counted(stepper, "clock jumps")
    before = of(stepper.steps(3, speed=3.0, distance=5.0)[-1], "brake")
    known, reports = len(probe.risks), probe.reports
    stepper.tell(stepper.tick - 1, lambda: probe.reports > reports + 5)
    assert len(probe.risks) == known
    assert counted(stepper, "clock jumps") == jumps
    after = of(stepper.step(speed=3.0, distance=5.0), "brake")
    assert after.tick == before.tick + 1
    assert not after.stale_signals


def test_a_clock_before_the_beginning_of_time_ends_nothing(start: Start, probe: Probe) -> None:
    process = start(use_sim_time=True, executor="events")
    stepper = Stepper(probe)
    stepper.begin()
    before = stepper.step(speed=1.0, distance=20.0)
    stepper.say(Time(sec=-5), lambda: "/clock says -5 s and is ignored" in process.output)
    after = stepper.step(speed=1.0, distance=20.0)
    assert after.risks[0].tick == before.risks[0].tick + 1


def test_the_last_seconds_that_a_stamp_can_hold(running: tuple[Probe, Stepper]) -> None:
    probe, stepper = running
    stepper.begin(LAST)
    stamps = [step.header.stamp for step in stepper.steps(10, speed=3.0, distance=20.0)]
    assert [stamp.sec for stamp in stamps] == [2**31 - 1] * 10
    assert [stamp.nanosec for stamp in stamps] == list(range(0, 10**9, 10**8))
    probe.wait_for_status("timing", "OK")
