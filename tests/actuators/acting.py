"""A monitor of the small world that acts on a stand-in planner, driven tick by tick."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_ros import Probe, Process, Stepper, calm, free_domain, monitor_parameters
from planners import Planner
from small_world import MONITOR

ESCALATING = MONITOR.replace(
    "    intervention: COMFORTABLE_STOP\n",
    "    intervention: LIMIT_SPEED\n    speed_limit: 1.25\n"
    "    escalation:\n"
    "    - {after: 0.5, action: COMFORTABLE_STOP}\n"
    "    - {after: 1, action: EMERGENCY_STOP}\n",
).replace(
    "    thresholds: {warn: 0.1, act: 0.3, release: 0.05}", "    thresholds: {warn: 1, act: 1}"
)
ESCALATING = ESCALATING.replace("{warn: 0.1, act: 0.3, release: 0.05}", "{warn: 1, act: 1}")
Live = tuple[Probe, Stepper, Planner]


def config(folder: Path, actuators: str, text: str = ESCALATING) -> str:
    """Write a monitor file that acts, and return its path."""
    file = folder / "monitor.yaml"
    file.write_text(f"{text}mode: act\nactuators: {actuators}\n")
    return str(file)


@pytest.fixture
def live(world: Path, tmp_path: Path, installed: dict[str, str]) -> Iterator[Callable[..., Live]]:
    """Return a function that starts a planner and a monitor that acts on it."""
    running: list[Any] = []

    def begin(actuators: str, text: str = ESCALATING, **settings: Any) -> Live:
        domain = free_domain()
        probe = Probe(domain.__enter__())
        kind = "nav2" if "nav2" in actuators else "autoware"
        planner = Planner(kind, probe, installed, **settings)
        if settings.get("latched"):
            planner.wait("ready")  # what it keeps was told before the monitor comes
        parameters = monitor_parameters(
            world, config=config(tmp_path, actuators, text), mode="act", use_sim_time=True
        )
        process = Process("main", probe.domain, parameters)
        running.extend((domain, probe, planner, process))
        planner.wait("ready")
        stepper = Stepper(probe)
        stepper.begin()
        return probe, stepper, planner

    yield begin
    if running:
        domain, probe, planner, process = running
        planner.close()
        process.__exit__()
        probe.close()
        domain.__exit__(None, None, None)


def alert(stepper: Stepper, action: int) -> None:
    """Drive towards something until `action` is asked for."""
    probe = stepper.probe
    for _ in range(40):
        stepper.step(speed=3.0, distance=5.0)
        if probe.interventions and probe.interventions[-1].action == action:
            return
    raise AssertionError(f"never asked for: {probe.interventions}")


__all__ = ["ESCALATING", "Live", "alert", "calm", "config", "live"]
