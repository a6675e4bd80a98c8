"""What happens when something fails that should not: one line, a diagnostic, and a way back."""

from __future__ import annotations

import resource
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from extent import repetitions
from forewarn_msgs.msg import Signals
from live_ros import Probe, Process, Stepper, monitor_parameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from small_world import GATED, MONITOR

from forewarn.assessment.record_replay import replay_record
from forewarn.monitoring.carried import TablePacker
from forewarn.monitoring.evaluate import EvaluatedTick, TickResult
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.session_events import Mute
from forewarn.recordings.registry import open_recording
from forewarn_ros.lifecycle import make_executor
from monitor_node import node as node_module
from monitor_node.node import MonitorNode

pytestmark = pytest.mark.ros
Make = Callable[..., MonitorNode]
STATE = "/monitor/debug/state"


@pytest.fixture
def make(probe: Probe, world: Path) -> Iterator[Make]:
    """Return a function that makes a node in this process, served along with the probe."""
    made: list[MonitorNode] = []

    def monitor(**changes: Any) -> MonitorNode:
        given = monitor_parameters(world, **changes)
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        made.append(MonitorNode(context=probe.context, parameter_overrides=overrides))
        probe.executor.add_node(made[-1])
        return made[-1]

    yield monitor
    for item in made:
        item.trigger_shutdown()
        probe.executor.remove_node(item)
        item.destroy_node()


def test_an_unforeseen_error_ends_unconfigured_and_is_told(
    make: Make, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError("the disk is gone")

    node = make()
    with monkeypatch.context() as patch:
        patch.setattr(node_module, "load_spec", broken)
        assert node.trigger_configure() == TransitionCallbackReturn.ERROR
    assert node.problem == "on_configure: OSError: the disk is gone"
    probe.wait_for_status("node", "ERROR", "the disk is gone")
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    probe.wait_for_status("node", "WARN", "inactive")


def test_a_failed_activation_leaves_nothing_behind(
    make: Make, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no graph")

    node = make()
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    with monkeypatch.context() as patch:
        patch.setattr(node_module.Runtime, "announce", broken)
        assert node.trigger_activate() == TransitionCallbackReturn.ERROR
    assert node.runtime is None
    assert not node.get_subscriptions_info_by_topic("/world/odometry")
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
    probe.wait(lambda: probe.risks, "a tick")


def _gating(make: Make, probe: Probe, tmp_path: Path) -> MonitorNode:
    """Return a node that ticks, and acts by the gate."""
    config = tmp_path / "monitor.yaml"
    text = MONITOR.replace("startup_grace: 1.0", "startup_grace: 1000")  # it is given no data
    config.write_text(f"{text}mode: act\n{GATED}\n")
    node = make(config=str(config), mode="act")
    node.trigger_configure()
    node.trigger_activate()
    probe.wait(lambda: probe.risks, "a tick")
    return node


def test_ticks_that_come_no_more_are_an_error_until_they_do(
    make: Make, probe: Probe, tmp_path: Path
) -> None:
    node = _gating(make, probe, tmp_path)
    assert node._ticker is not None
    node._ticker._timer.cancel()
    for name in ("timing", "node", "intervention"):
        probe.wait_for_status(name, "ERROR", "no tick was looked for")
    assert node._failure()
    node._ticker._timer.reset()
    for name in ("timing", "node", "intervention"):
        probe.wait_for_status(name, "OK")


def test_a_tick_that_fails_is_an_error_until_one_succeeds(
    make: Make, probe: Probe, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _gating(make, probe, tmp_path)

    def broken(*_: object) -> None:
        raise ZeroDivisionError("by accident")

    with monkeypatch.context() as patch:
        patch.setattr(LiveSession, "evaluate", broken)
        probe.wait_for_status("node", "ERROR", "a tick failed: ZeroDivisionError: by accident")
        # What a diagnostic graph watches: silence about a stop is no sign of life.
        probe.wait_for_status("intervention", "ERROR", "a tick failed")
        known = len(probe.risks)
    probe.wait(lambda: len(probe.risks) > known + 2, "ticks again")
    probe.wait_for_status("node", "OK")
    ticks = [message.risks[0].tick for message in probe.risks]
    assert ticks == sorted(set(ticks)), "none is evaluated twice"


def test_a_command_after_a_tick_was_prepared_is_not_lost(make: Make, probe: Probe) -> None:
    node = make()
    node.trigger_configure()
    node.trigger_activate()
    probe.wait(lambda: probe.risks, "a tick")
    runtime = node.runtime
    assert runtime is not None
    due_ns = runtime.pacer.due_ns(runtime.pacer.next)
    assert due_ns is not None
    runtime.prepare(due_ns - 1, time.time_ns())
    runtime.watch.mute(["brake"], 60.0)
    runtime.note(Mute(("brake",), 60.0))
    runtime.pump(due_ns, time.time_ns())
    assert set(runtime.watch.muted) == {"brake"}


def test_a_tick_that_cannot_be_published_is_read_once(
    make: Make, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the middleware refuses it")

    read: list[int] = []
    commit = LiveSession.commit

    def counted(watch: LiveSession, evaluated: EvaluatedTick) -> TickResult:
        read.append(evaluated.result.verdict.tick)
        return commit(watch, evaluated)

    node = make()
    node.trigger_configure()
    node.trigger_activate()
    probe.wait(lambda: probe.risks, "a tick")
    assert node.runtime is not None
    monkeypatch.setattr(LiveSession, "commit", counted)
    with monkeypatch.context() as patch:
        patch.setattr(node.runtime.outputs.risk, "publish", broken)
        probe.wait_for_status("node", "ERROR", "the middleware refuses it")
        known = len(probe.risks)
    probe.wait(lambda: len(probe.risks) > known + 2, "ticks again")
    assert read == list(range(read[0], read[0] + len(read)))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"properties.brake.act": 0.01}, "release 0.15 must be below act 0.01"),
        ({"properties.brake.act": 7.0}, "properties.brake.act"),
        (
            {"qos_overrides./world/odometry.subscription.reliability": "sometimes"},
            "'sometimes' (accepted: auto, reliable, best_effort)",
        ),
    ],
)
def test_parameters_that_are_given_at_the_start_are_checked_too(
    make: Make, given: dict[str, object], told: str
) -> None:
    node = make(**given)
    assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
    assert told in node.problem
    assert not node.has_parameter("properties.brake.act")


