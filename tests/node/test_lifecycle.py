"""The life cycle of the node, and what is wrong with its configuration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from live_ros import MONITOR, Probe, Process

pytestmark = pytest.mark.ros
Start = Callable[..., Process]


def test_every_transition(start: Start, probe: Probe) -> None:
    process = start(autostart=False)
    assert probe.state == "unconfigured"
    probe.wait_for_status("node", "WARN", "next: ros2 lifecycle set /monitor configure")
    assert probe.change("configure")
    assert probe.state == "inactive"
    probe.wait_for_status("node", "WARN", "inactive")
    assert probe.change("activate")
    assert probe.state == "active"
    probe.wait_for_start()
    probe.wait(lambda: len(probe.risks) >= 3, "ticks")
    probe.wait_for_status("node", "OK", "active")
    assert probe.change("deactivate")
    assert probe.state == "inactive"
    silent = len(probe.risks)
    assert probe.change("activate")
    probe.wait_for_start(2)
    probe.wait(lambda: len(probe.risks) >= silent + 3, "ticks after activating again")
    assert probe.change("deactivate")
    assert probe.change("cleanup")
    assert probe.state == "unconfigured"
    assert probe.change("configure")
    assert probe.change("activate")
    probe.wait_for_start(3)
    assert probe.change("active_shutdown")
    assert probe.state == "finalized"
    assert process.stop() == 0
    assert "unconfigured; next: ros2 lifecycle set /monitor configure" in process.output
    assert process.output.count(": activated\n") == 3


def test_ticks_are_stamped_with_the_grid_and_outputs_keep_their_promises(
    start: Start, probe: Probe
) -> None:
    start()
    first = probe.wait_for_start()["tick"]
    probe.wait(lambda: len(probe.risks) >= 10, "ten ticks")
    ticks = [message.risks[0].tick for message in probe.risks]
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks)))
    assert ticks[0] >= first
    for message, tick in zip(probe.risks, ticks, strict=True):
        stamp = message.header.stamp
        assert stamp.sec * 10**9 + stamp.nanosec == tick * 100_000_000
    (info,) = probe.node.get_publishers_info_by_topic("/monitor/output/risk")
    profile = info.qos_profile
    assert profile.reliability.name == "RELIABLE"
    assert profile.durability.name == "TRANSIENT_LOCAL"
    assert profile.liveliness.name == "MANUAL_BY_TOPIC"
    assert profile.deadline.nanoseconds == 200_000_000
    assert profile.liveliness_lease_duration.nanoseconds == 500_000_000
    (info,) = probe.node.get_publishers_info_by_topic("/monitor/output/intervention")
    assert info.qos_profile.liveliness.name == "MANUAL_BY_TOPIC"


BAD = [
    ("", "parameter config: is not set"),
    ("absent.yaml", "absent.yaml"),
    ("speed: [", "monitor.yaml"),
    (MONITOR.replace("rate: 10", "rates: 10"), "rates: unknown key"),
    (MONITOR.replace("speed > 0.5", "sped > 0.5"), "predicates.moving"),
    (MONITOR.replace("always(not collision)", "always(not collision"), "no_collision.formula"),
    (MONITOR.replace("speed > 0.5", "speed > 0.7"), "another abstraction"),
    (MONITOR.replace("rate: 10", "rate: 20"), "learned at 10 Hz"),
    (MONITOR.replace("std_msgs/msg/Float32", "no_msgs/msg/Nothing"), "no_msgs"),
    (MONITOR.replace("value: data", "value: date"), "signals.distance.value"),
    (f"{MONITOR}actuators: {{nav2: {{emergency_stop: [lock]}}}}\n", "needs lock_topic"),
    (f"{MONITOR}actuators: {{autoware: {{sender: api}}}}\n", "'api' is Autoware's own"),
]


def test_a_bad_configuration_is_refused_in_one_line_and_mended_without_a_restart(
    start: Start, probe: Probe, world: Path, tmp_path: Path
) -> None:
    process = start(autostart=False, config="")
    for text, expected in BAD:
        file = tmp_path / "monitor.yaml"
        file.write_text(text)
        path = "" if not text else str(tmp_path / text) if text.endswith(".yaml") else str(file)
        assert probe.set(config=path).successful
        assert not probe.change("configure"), text
        assert probe.state == "unconfigured"
        errors = [line for line in process.output.splitlines() if "[ERROR]" in line]
        assert expected in errors[-1], text
        probe.wait_for_status("node", "ERROR", expected)
    assert probe.set(config=str(world / "monitor.yaml")).successful
    model = world / "model.json"
    cut = tmp_path / "cut.json"
    cut.write_bytes(model.read_bytes()[:300])
    assert probe.set(model=str(cut)).successful
    assert not probe.change("configure")
    assert "cut.json" in process.output
    assert probe.set(model=str(model)).successful
    assert probe.change("configure")
    assert probe.change("activate")
    probe.wait_for_status("node", "OK")


def test_a_mode_that_is_none_is_refused_also_when_the_node_is_started_with_it(
    start: Start, probe: Probe
) -> None:
    # Who misspells `act` is not to drive on with a monitor that only observes.
    process = start(autostart=False, mode="Act")
    assert not probe.change("configure")
    assert "parameter mode: 'Act' (accepted: observe, act)" in process.output
    assert probe.set(mode="observe").successful
    assert probe.change("configure")


def test_without_a_model_there_are_verdicts_and_no_risk(
    start: Start, probe: Probe, world: Path
) -> None:
    start(model="")
    probe.wait(lambda: probe.risks, "a tick")
    risk = probe.risks[0].risks[0]
    assert risk.probability != risk.probability
    assert probe.risks[0].model_digest == ""
    probe.wait_for_status("model", "WARN", "no model")


def test_two_nodes_of_the_same_name_report_each_other(start: Start, probe: Probe) -> None:
    start()
    probe.wait_for_status("node", "OK")
    second = start()
    probe.wait_for_status("node", "ERROR", "of this name")
    second.stop()
    probe.wait_for_status("node", "OK")
