"""The bridge without Cyber RT: over TCP, and what is refused when it is configured."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apollo_bridge.layouts import own_class

pytestmark = [pytest.mark.ros, pytest.mark.timeout(200)]
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
    world.bridge(transport="tcp", port=port)
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


def test_without_a_server_the_diagnostics_say_so(world: Any, listener: Any) -> None:
    world.bridge(transport="tcp", port=1)
    level, text, _ = listener.diagnostic(
        "connection", lambda level, text, values: "Connection refused" in text
    )
    assert level == ERROR
    assert "is cyber_bridge running?" in text


@pytest.mark.parametrize(
    ("change", "parameters", "text"),
    [
        (
            ("COMFORTABLE_STOP", "REPLAN"),
            {},
            "properties.not_fast.intervention: Apollo 9 cannot do",
        ),
        (None, {"version": 5}, "5 is no version of Apollo"),
        (None, {"version": 8, "way": "action"}, "Apollo 8 takes no commands by 'action'"),
        (None, {"transport": "pigeon"}, "parameter transport: 'pigeon'"),
        (("apollo.canbus.Chassis", "apollo.canbus.Chasis"), {}, None),
    ],
)
def test_what_cannot_work_is_an_error_when_it_is_configured(
    world: Any,
    listener: Any,
    change: tuple[str, str] | None,
    parameters: dict[str, Any],
    text: str | None,
) -> None:
    config = world.folder / "monitor.yaml"
    if change is not None:
        config.write_text(config.read_text().replace(*change))
    world.bridge(**({"transport": "tcp", "port": 1} | parameters))
    if text is None:
        # Not known here, and maybe to the running Apollo: told as the channel's problem.
        _, found, _ = listener.diagnostic(CHASSIS, lambda level, text, values: level == ERROR)
        assert "layout of apollo.canbus.Chasis is not known" in found
        return
    _, found, _ = listener.diagnostic("node", lambda level, text, values: level == ERROR)
    assert text in found


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
    assert json.loads(found.stdout)[-2:] == ["LifecycleNode", "IncludeLaunchDescription"]
