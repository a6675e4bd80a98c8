"""What happens when something fails that should not: one line, a diagnostic, and a way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_ros import Probe, monitor_parameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter

from forewarn.monitoring.live_session import Watch
from monitor_node import node as node_module
from monitor_node.main import make_executor
from monitor_node.node import MonitorNode

pytestmark = pytest.mark.ros
Make = Callable[..., MonitorNode]


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


def test_a_tick_that_fails_is_an_error_until_one_succeeds(
    make: Make, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = make()
    node.trigger_configure()
    node.trigger_activate()
    probe.wait(lambda: probe.risks, "a tick")

    def broken(*_: object) -> None:
        raise ZeroDivisionError("by accident")

    with monkeypatch.context() as patch:
        patch.setattr(Watch, "evaluate", broken)
        probe.wait_for_status("node", "ERROR", "a tick failed: ZeroDivisionError: by accident")
        known = len(probe.risks)
    probe.wait(lambda: len(probe.risks) > known + 2, "ticks again")
    probe.wait_for_status("node", "OK")
    ticks = [message.risks[0].tick for message in probe.risks]
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks))), "none is left out"


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
