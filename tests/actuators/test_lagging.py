"""The gate beside a monitor that gets little of a processor, or nothing for a while.

``FOREWARN_LAGS=10`` tries all of `ALL`, each so many times, and prints a table.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from live_process import Process, throttled
from live_ros import monitor_parameters
from robots import QUICK, Robot, gated
from small_world import MONITOR, serialized, write_world

from forewarn.assessment.record_replay import replay_record

pytestmark = pytest.mark.ros
TRIALS = int(os.environ.get("FOREWARN_LAGS", "0"))
ALL = ("", "50 %", "20 %", "5 %", "0.2 s", "0.5 s", "1 s", "2 s", "5 s")
BUSY = 0.3
"""Seconds that other work on the machine may hold up what the test says to the monitor."""


class Trial(NamedTuple):
    """One appearance of the obstacle.

    Attributes
    ----------
    late : float
        Seconds from its first message until the output was zero, or fell, from then on.
    driven : float
        Share of the outputs before that let the robot drive.
    """

    late: float
    driven: float


class Scene:
    """A robot behind its gate, and a monitor of which not much is left."""

    def __init__(self, robot: Robot, monitor: Process) -> None:
        self.robot, self.monitor = robot, monitor
        self.distance, self.appeared = 30.0, 0.0
        robot.probe.node.create_timer(0.02, self._feed)

    def _feed(self) -> None:
        if self.distance < 8.0 and not self.appeared:
            self.appeared = time.time()
        for topic, value in (("/world/odometry", 3.0), ("/world/distance", self.distance)):
            self.robot.probe.publisher(topic).publish(serialized(topic, value))

    def spin(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self.robot.probe.executor.spin_once(timeout_sec=left)

    def trial(self, hindrance: str, rng: random.Random) -> Trial:
        """Have the obstacle appear at some moment of a hindrance, and gone after it."""
        robot = self.robot
        robot.wait_for(1.0, "nothing is asked for")
        robot.stamped_outputs.clear()
        amount, _, unit = hindrance.partition(" ")
        self.appeared = 0.0
        with ExitStack() as hindered:
            if unit == "%":
                hindered.enter_context(throttled(self.monitor, float(amount) / 100.0))
                self.spin(rng.uniform(2.0, 4.0))
                self.distance = 5.0
                self.spin(2.0)
            elif unit == "s":
                before = rng.uniform(0.0, float(amount))
                self.monitor.process.send_signal(signal.SIGSTOP)
                hindered.callback(self.monitor.process.send_signal, signal.SIGCONT)
                self.spin(before)
                self.distance = 5.0
                self.spin(float(amount) - before)
            else:
                self.distance = 5.0
        self.spin(1.5)
        found = _judged(robot.stamped_outputs, self.appeared)
        self.distance = 30.0
        return found


def _judged(outputs: list[tuple[float, float]], appeared: float) -> Trial:
    late, driven, before = 0.0, [], 0.0
    for stamp, speed in outputs:
        if stamp < appeared:
            driven.append(speed > 0.0)
        elif speed > 0.0 and speed >= before:
            late = stamp - appeared
        before = speed
    return Trial(late, sum(driven) / max(len(driven), 1))


@contextmanager
def scene(folder: Path, rate: int) -> Iterator[Scene]:
    """Run robot, gate and a monitor of that rate, which records."""
    text = MONITOR.replace("rate: 10", f"rate: {rate}").replace("act: 0.4", "act: 0.3")
    world = write_world(folder / "world", text=text)
    with gated(folder, QUICK, stamped=True, text=text) as robot:
        parameters = monitor_parameters(
            world,
            config=str(folder / "monitor.yaml"),
            mode="act",
            record=str(folder / "record.mcap"),
        )
        with Process("main", robot.probe.domain, parameters) as monitor:
            yield Scene(robot, monitor)


def test_what_is_said_late_lets_nothing_pass_and_a_replay_gives_the_same_bits(
    tmp_path: Path,
) -> None:
    rng = random.Random(1)
    with scene(tmp_path, 10) as live:
        for hindrance in ("1 s", "20 %"):
            assert live.trial(hindrance, rng).late <= 0.3 + BUSY
        left_out = int(live.robot.probe.values("timing")["ticks left out"])
        assert left_out >= 9
        said = [message.risks[0].tick for message in live.robot.probe.risks]
    assert any(later > tick + 9 for tick, later in pairwise(said))
    again = list(replay_record(tmp_path / "record.mcap"))
    assert len(again) >= len(said)
    assert not any(difference for tick in again for difference in tick.differences())


@pytest.mark.skipif(not TRIALS, reason="takes minutes: FOREWARN_LAGS says how many trials")
@pytest.mark.parametrize("rate", [10, 50])
def test_the_whole_table(tmp_path: Path, rate: int, capsys: pytest.CaptureFixture[str]) -> None:
    rng, bound, slow = random.Random(rate), 3.0 / rate, []
    with scene(tmp_path, rate) as live:
        for hindrance in ALL:
            found = [live.trial(hindrance, rng) for _ in range(TRIALS)]
            worst, driven = max(t.late for t in found), sum(t.driven for t in found) / TRIALS
            with capsys.disabled():
                print(
                    f"| {rate} Hz | {hindrance or 'none'} | {bound * 1e3:.0f} ms "
                    f"| {worst * 1e3:.0f} ms | {driven:.0%} |"
                )
            slow += [hindrance] * (worst > bound)
    assert not slow
