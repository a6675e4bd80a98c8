"""A monitor that is dead, hung or starved is noticed by whoever listens, without a gate."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from extent import WHOLE
from forewarn_msgs.msg import RiskArray
from live_process import starving
from live_ros import Probe, Process, environment, monitor_parameters
from rclpy.duration import Duration
from rclpy.qos import LivelinessPolicy, QoSProfile
from small_world import GATED, MONITOR

from forewarn_ros.messages import from_time

try:
    from rclpy.event_handler import SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks

pytestmark = pytest.mark.ros
Start = Callable[..., Process]


class Listener:
    """A planner that asks for the promises that the monitor makes, and counts what is broken."""

    def __init__(self, probe: Probe) -> None:
        self.alive = 0
        self.missed = 0
        promised = QoSProfile(depth=1, liveliness=LivelinessPolicy.MANUAL_BY_TOPIC)
        promised.liveliness_lease_duration = Duration(seconds=0.5)
        promised.deadline = Duration(seconds=0.2)
        probe.node.create_subscription(
            RiskArray,
            "/monitor/output/risk",
            lambda message: None,
            promised,
            event_callbacks=SubscriptionEventCallbacks(
                liveliness=self._on_liveliness, deadline=self._on_deadline
            ),
        )

    def _on_liveliness(self, event: object) -> None:
        self.alive = event.alive_count  # type: ignore[attr-defined]

    def _on_deadline(self, event: object) -> None:
        self.missed += event.total_count_change  # type: ignore[attr-defined]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_deadline_and_liveliness_tell(start: Start, probe: Probe, how: signal.Signals) -> None:
    listener = Listener(probe)
    process = start()
    probe.wait(lambda: listener.alive == 1, "a living monitor")
    known = listener.missed
    process.process.send_signal(how)
    probe.wait(lambda: listener.missed > known, "a missed deadline")
    probe.wait(lambda: listener.alive == 0, "lost liveliness")
    if how is signal.SIGSTOP:
        process.process.send_signal(signal.SIGCONT)
        probe.wait(lambda: listener.alive == 1, "liveliness again")
    else:
        process.wait()


def test_a_starved_monitor_reports_what_it_missed(start: Start, probe: Probe) -> None:
    listener = Listener(probe)
    process = start(diagnostics_period=0.5)
    probe.wait(lambda: listener.alive == 1, "a living monitor")
    probe.wait_for_status("timing", "OK")

    def left_out() -> int:
        return int(probe.values("timing")["ticks left out"])

    def silent() -> bool:
        return bool(probe.risks) and time.time_ns() - newest(probe) > 500_000_000

    before = left_out()
    for _ in range(5):  # a deadline is missed as well if it is the probe that was starved
        known = listener.missed
        with starving(process):
            probe.wait(lambda count=known: listener.missed > count, "a missed deadline")
            probe.wait(silent, "half a second without ticks")
        known = probe.reports
        probe.wait(lambda count=known: probe.reports > count + 1, "reports")
        if left_out() > before:
            break
    assert left_out() > before
    ticks = [message.risks[0].tick for message in probe.risks]
    assert ticks == sorted(set(ticks)), "none is told twice, and none late"


def newest(probe: Probe) -> int:
    """Return the time of the newest tick that was told."""
    return from_time(probe.risks[-1].header.stamp)


INTERRUPTED = """
from monitor_node import console
{imports}
print("begun", flush=True)
console.{executable}()
"""


MOMENTS = [
    ("monitor_node", True),
    ("twist_gate_node", False),
    *product(("monitor_node", "twist_gate_node", "bag_player_node"), (True, False)),
]


@pytest.mark.parametrize(("executable", "imported"), MOMENTS[2:] if WHOLE else MOMENTS[:2])
def test_interrupted_at_any_moment_it_ends_in_silence(
    world: Path, tmp_path: Path, domain: int, executable: str, imported: bool
) -> None:
    file = tmp_path / "monitor.yaml"
    file.write_text(f"{MONITOR}{GATED}\n")
    dice = random.Random(f"{executable}{imported}")
    parameters = {"config": str(file)}
    if executable == "monitor_node":
        parameters = monitor_parameters(world, **parameters)
    elif executable == "bag_player_node":
        parameters = {"bag": str(world / "bag.mcap"), "rate": 0.1}
    imports = "from monitor_node import bag_player, main, twist_gate_node" if imported else ""
    arguments = [f"-p{name}:={json.dumps(value)}" for name, value in parameters.items()]
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED.format(imports=imports, executable=executable)]
        + ["--ros-args"]
        + [part for argument in arguments for part in (argument[:2], argument[2:])],
        env=environment(domain),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        after = dice.uniform(0.0, 1.0 if imported else 0.4)
        threading.Timer(after, process.send_signal, [signal.SIGINT]).start()
        written = process.stdout.read()
        assert "Traceback" not in written, f"{after:.3f} s: {written}"
        expected = 130 if executable == "bag_player_node" else 0
        assert process.wait() == expected, f"{after:.3f} s: {written}"


def test_diagnostics_come_before_autoware_takes_them_for_stale(start: Start, probe: Probe) -> None:
    start(diagnostics_period=0.5)  # the default
    probe.wait_for_status("node", "OK")

    def gap() -> float:
        begun, known = time.monotonic(), probe.reports
        probe.wait(lambda: probe.reports > known, "a report")
        return time.monotonic() - begun

    gap()
    gaps = sorted(gap() for _ in range(6))
    assert gaps[1] < 1.0, f"{gaps}: a busy machine may delay some, and not all"


HEARTBEATS = """
import json, sys
import rclpy
from bond.msg import Status
from rclpy.node import Node
rclpy.init()
node = Node("manager")
def heard(message):
    stamp = message.header.stamp.sec > 0
    fields = [message.id, message.instance_id, message.active, stamp]
    print(json.dumps([*fields, message.heartbeat_timeout, message.heartbeat_period]), flush=True)
