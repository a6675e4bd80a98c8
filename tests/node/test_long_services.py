"""What takes long on behalf of a service holds up nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forewarn_msgs.srv import LoadModel
from live_ros import Probe, monitor_parameters
from rclpy.parameter import Parameter

from forewarn.monitoring.live_session import Watch
from monitor_node.main import make_executor
from monitor_node.node import MonitorNode

pytestmark = pytest.mark.ros


class Held:
    """A monitor in this process whose models are built only when the test lets them be."""

    def __init__(self, probe: Probe, world: Path, executor: str) -> None:
        given = monitor_parameters(world, executor=executor)
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        self.node = MonitorNode(context=probe.context, parameter_overrides=overrides)
        self.executor = make_executor(executor, self.node)
        self.probe = probe
        self.begun, self.released = threading.Event(), threading.Event()
        self.node.trigger_configure()
        self.node.trigger_activate()

    def wait(self, condition: Callable[[], Any], what: str) -> None:
        """Serve the monitor and the probe until a condition holds."""

        def served() -> Any:
            self.executor.spin_once(timeout_sec=0.01)
            return condition()

        self.probe.wait(served, what)

    def load(self, path: Path) -> Any:
        """Ask for a model and wait until it is being built; return what the answer will be in."""
        client = self.probe.node.create_client(LoadModel, "/monitor/load_model")
        self.wait(client.service_is_ready, "the service")
        answer = client.call_async(LoadModel.Request(path=str(path)))
        self.wait(self.begun.is_set, "a call")
        return answer

    def ticks(self, count: int) -> None:
        """Wait for some more ticks."""
        known = len(self.probe.risks)
        self.wait(lambda: len(self.probe.risks) >= known + count, "ticks")


@pytest.fixture(params=["single", "events"])
def held(
    request: pytest.FixtureRequest, probe: Probe, world: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Held]:
    """Return a monitor under each executor."""
    monitor = Held(probe, world, request.param)
    build = Watch.build

    def wait(watch: Watch, model: Any) -> Any:
        monitor.begun.set()
        monitor.released.wait()
        return build(watch, model)

    monkeypatch.setattr(Watch, "build", wait)
    yield monitor
    monitor.released.set()
    monitor.node.trigger_shutdown()
    monitor.executor.shutdown()
    monitor.node.destroy_node()


def test_ticks_go_on_while_a_model_is_built(held: Held, world: Path) -> None:
    answer = held.load(world / "other.json")
    held.ticks(5)
    assert not answer.done()
    held.released.set()
    held.wait(answer.done, "an answer")
    assert answer.result().success


def test_a_node_that_is_cleaned_up_meanwhile_lives_on(held: Held, world: Path) -> None:
    held.load(world / "other.json")
    held.node.trigger_deactivate()
    held.node.trigger_cleanup()
    held.released.set()
    held.wait(
        lambda: not any(thread.name == "service" for thread in threading.enumerate()),
        "the end of the work",
    )
    held.node.trigger_configure()
    held.node.trigger_activate()
    held.ticks(3)
