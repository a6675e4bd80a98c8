"""Parameters that no node takes: ROS ignores them in silence, our nodes say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import rclpy
from extent import sampled
from live_ros import Probe, Process, monitor_parameters
from rclpy.context import Context
from rclpy.node import Node
from small_world import DISTANCE, MONITOR, ODOMETRY, TYPES

from forewarn_ros.overrides import unaddressed

pytestmark = pytest.mark.ros
TOLD = "ignored, no parameters of this node: "
NAMES = (
    *("monitor", "/monitor", "x", "/x", "/x/", "/", "other", "/x/monitor"),
    *("*", "/*", "**", "/**", "/x/**", "/*/monitor", "/**/monitor"),
)


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
    ("executable", "given"), [("main", {"journal_max_age": 60}), ("bag_player", {"rate": -1.0})]
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


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    found = Context()
    rclpy.init(args=[], context=found)
    yield found
    rclpy.shutdown(context=found)


@pytest.mark.parametrize("place", ["/monitor", "/x/y/monitor"])
def test_a_file_is_told_of_just_where_rcl_takes_nothing_from_it(
    place: str, context: Context, tmp_path: Path
) -> None:
    """The oracle is rcl itself, which reads one-level and nested names of 15 kinds."""
    file, taken = tmp_path / "p.yaml", list[bool]()
    for keys in [*((name,) for name in NAMES), *sampled(list(product(NAMES, NAMES)))]:
        text = "{ros__parameters: {a: 1}}"
        for key in reversed(keys):
            text = f"{{'{key}': {text}}}"
        file.write_text(text)
        arguments = ["--ros-args", "--params-file", str(file)]
        namespace, _, name = place.rpartition("/")
        try:
            node = Node(name, context=context, namespace=namespace or None, cli_args=arguments)
        except Exception:  # rcl refuses the file, and no node begins
            continue
        taken.append("a" in node._parameter_overrides)
        node.destroy_node()
        assert bool(unaddressed(place, file)) != taken[-1], text
    assert 5 < sum(taken) < len(taken) - 5


def of_another(tmp_path: Path, node: str) -> tuple[list[str], str]:
    """Return arguments with a file for others, and what is said of it."""
    file = tmp_path / "others.yaml"
    file.write_text(
        "/monitor_node: {ros__parameters: {journal: x}}\n"
        "robot: {'*': {ros__parameters: {a: 2001-99-99}}, b: {ros__parameters: {a: 1}}}\n"
    )
    own = tmp_path / "all.yaml"
    own.write_text("/**: {ros__parameters: {use_sim_time: false}}\n")
    files = ["--params-file", str(file), "--params-file", str(own), "--params-file", str(file)]
    said = f"{file}: no parameters for this node, {node}: its parameters are for "
    return files, f"{said}/monitor_node, /robot/*, /robot/b"


@pytest.mark.parametrize(
    ("executable", "name"), [("main", "monitor"), ("bag_player", "bag_player")]
)
def test_a_file_of_parameters_that_names_another_node_is_told_once(
    executable: str, name: str, tmp_path: Path, domain: int, probe: Probe
) -> None:
    files, said = of_another(tmp_path, f"/hall/{name}")
    with Process(executable, domain, {}, "-r", "__ns:=/hall", *files) as process:
        probe.wait(lambda: said in process.output, lambda: process.output)
        process.stop()
        assert process.output.count("no parameters for this node") == 1


def test_relative_topics_lie_in_the_namespace_of_the_node(
    tmp_path: Path, world: Path, domain: int
) -> None:
    text = (world / "monitor.yaml").read_text().replace("/world/", "world/")
    (tmp_path / "monitor.yaml").write_text(text)
    listener = Probe(domain, "/robot1/monitor")
    # The model was learned with the full names.
    parameters = monitor_parameters(world, config=str(tmp_path / "monitor.yaml"))
    with Process("main", domain, parameters, "-r", "__ns:=/robot1"):
        for topic in (ODOMETRY, DISTANCE):
            listener.connected(f"/robot1{topic}", TYPES[topic])
        listener.wait(lambda: listener.risks, "a verdict")
        assert not listener.node.get_subscriptions_info_by_topic(ODOMETRY)
    listener.close()
