"""A node that says over real topics when a run is unlike normal ones, and replays to the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from forewarn_msgs.msg import Anomaly
from forewarn_msgs.srv import Reset
from live_ros import KEPT, Probe, Process
from small_world import DISTANCE, MONITOR, ODOMETRY, write_bag, write_watched

from forewarn.assessment.record_replay import replay_record
from forewarn.cli import main

pytestmark = pytest.mark.ros

BY_STEPS = (
    MONITOR.replace("rate: 10", f"clock: steps\nstep: {DISTANCE}")
    .replace("timeout: 0.5", "timeout: 1000")
    .replace("hold: 0.2", "hold: 2")
    + "action: \"'brake' if speed < 2.9 else 'go'\"\n"
    + "learning: {recording_end: drop}\nmode: act\n"
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the parameters of a node whose monitor file names what is normal, and its model."""
    return write_watched(tmp_path_factory.mktemp("anomalies"), BY_STEPS)


def test_a_strange_step_is_told_with_what_was_expected_and_recorded(
    start: Callable[..., Process], probe: Probe, files: dict[str, str], tmp_path: Path
) -> None:
    record = tmp_path / "record.mcap"
    process = start(**files, record=str(record), mode="act")
    said: list[Anomaly] = []
    probe.node.create_subscription(Anomaly, f"{probe.monitor}/output/anomaly", said.append, KEPT)
    probe.wait_for_start()
    probe.meet()

    def step(distance: float) -> Anomaly:
        known = len(said)
        probe.say(DISTANCE, distance)
        probe.wait(lambda: len(said) > known, "what is said of the run")
        return said[-1]

    probe.say(ODOMETRY, 3.0)
    first = step(30.0)
    assert (first.verdict, first.transitions, first.step.tick) == (Anomaly.NOT_JUDGED, 0, -1)
    calm = step(29.7)
    assert (calm.verdict, calm.transitions) == (Anomaly.NORMAL, 1)
    assert calm.test == "conformal" and calm.statistic == "both" and calm.false_alarm_rate == 0.2
    assert calm.step.action == "go" and calm.step.state == calm.step.following
    assert calm.step.p_value > 0.2 and calm.p_value > 0.2
    probe.wait_for_status("anomaly", "OK", "like normal ones")
    strange = step(0.1)  # nothing falls from 30 m to a collision within a step
    assert (strange.verdict, strange.since, strange.run) == (Anomaly.ANOMALOUS, strange.tick, 0)
    assert strange.p_value <= 0.2 and strange.value > strange.limit
    assert strange.worst == strange.step and strange.step.following == "collision"
    assert strange.step.part == "outcome"
    assert strange.step.expected[0] == strange.step.state
    assert len(strange.step.expected) == len(strange.step.expected_probabilities) == 3
    probe.wait_for_status("anomaly", "WARN", "anomalous")
    assert "anomalous" in process.output
    again = step(30.0)  # the label is over: another run
    assert (again.run, again.verdict) == (1, Anomaly.NOT_JUDGED)
    assert step(29.7).transitions == 0  # the alert of the collision goes on: no normal run
    assert probe.call(Reset, "reset").success
    assert step(29.4).transitions == 0
    assert process.stop() == 0, process.output
    ticks = list(replay_record(record))
    assert len(ticks) == 6 and all(tick.anomaly is not None for tick in ticks)
    assert [line for tick in ticks for line in tick.differences()] == []
    assert main(["verify", str(record)]) == 0


def test_a_file_that_does_not_fit_keeps_the_node_from_being_configured(
    start: Callable[..., Process], probe: Probe, files: dict[str, str], tmp_path: Path
) -> None:
    config = tmp_path / "monitor.yaml"
    config.write_text(f"{BY_STEPS}anomaly: {{file: nowhere.anomalies}}\n")
    process = start(config=str(config), model=files["model"], autostart=False)
    assert not probe.change("configure")
    assert f"{tmp_path}/nowhere.anomalies: cannot be read" in process.output
    assert "accepted: a file that `forewarn anomalies --save` wrote" in process.output


def test_a_run_longer_than_any_normal_one_is_warned_of_once(
    start: Callable[..., Process], probe: Probe, tmp_path: Path
) -> None:
    config, model = tmp_path / "monitor.yaml", tmp_path / "model.json"
    config.write_text(f"{BY_STEPS}anomaly: {{}}\n")
    bags = [str(write_bag(tmp_path / f"{seed}.mcap", seed, 0.5)) for seed in range(12)]
    assert main(["learn", *bags, "-c", str(config), "-o", str(model), "-q"]) == 0
    process = start(config=str(config), model=str(model), mode="act")
    said: list[Anomaly] = []
    probe.node.create_subscription(Anomaly, f"{probe.monitor}/output/anomaly", said.append, KEPT)
    probe.wait_for_start()
    probe.meet()
    probe.say(ODOMETRY, 3.0)
    for step in range(7):
        assert step > 5 or "more moments than any normal run" not in process.output
        probe.say(DISTANCE, 30.0 - 0.3 * step)
        probe.wait(lambda step=step: len(said) > step, "what is said of the run")
    probe.wait_for_status("anomaly", "WARN", "more moments than any normal run (5)")
    assert process.stop() == 0, process.output
    assert process.output.count("more moments than any normal run") == 1
