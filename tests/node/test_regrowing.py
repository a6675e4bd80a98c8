"""A tree that is grown anew while ticks go on, and what has to be done to use it."""

from __future__ import annotations

from pathlib import Path

import pytest
from forewarn_msgs.srv import LoadModel
from live_ros import stepped
from small_world import MONITOR

from forewarn.config.yaml_text import load_document
from forewarn.models.file import load_model

pytestmark = pytest.mark.ros

LEARNING = """\
action: "'brake' if distance < 10 else 'go'"
states: {kind: tree, variables: [speed, distance]}
learning: {regrow: 10.0, remember: 400}
"""


def test_a_tree_grows_beside_the_monitor_and_is_taken_into_use_whole(
    world: Path, tmp_path: Path
) -> None:
    config = tmp_path / "monitor.yaml"
    config.write_text(MONITOR + LEARNING)
    grown, model = tmp_path / "monitor.regrown.yaml", tmp_path / "monitor.regrown.model.json"
    with stepped(world, config=str(config), model="") as (process, probe, stepper):
        stepper.begin()
        for number in range(104):
            stepper.step(speed=2.0, distance=5.0 if number % 2 else 20.0)
        probe.wait(model.exists, "a model of the tree that was grown", 90.0)
        stepper.steps(2, speed=2.0, distance=5.0)
        assert "the tree was grown again from" in process.output
        assert f"config:={grown} model:={model}" in process.output
        refused = probe.call(LoadModel, "load_model", path=str(model))
        assert not refused.success and "abstraction" in refused.message
        assert load_document(grown).data["states"]["tree"]["if"].startswith("distance > ")
        assert probe.change("deactivate") and probe.change("cleanup")
        assert probe.set(config=str(grown), model=str(model)).successful
        assert probe.change("configure") and probe.change("activate")
        again = probe.call(LoadModel, "load_model", path=str(model))
        assert again.success and again.model_digest == load_model(model).fingerprint
    assert len(load_model(model).state_source_provenance) == len(
        list((tmp_path / "monitor.regrown").iterdir())
    )


def test_what_cannot_be_grown_is_said_before_the_start(world: Path, tmp_path: Path) -> None:
    config = tmp_path / "monitor.yaml"
    config.write_text(MONITOR + "learning: {regrow: 6.0}\n")
    with stepped(world, config=str(config), model="") as (_, probe, _):
        probe.wait_for_status("node", "ERROR", "learning.regrow")
        assert probe.state == "unconfigured"
