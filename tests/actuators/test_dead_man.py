"""What stops the robot when the monitor dies is there, or the monitor says that it is not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from acting import config
from live_ros import Probe, Process, monitor_parameters
from small_world import MONITOR

from forewarn.config.actuators import ActuatorsSpec
from monitor_node.actuators.loading import unwatched

pytestmark = pytest.mark.ros
GATE = {"input": "/raw", "output": "/cmd", "max_speed": 1, "max_turn": 1}
LOCK = {"lock_topic": "/forewarn_lock"}


def said(*, bond: bool = False, **named: Any) -> dict[str, str]:
    return unwatched(ActuatorsSpec.model_validate(named), bond=bond)


def test_an_actuator_without_a_dead_mans_switch_says_so() -> None:
    for name in ("nav2", "autoware"):
        assert list(said(**{name: {}})) == [name]
        assert said(**{name: {}})[name].startswith("no dead man's switch: when the monitor dies")
    assert len(said(nav2={}, autoware={})) == 2
    assert len(said(nav2={}, autoware={}, bond=True)) == 1


@pytest.mark.parametrize(
    "named",
    [
        {"nav2": LOCK},
        {"nav2": {}, "bond": True},
        {"autoware": {"diagnostic_graph": True}},
        {"nav2": {}, "autoware": {}, "twist": GATE},
        {"twist": GATE},
        {},
    ],
    ids=["lock", "bond", "diagnostic graph", "gate", "gate alone", "none"],
)
def test_one_with_a_dead_mans_switch_does_not(named: dict[str, Any]) -> None:
    assert not said(**named)


def test_the_monitor_says_it_at_start_and_on_diagnostics(
    world: Path, tmp_path: Path, probe: Probe, installed: dict[str, str]
) -> None:
    file = config(tmp_path, "{nav2: {}}", MONITOR)
    parameters = monitor_parameters(world, config=file, mode="act")
    with Process("main", probe.domain, parameters) as process:
        probe.wait_for_status("dead man's switch of nav2", "WARN", "when the monitor dies")
        assert "actuator nav2: no dead man's switch" in process.output


def test_every_fault_in_the_docs_names_tests_that_exist(repository: Path) -> None:
    text = (repository / "docs" / "howto" / "interventions.md").read_text(encoding="utf-8")
    rows = text.partition("| Fault |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(rows) > 10
    for row in rows:
        named = re.findall(r"`(test_\w+\.py)(?:::(test_\w+))?`", row)
        assert named, row
        for file, function in named:
            (path,) = (repository / "tests").glob(f"**/{file}")
            source = path.read_text(encoding="utf-8")
            assert f"def {function}(" in source if function else "TestCase" in source, row