def test_an_unknown_executor_is_told_and_replaced(make: Make) -> None:
    executor = make_executor("fast", make())
    assert isinstance(executor, SingleThreadedExecutor)
    executor.shutdown()


def test_a_full_disk_ends_the_record_and_not_the_monitor(
    start: Callable[..., Process], probe: Probe, tmp_path: Path
) -> None:
    """The kernel refuses the process every byte beyond a size, as a full disk refuses it."""
    record = tmp_path / "record.mcap"
    process = start(record=str(record))
    probe.wait(lambda: len(probe.risks) > 2, "ticks")
    size = record.stat().st_size
    resource.prlimit(process.process.pid, resource.RLIMIT_FSIZE, (size, size))
    probe.wait_for_status("record", "ERROR", f"{record}: cannot be written (File too large)")
    known = len(probe.risks)
    probe.wait(lambda: len(probe.risks) > known + 2, "ticks without a record")
    ticks = [message.risks[0].tick for message in probe.risks]
    assert ticks == sorted(set(ticks)), "none is evaluated twice"
    assert record.stat().st_size <= size
    assert process.output.count("the record ends here") == 1
    written = list(replay_record(record))
    assert not [difference for tick in written for difference in tick.differences()]


def test_no_tick_waits_for_the_tables_that_a_record_holds(
    make: Make, probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To pack large ones takes longer than a tick: it is done before, or in another thread."""
    pack, packed = TablePacker.prepare, []

    def watched(self: TablePacker, tables: Any) -> Any:
        packed.append([frame.name for frame in traceback.extract_stack()])
        return pack(self, tables)

    monkeypatch.setattr(TablePacker, "prepare", watched)
    record = tmp_path / "record.mcap"
    node = make(record=str(record), use_sim_time=True)
    node.trigger_configure()
    node.trigger_activate()
    stepper = Stepper(probe)
    for beginning in (17_000, 18_000):  # the clock jumps
        stepper.begin(beginning)
        stepper.steps(3, speed=2.0, distance=20.0)
    node.trigger_deactivate()
    assert packed
    assert not [names for names in packed if "pump" in names]
    with open_recording(record) as recording:
        stored = [name for name in recording.attachments() if name.startswith("tables-")]
    assert len(stored) == len(packed)
    ticks = list(replay_record(record))
    assert len(ticks) == 6
    assert not [difference for tick in ticks for difference in tick.differences()]


def test_a_listener_of_another_quality_is_told_and_ends_no_monitor_that_is_taken_down(
    probe: Probe, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for the executor while the topics are destroyed must not end the process."""
    executor = "events"
    given = monitor_parameters(world, executor=executor)
    overrides = [Parameter(name, value=value) for name, value in given.items()]
    node = MonitorNode(context=probe.context, parameter_overrides=overrides)
    served = make_executor(executor, node)
    warned: list[str] = []
    monkeypatch.setattr(node, "_warn", warned.append)
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    for _ in range(repetitions(20)):
        warned.clear()
        assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        served.spin_once(timeout_sec=0)  # it knows the topics from here on
        heard = probe.node.create_subscription(Signals, STATE, lambda _: None, latched)

        def told() -> bool:
            node._statuses()
            return any(f"no messages on {STATE} between /probe" in line for line in warned)

        probe.wait(told, "a warning")
        # The probe listens to much else as everybody does.
        assert not [line for line in warned if "no messages on" in line and STATE not in line]
        assert node.trigger_deactivate() == TransitionCallbackReturn.SUCCESS
        assert node.trigger_cleanup() == TransitionCallbackReturn.SUCCESS
        probe.node.destroy_subscription(heard)
        for _ in range(10):
            served.spin_once(timeout_sec=0)
    served.shutdown()
    node.destroy_node()
