"""What takes long on behalf of a service holds up nothing else."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forewarn_msgs.srv import LoadModel
from live_ros import Probe, monitor_parameters
from rclpy.parameter import Parameter

from forewarn.models.counts import Provenance
from forewarn.models.file import load_model, save_model
from forewarn.monitoring.live_session import LiveSession
from forewarn_ros.lifecycle import make_executor
from monitor_node.model_subprocess import MEGABYTE
from monitor_node.node import MonitorNode

pytestmark = pytest.mark.ros
SPARE = 3
"""Ticks that a busy machine holds up when it likes."""


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
        answer = self.ask(path)
        self.wait(self.begun.is_set, "a call")
        return answer

    def ask(self, path: Path) -> Any:
        """Ask for a model; return what the answer will be in."""
        client = self.probe.node.create_client(LoadModel, "/monitor/load_model")
        self.wait(client.service_is_ready, "the service")
        return client.call_async(LoadModel.Request(path=str(path)))

    @staticmethod
    def memory() -> float:
        """Return the memory of this process in megabytes."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / MEGABYTE

    def ticks(self, count: int) -> None:
        """Wait for some more ticks."""
        known = len(self.probe.risks)
        self.wait(lambda: len(self.probe.risks) >= known + count, "ticks")


def reported(probe: Probe) -> int:
    """Return how many ticks were evaluated later than a tick, as the monitor says."""
    probe.wait(lambda: probe.level("timing"), "diagnostics")
    return int(probe.values("timing")["overruns"])


@pytest.fixture(params=["single", pytest.param("events", marks=pytest.mark.long)])
def held(
    request: pytest.FixtureRequest, probe: Probe, world: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Held]:
    """Return a monitor under each executor."""
    monitor = Held(probe, world, request.param)
    build = LiveSession.build

    def wait(watch: LiveSession, model: Any) -> Any:
        monitor.begun.set()
        monitor.released.wait()
        return build(watch, model)

    monkeypatch.setattr(LiveSession, "build", wait)
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


@pytest.fixture(scope="module")
def big(world: Path) -> Path:
    """Write the world's model with so many recordings of long names that it is at the limit."""
    size = 32 * MEGABYTE
    model = load_model(world / "model.json")
    length = 450
    number = (size - 20_000) // (length + 90)
    names = tuple(Provenance(f"{i:0{length}}") for i in range(number))
    path = world / f"big-{size}.json"
    save_model(replace(model, provenance=names), path)
    path.write_bytes(path.read_bytes().ljust(size))
    return path


@pytest.mark.long
def test_a_model_just_below_the_limit_leaves_no_memory_behind_and_lets_ticks_go_on(
    big: Path, held: Held
) -> None:
    held.ticks(5)
    known = held.memory()
    answer = held.load(big)
    held.ticks(5)
    held.released.set()
    held.wait(answer.done, "an answer")
    assert answer.result().success, answer.result().message
    assert held.memory() - known < 3 * 32


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("executor", ["single", "events"])
def test_ticks_are_no_later_while_a_model_just_below_the_limit_is_loaded(
    big: Path, world: Path, start: Callable[..., Any], probe: Probe, executor: str, tmp_path: Path
) -> None:
    start(executor=executor, record=str(tmp_path / "record.mcap"))
    probe.meet()
    probe.wait(lambda: len(probe.risks) > 20, "ticks")

    def overruns(path: Path, ticks: int) -> tuple[int, int]:
        """Load a model, and again until some ticks are over; return these, and how many lagged."""
        known, before = len(probe.risks), reported(probe)
        while len(probe.risks) < known + ticks:
            assert probe.call(LoadModel, "load_model", path=str(path)).success
        reports = probe.reports
        probe.wait(lambda: probe.reports > reports + 1, "diagnostics")
        return len(probe.risks) - known, reported(probe) - before

    ticks, late = overruns(big, 1)
    _, usual = overruns(world / "other.json", ticks)
    assert late <= 2 * usual + SPARE, f"{late} of {ticks} ticks were late, otherwise {usual}"


def test_a_model_above_the_limit_is_refused_and_not_read(held: Held, world: Path) -> None:
    path = world / "huge.json"
    with path.open("wb") as file:
        file.truncate(260 * MEGABYTE)
    answer = held.ask(path)
    held.wait(answer.done, "an answer")
    assert not answer.result().success
    assert "260000000 bytes (accepted: at most 32000000 bytes)" in answer.result().message
