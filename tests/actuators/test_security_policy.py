"""The example policy: what SROS 2 accepts, what the nodes do, and no more for anybody else."""

from __future__ import annotations

import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from access import KINDS, OPTIONAL, allowed, compare, names, policy
from acting import config
from live_ros import Probe, Process, monitor_parameters
from small_world import MONITOR, TYPES

pytestmark = pytest.mark.ros
ACTUATORS = (
    "{autoware: {}, nav2: {lock_topic: /forewarn_lock},"
    " twist: {input: /cmd_vel_raw, output: /cmd_vel, max_speed: 2, max_turn: 2}}"
)
NODES = {"monitor", "twist_gate", "bag_player", "apollo_bridge"}
ROLES = {"reader", "operator", "planner"}
KEYSTORE = (
    *("identity_ca.cert.pem", "cert.pem", "key.pem"),
    *("permissions_ca.cert.pem", "governance.p7s", "permissions.p7s"),
)
# What SROS 2 accepts (policy version 0.2.0): children of each element, and its attributes with
# their values; the first attributes are required, of the others one is needed for a rule to mean
# something.
SCHEMA: dict[str, tuple[set[str], set[str], set[str]]] = {
    "policy": ({"enclaves"}, {"version"}, set()),
    "enclaves": ({"enclave"}, set(), set()),
    "enclave": ({"profiles"}, {"path"}, set()),
    "profiles": ({"profile"}, set(), set()),
    "profile": ({"topics", "services", "actions"}, {"ns", "node"}, set()),
    "topics": ({"topic"}, set(), {"publish", "subscribe"}),
    "services": ({"service"}, set(), {"reply", "request"}),
    "actions": ({"action"}, set(), {"call", "execute"}),
    "topic": (set(), set(), set()),
    "service": (set(), set(), set()),
    "action": (set(), set(), set()),
}
# Requests that change what the monitor or the gate does.
CHANGING = (
    *("acknowledge", "change_state", "load_model", "mute", "release", "reset"),
    *("set_parameters", "set_parameters_atomically", "set_logger_levels"),
)


def test_the_policy_has_the_structure_that_sros2_accepts(repository: Path) -> None:
    def check(element: ET.Element) -> None:
        children, required, rights = SCHEMA[element.tag]
        assert {child.tag for child in element} <= children, element.tag
        assert len(element) or not children, f"{element.tag} is empty"
        assert required <= set(element.keys()) <= required | rights
        assert not rights or [*element.attrib.values()] == ["ALLOW"]
        if not children:
            text = element.text or ""
            assert text.startswith(("~/", "/")), text
            assert text == text.strip()
        for child in element:
            check(child)

    root = policy(repository)
    assert root.tag == "policy"
    assert root.get("version") == "0.2.0"
    check(root)
    paths = [item.get("path") for item in root.iter("enclave")]
    assert len(set(paths)) == len(paths)
    assert {item.get("node") for item in root.iter("profile")} == NODES | ROLES


def test_sros2_itself_accepts_the_policy(repository: Path) -> None:
    sros2 = pytest.importorskip("sros2.policy", reason="sros2 has no wheel; its schema is there")
    sros2.load_policy(repository / "config" / "sros2" / "policy.xml")


def test_only_the_operator_may_change_what_monitor_and_gate_do(repository: Path) -> None:
    for node in NODES | ROLES - {"operator"}:
        asked = allowed(repository, node, "service", "request")
        assert not {name for name in asked if name.rpartition("/")[2] in CHANGING}, node
    asked = allowed(repository, "operator", "service", "request")
    for node in ("monitor", "twist_gate"):
        for name in ("set_parameters", "set_parameters_atomically"):
            assert f"/{node}/{name}" in asked
    # Every service of the monitor is somebody's: the operator's, if it changes anything.
    offered = allowed(repository, "monitor", "service", "reply")
    assert offered == {name for name in asked if name.startswith("/monitor/")}


def test_whoever_reads_only_publishes_nothing_that_is_heard(repository: Path) -> None:
    for role in ("reader", "operator"):
        assert allowed(repository, role, "topic", "publish") == {"/parameter_events", "/rosout"}
    planner = allowed(repository, "planner", "topic", "publish")
    assert planner == {"/cmd_vel_raw", "/parameter_events", "/rosout"}
    assert not allowed(repository, "planner", "service", "request")


