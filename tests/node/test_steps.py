"""A node whose clock is steps: one for each message of a topic, however much time lies between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from forewarn_msgs.msg import Signals
from forewarn_msgs.srv import Mute, Reset
from live_ros import LIMIT, Probe, Process
from small_world import DISTANCE, MONITOR, ODOMETRY

from forewarn.assessment.record_replay import replay_record
from forewarn.cli import main

pytestmark = pytest.mark.ros

BY_STEPS = (
    MONITOR.replace("rate: 10", f"clock: steps\nstep: {DISTANCE}")
    .replace("timeout: 0.5", "timeout: 3")
    .replace("hold: 0.2", "hold: 2")
)
BY_NAME = """\
version: 1
clock: steps
startup_grace: 0
signals: {errors: {}}
predicates: {stuck: errors >= 3}
properties: {free: {formula: always(not stuck), horizon: 4, hold: 0}}
"""


@pytest.fixture
def files(by_steps: Callable[..., dict[str, str]]) -> dict[str, str]:
    """Return the parameters of a node on a monitor file of steps, and its model."""
    return by_steps(BY_STEPS, seeds=(1, 2), seconds=30.0)


def test_a_step_for_each_message_of_the_topic(
    start: Callable[..., Process], probe: Probe, files: dict[str, str]
) -> None:
    process = start(**files)
    probe.wait_for_start()
    probe.meet()

    for value in (2.0, 2.0, 2.0):
        probe.say(ODOMETRY, value)  # no step: nothing is evaluated
    probe.wait_for_status("timing", "OK")
    reports = probe.reports
    probe.wait(lambda: probe.reports > reports + 3, "reports while no step comes")
    assert probe.risks == []
    for distance in (20.0, 12.0, 9.0, 6.0, 5.0):
        probe.step(distance)
    assert [risks.risks[0].tick for risks in probe.risks] == [0, 1, 2, 3, 4]
    # Speed was said before the first step and is four steps old now: too old by one.
    assert list(probe.risks[-2].risks[0].stale_signals) == []
    assert list(probe.risks[-1].risks[0].stale_signals) == ["speed"]
    assert list(probe.risks[-1].risks[0].stale_ages) == [4.0]
    assert probe.risks[-1].risks[0].horizon == 2.0
    fields = {"properties": ["brake"], "duration": 600.0, "reason": "a test"}
    assert probe.call(Mute, "mute", **fields).success
    probe.step(5.0)
    assert probe.risks[-1].risks[0].muted
    assert probe.call(Reset, "reset").success
    probe.say(ODOMETRY, 0.0)
    probe.step(4.0)
    assert probe.risks[-1].risks[0].tick == 6
    assert process.stop() == 0, process.output
    ticks = list(replay_record(files["record"]))
    assert len(ticks) == 7
    assert [line for tick in ticks for line in tick.differences()] == []
    assert main(["verify", files["record"]]) == 0


def test_a_message_of_named_signals_is_a_step(
    start: Callable[..., Process], probe: Probe, tmp_path: Path
) -> None:
    config, record = tmp_path / "monitor.yaml", tmp_path / "record.mcap"
    config.write_text(BY_NAME)
    process = start(config=str(config), model="", record=str(record))
    probe.wait_for_start()
    probe.meet()
    publisher = probe.connected(f"{probe.monitor}/input/signals", "forewarn_msgs/msg/Signals")
    for number in range(5):  # several at once are several steps
        publisher.publish(Signals(names=["errors"], values=[float(number)]))
    probe.wait(lambda: len(probe.risks) == 5, "five verdicts")
    assert [risks.risks[0].violations for risks in probe.risks] == [0, 0, 0, 1, 1]
    assert process.stop() == 0, process.output
    ticks = list(replay_record(record))
    assert len(ticks) == 5
    assert [line for tick in ticks for line in tick.differences()] == []


def test_a_player_in_lock_step_says_that_it_follows_ticks(
    start: Callable[..., Process], probe: Probe, files: dict[str, str], tmp_path: Path
) -> None:
    start(**files, use_sim_time=True)
    parameters = {"bag": str(tmp_path / "1.mcap"), "lockstep": True}
    with Process("bag_player", probe.domain, parameters) as player:
        probe.wait(lambda: player.process.poll() is not None, "the end of the player", LIMIT)
        assert player.process.returncode == 1, player.output
        assert "counts steps, and lock-step follows ticks" in player.output
