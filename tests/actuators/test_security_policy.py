"""The example policy allows what the nodes do, and what they do is all that it allows."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from acting import config
from live_ros import Probe, Process, monitor_parameters
from small_world import MONITOR, TYPES

pytestmark = pytest.mark.ros
ACTUATORS = (
    "{autoware: {}, nav2: {lock_topic: /forewarn_lock},"
    " twist: {input: /cmd_vel_raw, output: /cmd_vel, max_speed: 2, max_turn: 2}}"
)
# Other distributions publish and serve these as well, or not.
OPTIONAL = {"/clock", "/bond", "/odom", "/scan", "/monitor/input/signals"}
KEYSTORE = (
    *("identity_ca.cert.pem", "cert.pem", "key.pem"),
    *("permissions_ca.cert.pem", "governance.p7s", "permissions.p7s"),
)
VARYING = ("get_type_description", "get_logger_levels", "set_logger_levels")


def allowed(repository: Path, node: str, section: str, right: str) -> set[str]:
    root = ET.parse(repository / "config" / "sros2" / "policy.xml").getroot()
    (profile,) = root.findall(f".//profile[@node='{node}']")
    return {
        (entry.text or "").replace("~", f"/{node}")
        for part in profile.findall(f"{section}s[@{right}='ALLOW']")
        for entry in part.findall(section)
    }


def names(found: Iterable[tuple[str, list[str]]]) -> set[str]:
    return {name for name, _ in found if not name.endswith(VARYING)}


def compare(repository: Path, probe: Probe, node: str) -> None:
    graph = probe.node
    inputs = set(TYPES) if node == "monitor" else set()
    probe.wait(lambda: node in graph.get_node_names(), f"the node {node}")
    for section, right, look_up in (
        ("topic", "publish", graph.get_publisher_names_and_types_by_node),
        ("topic", "subscribe", graph.get_subscriber_names_and_types_by_node),
        ("service", "reply", graph.get_service_names_and_types_by_node),
        ("service", "request", graph.get_client_names_and_types_by_node),
    ):
        granted = allowed(repository, node, section, right)

        def differences(
            granted: set[str] = granted, look_up: Callable[..., Iterable] = look_up
        ) -> set[str]:
            used = names(look_up(node, "/"))
            return (used - granted - inputs - OPTIONAL) | (granted - used - OPTIONAL)

        probe.wait(
            lambda check=differences: not check(),
            lambda check=differences, what=f"{section} {right}": f"{node} {what}: {check()}",
        )


def test_the_policy_is_what_the_nodes_do(
    repository: Path,
    world: Path,
    tmp_path: Path,
    probe: Probe,
    installed: dict[str, str],
) -> None:
    file = config(tmp_path, ACTUATORS, MONITOR)
    parameters = monitor_parameters(world, config=file, mode="act")
    with (
        Process("main", probe.domain, parameters),
        Process("twist_gate_node", probe.domain, {"config": file}),
    ):
        probe.wait_for_start()
        compare(repository, probe, "monitor")
        compare(repository, probe, "twist_gate")


@pytest.mark.parametrize("executable", ["main", "twist_gate_node"])
def test_under_enforced_security_nothing_starts_without_usable_keys(
    world: Path,
    tmp_path: Path,
    domain: int,
    monkeypatch: pytest.MonkeyPatch,
    executable: str,
) -> None:
    """So it ends too where the middleware was built without security, as that of the wheels is."""
    enclave = tmp_path / "enclaves" / "forewarn" / "monitor"
    enclave.mkdir(parents=True)
    for name in KEYSTORE:
        (enclave / name).write_text("no key")
    monkeypatch.setenv("ROS_SECURITY_ENABLE", "true")
    monkeypatch.setenv("ROS_SECURITY_STRATEGY", "Enforce")
    monkeypatch.setenv("ROS_SECURITY_KEYSTORE", str(tmp_path))
    parameters = monitor_parameters(world)
    process = Process(executable, domain, parameters, "--enclave", "/forewarn/monitor")
    assert process.wait() == 1
    assert "error creating node" in process.output
    assert "configured" not in process.output