node.create_subscription(Status, "/bond", heard, 100)
print("ready", flush=True)
rclpy.spin(node)
"""


def test_a_bond_beats_while_the_node_is_active(
    start: Start, probe: Probe, installed: dict[str, str], tmp_path: Path
) -> None:
    heard = tmp_path / "heard"

    def beats() -> list[list[Any]]:
        lines = heard.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines[1:] if line.endswith("\n")]

    with heard.open("w") as file:
        manager = subprocess.Popen(
            [sys.executable, "-c", HEARTBEATS], env=environment(probe.domain), stdout=file
        )
    try:
        probe.wait(lambda: heard.read_text().startswith("ready\n"), "the manager")
        start(bond=True)
        probe.wait(lambda: len(beats()) >= 5, "five heartbeats")
        name, instance, active, stamped, timeout, period = beats()[0]
        assert (name, active, stamped, timeout) == ("monitor", True, True, 4.0)
        assert period == pytest.approx(0.1)
        assert probe.change("deactivate")
        probe.wait(lambda: beats()[-1][2] is False, "the end of the bond")
        assert {beat[1] for beat in beats()} == {instance}
    finally:
        manager.kill()
        manager.wait()


FAILING = """
import rclpy
from bond.msg import Status
from rclpy.lifecycle import LifecycleNode
from monitor_node.bond import PERIOD, Bond
rclpy.init()
node, heard, decides, periods = LifecycleNode("monitor"), [], [True], []
node.create_subscription(Status, "/bond", heard.append, 100)
node.create_timer(PERIOD, lambda: periods.append(len(heard)))
bond = Bond(node, lambda: decides[0])
def serve(done):
    while not done():
        rclpy.spin_once(node)
serve(lambda: len(heard) > 5)
decides[0] = False
del periods[:]
serve(lambda: len(periods) > 10)
assert len(set(periods[3:])) == 1, periods
decides[0], silent = True, periods[-1]
serve(lambda: len(heard) > silent + 5)
print("beats again")
"""


def test_a_bond_does_not_beat_while_ticks_fail(domain: int, installed: dict[str, str]) -> None:
    command = [sys.executable, "-c", FAILING]
    found = subprocess.run(command, env=environment(domain), capture_output=True, text=True)
    assert found.stdout == "beats again\n", found.stderr


def test_a_bond_without_its_messages_is_refused(start: Start, probe: Probe) -> None:
    start(bond=True, autostart=False)
    assert not probe.change("configure")
    probe.wait_for_status("node", "ERROR", "parameter bond")
    assert "package bond" in probe.text("node")
    assert probe.set(bond=False).successful
    assert probe.change("configure")
