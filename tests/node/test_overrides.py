"""A parameter that a node does not have: ROS ignores it in silence, our nodes say so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live_ros import Probe, Process
from small_world import MONITOR

pytestmark = pytest.mark.ros
TOLD = "ignored, no parameters of this node: "


def told(process: Process) -> list[str]:
    """Return what each warning says."""
    lines = process.output.splitlines()
    return [line.partition(TOLD)[2] for line in lines if TOLD in line and "[WARN]" in line]


def test_the_monitor_names_them_and_the_nearest_of_its_own(
    start: Callable[..., Process], probe: Probe
) -> None:
    given = {
        "jurnal": "x",
        "use_sim_time": False,
        "qos_overrides./clock.subscription.depth": 5,
        "properties.brake.act": 0.9,
        "properties.brak.act": 0.9,
        "qos_overrides./world/odometri.subscription.reliability": "reliable",
    }
    process = start(autostart=False, **given)
    assert probe.state == "unconfigured"
    assert told(process) == ["jurnal (nearest: journal)"]
    assert probe.change("configure")
    assert process.stop() == 0
    of_the_file = (
        "properties.brak.act (nearest: properties.brake.act), "
        "qos_overrides./world/odometri.subscription.reliability "
        "(nearest: qos_overrides./world/odometry.subscription.reliability)"
    )
    assert told(process) == ["jurnal (nearest: journal)", of_the_file]


@pytest.mark.parametrize(
    ("executable", "name", "nearest"),
    [("twist_gate_node", "confg", "config"), ("bag_player", "bagg", "bag")],
)
def test_whoever_cannot_begin_for_it_says_it_first(
    executable: str, name: str, nearest: str, domain: int
) -> None:
    process = Process(executable, domain, {name: "/some/where"})
    assert process.wait() != 0
    assert told(process) == [f"{name} (nearest: {nearest})"]
    assert f"parameter {nearest}: is not set" in process.output
    process.__exit__()


@pytest.mark.parametrize(
    ("executable", "given"),
    [
        ("main", {"journal_max_age": 60}),
        ("twist_gate_node", {"open_for": "soon"}),
        ("bag_player", {"rate": -1.0}),
    ],
)
def test_a_value_that_is_refused_at_the_start_ends_it_in_one_line(
    executable: str, given: dict[str, Any], domain: int
) -> None:
    process = Process(executable, domain, given)
    assert process.wait() == 1
    (line,) = process.output.splitlines()
    assert line.startswith("error: ")
    assert next(iter(given)) in line
    process.__exit__()


def test_a_gate_takes_a_file_for_all_nodes_and_is_not_opened_by_its_start(
    tmp_path: Path, domain: int, probe: Probe
) -> None:
    file = tmp_path / "monitor.yaml"
    file.write_text(
        f"{MONITOR}actuators: {{twist: {{input: /a, output: /b, max_speed: 1, max_turn: 1}}}}\n"
    )
    parameters = tmp_path / "parameters.yaml"
    parameters.write_text("/**: {ros__parameters: {opne_for: 9.0, controller_frequency: 20.0}}\n")
    given = {"config": str(file), "open_for": 600.0}
    process = Process("twist_gate_node", domain, given, "--params-file", str(parameters))
    probe.wait(lambda: "twist_gate: gate" in probe.diagnostics, "a report")
    assert "the monitor has not spoken yet" in probe.diagnostics["twist_gate: gate"].message
    assert process.stop() == 0
    (line,) = told(process)
    assert line.startswith("controller_frequency (nearest: ")
    assert line.endswith(", opne_for (nearest: open_for)")
    assert "open_for opens nothing at the start: set it afterwards" in process.output
    process.__exit__()
