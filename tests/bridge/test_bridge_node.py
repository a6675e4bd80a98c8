"""The bridge without Cyber RT: over TCP, and what is refused when it is configured."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apollo_bridge.layouts import own_class

pytestmark = [pytest.mark.ros, pytest.mark.timeout(900)]
CHASSIS, PAD = "/apollo/canbus/chassis", "/apollo/planning/pad"
ERROR = 2


@pytest.fixture
def server(world: Any) -> Iterator[Any]:
    script = Path(__file__).with_name("bridge_server.py")
    yield world.start("server", str(script), "0")


def feed(server: Any, speed: float, number: int) -> None:
    message = own_class("apollo.canbus.Chassis")(speed_mps=speed, driving_mode=1)
    message.header.sequence_num, message.header.timestamp_sec = number, 1e9 + number / 50
    server.tell(channel=CHASSIS, message=message.SerializeToString().hex())


def test_over_tcp_from_a_channel_to_a_pad(world: Any, server: Any, listener: Any) -> None:
    from forewarn_msgs.msg import Intervention, Signals

    port = server.wait_for(lambda line: "port" in line)["port"]
    world.monitor()
    bridge = world.bridge(transport="tcp", port=port)
    server.wait_for(lambda line: line.get("reader") == CHASSIS)
    number = 0

    def pads(message: Any) -> bool:
        # Each answer of the bridge is followed by the next message: no clock decides here.
        nonlocal number
        number += 1
        feed(server, 4.5, number)
        return False

    def stopped(message: Any) -> bool:
        return bool(message.active and message.action == Intervention.COMFORTABLE_STOP)

    feed(server, 4.5, 0)
    subscription = listener.node.create_subscription(Signals, "/monitor/input/signals", pads, 10)
    listener.wait_for(Intervention, "/monitor/output/intervention", stopped)
    told = server.wait_for(lambda line: line.get("published") == PAD)
    listener.node.destroy_subscription(subscription)
    pad = own_class("apollo.planning.PadMessage").FromString(bytes.fromhex(told["message"]))
    assert pad.action == 4
    assert pad.header.module_name == "forewarn"
    written = bridge.interrupt()
    assert "Traceback" not in written
    assert "STOP stays in force in Apollo" in written


def test_the_access_policy_is_what_the_bridge_does(
    repository: Path, world: Any, server: Any
) -> None:
    from access import compare
    from live_ros import Probe

    port = server.wait_for(lambda line: "port" in line)["port"]
    bridge = world.bridge(transport="tcp", port=port)
    probe = Probe(world.domain)
    try:
        compare(repository, probe.node, probe.wait, "apollo_bridge", set())
    finally:
        probe.close()
    assert "Traceback" not in bridge.interrupt()


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        pytest.param("ParameterEvent", signal.SIGTERM, id="made"),
        pytest.param("Signals", signal.SIGTERM, id="running"),
        pytest.param("Signals", signal.SIGINT, id="interrupted"),
    ],
)
def test_told_to_stop_while_it_publishes_it_ends_in_good_order(
    world: Any, server: Any, kind: str, number: signal.Signals
) -> None:
    port = server.wait_for(lambda line: "port" in line)["port"]
    bridge = world.bridge(told=(kind, number), transport="tcp", port=port)
    if kind == "Signals":  # they come from a thread
        server.wait_for(lambda line: line.get("reader") == CHASSIS)
        feed(server, 4.5, 0)
    assert bridge.process.wait(240.0) == 0
    written = bridge.log.read_text()
    assert f"signal {int(number)} at {kind}" in written
    for word in ("Traceback", "Error", "invalid"):
        assert word not in written, written


@pytest.fixture(scope="module")
def refused(module_world: Any) -> Iterator[Any]:
    """Return a probe of a bridge that could not start by itself, and what it says about that."""
    pytest.importorskip("rclpy", reason="rclpy is ROS 2's Python package")
    from live_ros import Probe

    file = module_world.folder / "others.yaml"
    file.write_text("/bridge: {ros__parameters: {port: 1}}\n")
    bridge = module_world.bridge(transport="pigeon", files=[str(file)])
    probe = Probe(module_world.domain, "/apollo_bridge")
    yield probe, status(probe, "node", ERROR)
    probe.close()
    written = bridge.interrupt()
    assert "Traceback" not in written
    told = f"{file}: no parameters for this node, /apollo_bridge: its parameters are for /bridge"
    assert written.count(told) == 1


@pytest.fixture
def waiting(refused: Any) -> Any:
    """Return the probe: the bridge waits to be configured."""
    return refused[0]


def test_what_cannot_work_is_an_error_at_autostart(refused: Any) -> None:
    assert "parameter transport: 'pigeon'" in refused[1]


def status(probe: Any, name: str, level: int, unlike: str = "not connected yet") -> str:
    """Return what a report says once it has a subcomponent at this level."""
    full = f"apollo_bridge: {name}"
    known = probe.reports

    def found() -> bool:
        entry = probe.diagnostics.get(full)
        if probe.reports <= known or entry is None or entry.message == unlike:
            return False
        return bool(ord(entry.level) == level)

    probe.wait(found, lambda: f"{name} at {level}: {probe.diagnostics}", limit=90.0)
    return str(probe.diagnostics[full].message)


@pytest.mark.parametrize(
    ("change", "parameters", "text"),
    [
        ("REPLAN", {}, "properties.not_fast.intervention: Apollo 9 cannot do REPLAN"),
        (
            "LIMIT_SPEED\n    speed_limit: 3",
            {"version": 8},
            "properties.not_fast.intervention: Apollo 8 cannot do LIMIT_SPEED",
        ),
        (None, {"version": 5}, "5 is no version of Apollo"),
        (None, {"version": 8, "way": "action"}, "Apollo 8 takes no commands by 'action'"),
        (None, {"way": "action"}, "'action' is a service of Cyber RT, and cyber_bridge carries"),
        (None, {"config": ""}, "parameter config: is not set"),
    ],
)
def test_what_cannot_work_is_an_error_when_it_is_configured(
    waiting: Any, module_world: Any, change: str | None, parameters: dict[str, Any], text: str
) -> None:
    folder = module_world.folder
    config = folder / "monitor.yaml"
    if change is not None:
        changed = config.read_text().replace("COMFORTABLE_STOP", change)
        config = folder / "changed.yaml"
        config.write_text(changed)
    usual = {"transport": "tcp", "port": 1, "version": 9, "way": "pad", "config": str(config)}
    assert waiting.set(**{**usual, **parameters}).successful
    assert not waiting.change("configure")
    assert text in status(waiting, "node", ERROR)


def test_without_a_server_the_diagnostics_say_so(waiting: Any, module_world: Any) -> None:
    config = module_world.folder / "monitor.yaml"
    waiting.set(transport="tcp", port=1, version=9, way="pad", config=str(config))
    assert waiting.change("configure") and waiting.change("activate")
    text = status(waiting, "connection", ERROR)
    assert "Connection refused; is cyber_bridge running?" in text
    assert waiting.change("deactivate") and waiting.change("cleanup")


def test_a_layout_that_is_not_known_is_a_problem_of_its_channel(
    waiting: Any, module_world: Any
) -> None:
    # Not known here, and maybe to the running Apollo.
    config = module_world.folder / "unknown.yaml"
    text = (module_world.folder / "monitor.yaml").read_text()
    config.write_text(text.replace("apollo.canbus.Chassis", "apollo.canbus.Chasis"))
    waiting.set(transport="tcp", port=1, version=9, way="pad", config=str(config))
    assert waiting.change("configure") and waiting.change("activate")
    assert "layout of apollo.canbus.Chasis is not known" in status(waiting, CHASSIS, ERROR)
    assert waiting.change("deactivate") and waiting.change("cleanup")


def test_the_help_of_the_launch_file_and_the_parameters_agree(repository: Path) -> None:
    import ast

    from apollo_bridge.node import PARAMETERS

    tree = ast.parse((repository / "launch" / "apollo.launch.py").read_text())
    own = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "OWN"
    )
    assert isinstance(own, ast.Dict)
    declared = {name: default for name, default, _ in PARAMETERS}
    for key, value in zip(own.keys, own.values, strict=True):
        assert isinstance(key, ast.Constant) and isinstance(value, ast.Tuple)
        name, default = key.value, value.elts[0].value  # type: ignore[attr-defined]
        assert str(declared[name]) == default
        assert ast.unparse(value.elts[2]) == type(declared[name]).__name__


def test_the_monitor_does_not_take_the_journal_of_the_bridge(repository: Path) -> None:
    # What is given to a launch file reaches those that it includes, by name.
    import ast

    tree = ast.parse((repository / "launch" / "apollo.launch.py").read_text())
    texts = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    assert any("'journal': LaunchConfiguration('monitor_journal')" in text for text in texts)


def test_the_parameters_are_in_the_guide(repository: Path) -> None:
    from apollo_bridge.node import PARAMETERS

    guide = (repository / "docs" / "howto" / "apollo.md").read_text()
    for name, default, text in PARAMETERS:
        shown = str(default).lower() if isinstance(default, bool) else str(default)
        assert f"| `{name}` | {f'`{shown}`' if shown else ''} | {text} |" in guide


def test_the_launch_file_starts_both_nodes(repository: Path) -> None:
    for module in ("launch.actions", "launch_ros.actions"):
        pytest.importorskip(module, reason=f"{module} comes with ROS 2, it has no wheel")
    code = (
        "import importlib.util, json; s = importlib.util.spec_from_file_location('l', "
        f"{str(repository / 'launch' / 'apollo.launch.py')!r}); m = importlib.util."
        "module_from_spec(s); s.loader.exec_module(m); d = m.generate_launch_description(); "
        "print(json.dumps([type(e).__name__ for e in d.entities]))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(found.stdout)[-2:] == ["LifecycleNode", "GroupAction"]