def test_each_topic_that_commands_has_one_source(repository: Path) -> None:
    sources = {
        "/monitor/output/risk": {"monitor"},
        "/monitor/output/intervention": {"monitor"},
        "/twist_gate/output/applied": {"twist_gate"},
        "/cmd_vel": {"twist_gate"},
        "/cmd_vel_raw": {"planner"},
        "/monitor/input/signals": {"apollo_bridge"},
        "/clock": {"bag_player"},
        "/monitor/input/arrivals": {"bag_player"},
    }
    for topic, expected in sources.items():
        who = {n for n in NODES | ROLES if topic in allowed(repository, n, "topic", "publish")}
        assert who == expected, topic


def test_the_policy_is_what_the_nodes_do(
    repository: Path, world: Path, tmp_path: Path, probe: Probe, installed: dict[str, str]
) -> None:
    file = config(tmp_path, ACTUATORS, MONITOR)
    parameters = monitor_parameters(world, config=file, mode="act", use_sim_time=True)
    playing = {"bag": str(world / "bag.mcap"), "rate": 0.1}
    with (
        Process("main", probe.domain, parameters),
        Process("twist_gate_node", probe.domain, {"config": file}),
        Process("bag_player", probe.domain, playing),
    ):
        for node in ("monitor", "twist_gate", "bag_player"):
            compare(repository, probe.node, probe.wait, node, set(TYPES))
        _roles_find_what_they_are_granted(repository, probe)


def _roles_find_what_they_are_granted(repository: Path, probe: Probe) -> None:
    """Check that others are granted what is there: a name that nobody has protects nothing."""
    graph = probe.node
    found = {
        right: {
            name
            for node in ("monitor", "twist_gate", "bag_player")
            for name in names(getattr(graph, look_up)(node, "/"))
        }
        for _, right, look_up in KINDS
    }
    for role in ROLES:
        heard = allowed(repository, role, "topic", "subscribe")
        assert heard <= found["publish"] | OPTIONAL, role
        asked = allowed(repository, role, "service", "request")
        assert asked <= found["reply"], role
    assert "/cmd_vel_raw" in found["subscribe"]


def enforced(keystore: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_SECURITY_ENABLE", "true")
    monkeypatch.setenv("ROS_SECURITY_STRATEGY", "Enforce")
    monkeypatch.setenv("ROS_SECURITY_KEYSTORE", str(keystore))


@pytest.mark.parametrize("executable", ["main", "twist_gate_node"])
def test_under_enforced_security_nothing_starts_without_usable_keys(
    world: Path, tmp_path: Path, domain: int, monkeypatch: pytest.MonkeyPatch, executable: str
) -> None:
    """So it ends too where the middleware was built without security, as that of the wheels is."""
    without_keys(tmp_path, monkeypatch)
    parameters = monitor_parameters(world)
    process = Process(executable, domain, parameters, "--enclave", "/forewarn/monitor")
    assert process.wait() == 1
    assert "error creating node" in process.output
    assert "configured" not in process.output


def without_keys(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enclave = folder / "enclaves" / "forewarn" / "monitor"
    enclave.mkdir(parents=True)
    for name in KEYSTORE:
        (enclave / name).write_text("no key")
    enforced(folder, monkeypatch)


def test_under_enforcement_the_monitor_obeys_the_operator_alone(
    repository: Path, world: Path, tmp_path: Path, domain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "none").mkdir()
    without_keys(tmp_path / "none", monkeypatch)
    parameters = monitor_parameters(world)
    process = Process("main", domain, parameters, "--enclave", "/forewarn/monitor")
    process.wait()
    if "security libraries" in process.output:
        pytest.skip("the Fast DDS of the wheels has no security libraries")
    if shutil.which("ros2") is None:
        pytest.skip("there is no `ros2 security` to make keys with")
    keystore = tmp_path / "keystore"
    file = repository / "config" / "sros2" / "policy.xml"
    security(["create_keystore", keystore])
    for role in ("monitor", "operator", "reader"):
        security(["create_enclave", keystore, f"/forewarn/{role}"])
        security(["create_permission", keystore, f"/forewarn/{role}", file])
    enforced(keystore, monkeypatch)
    with Process("main", domain, parameters, "--enclave", "/forewarn/monitor") as monitor:
        # Until it is discovered there is no such node.
        assert any("successful" in set_depth(domain, "operator") for _ in range(20))
        assert "successful" not in set_depth(domain, "reader")
        assert "security is on, and enforced" in monitor.output


def security(arguments: list[object]) -> None:
    command = ["ros2", "security", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)


def set_depth(domain: int, role: str) -> str:
    command = ["ros2", "param", "set", "/monitor", "queue_depth", "60"]
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain)}
    environment["ROS_SECURITY_ENCLAVE_OVERRIDE"] = f"/forewarn/{role}"
    try:
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired:  # whoever may not ask is not answered
        return ""
    return result.stdout
