"""`config/foresight.yaml`, the file to copy for learned scores and estimates, does what it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from following import drive

pytest.importorskip("sklearn", reason="the extra `learn` is not installed")

from forewarn.models.file import load_model
from forewarn.wings.scores import score_fit


def test_the_file_to_copy_learns_and_foresees(
    forewarn: Callable[..., Any], repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score_fit, "MOST_TREES", 25)
    monkeypatch.setattr(score_fit, "FOLDS", range(5, 17))
    config = tmp_path / "foresight.yaml"
    copyfile(repository / "config" / "foresight.yaml", config)
    (tmp_path / "traces").mkdir()
    for seed in range(16):
        drive(tmp_path / "traces" / f"run{seed:03}.jsonl", seed)
    file = tmp_path / "foresight.model.json"  # as the monitor file says
    learned = forewarn("learn", tmp_path / "traces", "-c", config, "-o", file, "-j1")
    assert learned.code == 0, learned.err
    assert "the risk combines" in learned.out
    model = load_model(file)
    (estimate,) = model.estimates
    losses = {loss.name: loss.log_loss for loss in estimate.losses}
    assert estimate.asked == "ensemble" and estimate.scored is not None
    assert losses["score ahead"] < losses["chain"]
    assert model.state_source_recordings == (), "no state depends on the score"
    kept, verdicts = drive(tmp_path / "kept.jsonl", 100), tmp_path / "verdicts.jsonl"
    replayed = forewarn("replay", kept, "-c", config, "--verdicts", verdicts, "--exit-zero")
    assert replayed.code == 0, replayed.err
    lines = [line for line in map(json.loads, verdicts.read_text().splitlines()) if "tick" in line]
    risks = [line["properties"][0] for line in lines]
    assert all(0 <= risk["expected"] <= 1 for risk in risks) and len(risks) == 300
    assert len({risk["probability"] for risk in risks}) > 100, "a score tells moments apart"
