"""A node that goes on learning: its tables change while it runs, and it can be replayed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from live_ros import Probe, Process, stepped
from small_world import MONITOR

from forewarn.cli import main
from forewarn.models.file import load_model

pytestmark = pytest.mark.ros


def test_new_counts_reach_the_tables_while_ticks_go_on(world: Path, tmp_path: Path) -> None:
    config = world / "online.yaml"
    config.write_text(MONITOR + "learning: {online: true, refresh: 0.5}\n")
    learned, record = tmp_path / "learned.model.json", tmp_path / "record.mcap"
    before = load_model(world / "model.json")
    parameters = {"config": str(config), "learn_to": str(learned), "record": str(record)}
    steps = 0
    digests: dict[str, float] = {}
    with stepped(world, **parameters) as (_, _, stepper):
        stepper.begin()
        while len(digests) < 3 and steps < 600:
            risks = stepper.step(speed=2.0, distance=20.0)  # every tick is answered
            digests.setdefault(risks.model_digest, risks.risks[0].probability)
            steps += 1
    assert len(digests) == 3
    assert next(iter(digests)) == before.fingerprint
    assert len(set(digests.values())) == 3  # what is seen over and over becomes ever more certain
    after = load_model(learned)
    gained = int(after.counts.sum() - before.counts.sum())
    assert steps - 5 <= gained <= steps
    assert main(["verify", str(record)]) == 0


def test_what_is_no_model_is_not_written_over(
    start: Callable[..., Process], probe: Probe, tmp_path: Path
) -> None:
    path = tmp_path / "precious.txt"
    path.write_text("somebody else's")
    start(learn_to=str(path))
    probe.wait_for_status("node", "ERROR", "is no model file, and is not written over")
    assert probe.state == "inactive"
    assert path.read_text() == "somebody else's"
    assert probe.set(learn_to=str(tmp_path / "free.json")).successful
    assert probe.change("activate")


def test_what_came_to_that_place_while_it_learned_is_kept(
    start: Callable[..., Process], world: Path, probe: Probe, tmp_path: Path
) -> None:
    config, path = world / "online.yaml", tmp_path / "learned.json"
    config.write_text(MONITOR + "learning: {online: true, refresh: 0.5}\n")
    process = start(config=str(config), learn_to=str(path))
    probe.wait_for_start()
    path.write_text("somebody else's")
    assert probe.change("deactivate")
    assert "the learned counts cannot be saved" in process.output
    assert path.read_text() == "somebody else's"
