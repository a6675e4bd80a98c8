"""Commands where a property's risk is not the chain's alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forewarn.models import load_model
from forewarn.models.calibration_map import METHODS
from forewarn.models.file import ESTIMATED

TEXT = """\
rate: 10
signals:
  gap: {timeout: never}
  closing: {timeout: never}
  near: {value: "1 / (1 + exp(gap - 3 * closing))"}
bins: {gap: [1, 2, 4], closing: [0, 1]}
terminal: {crash: gap < 0}
properties:
  no_crash: {formula: always(not crash), horizon: 1, estimator: auto, scores: [near]}
  stays_off: {formula: "always(gap<1 implies eventually[0:1](not gap<1))", horizon: 2}
"""


def drive(path: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    gap, closing, lines = rng.uniform(3, 6), 0.5, []
    for tick in range(120):
        if rng.random() < 0.08:
            closing = float(rng.normal(0.2, 1.2))
        gap = min(gap - closing / 10, 7.0)
        lines.append(json.dumps({"t": tick / 10, "gap": gap, "closing": closing}))
        if gap < 0:
            break
    path.write_text("\n".join(lines) + "\n")
    return path


def ticks(path: Path) -> list[dict[str, Any]]:
    """Return the verdicts of a file, without the lines about recordings."""
    lines = map(json.loads, path.read_text().splitlines())
    return [line for line in lines if "properties" in line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("estimators")
    (found / "monitor.yaml").write_text(TEXT)
    for part, seeds in (("bags", range(40)), ("more", range(40, 50)), ("kept", range(50, 60))):
        (found / part).mkdir()
        for seed in seeds:
            drive(found / part / f"{seed}.jsonl", seed)
    return found


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    from forewarn.cli import main

    path = folder / "model.json"
    config = folder / "monitor.yaml"
    assert main(["learn", str(folder / "bags"), "-c", str(config), "-o", str(path), "-q"]) == 0
    return path


def test_learn_says_what_the_risk_is_made_of(
    forewarn: Callable[..., Any], folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "model.json"
    result = forewarn("learn", folder / "bags", "-c", folder / "monitor.yaml", "-o", path)
    assert result.code == 0, result.err
    assert "no_crash: the risk is " in result.out
    assert "log loss" in result.out
    assert "stays_off: the risk is" not in result.out
    assert json.loads(path.read_text())["version"] == ESTIMATED
    (estimate,) = load_model(path).estimates
    assert estimate.recordings == 40
    losses = {loss.name: loss.log_loss for loss in estimate.losses}
    assert min(losses, key=lambda name: losses[name]) != "chain"


def test_inspect_validate_and_explain_say_it_too(
    forewarn: Callable[..., Any], folder: Path, model: Path
) -> None:
    config = folder / "monitor.yaml"
    shown = forewarn("inspect", model, "-c", config)
    assert "no_crash: the risk is " in shown.out
    document = json.loads(forewarn("inspect", model, "-c", config, "--json", "-q").out)
    assert document["estimates"]["no_crash"]["recordings"] == 40
    told = forewarn("explain", "-c", config)
    assert "estimated from recordings by auto, with the scores near" in told.out
    assert told.out.count("estimated from recordings") == 1
    checked = forewarn("validate", config, "-m", model)
    assert "0 errors" in checked.text
    assert "signals.near" not in checked.text  # the stack uses it
    assert "the risk is " in checked.text


def test_replay_tells_bounds_from_recordings(
    forewarn: Callable[..., Any], folder: Path, model: Path, tmp_path: Path
) -> None:
    lines = tmp_path / "verdicts.jsonl"
    result = forewarn(
        "replay", folder / "kept", "-c", folder / "monitor.yaml", "-m", model,
        "--verdicts", lines, "--exit-zero",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert "recordings drawn with replacement" in result.text
    seen = 0
    for verdict in ticks(lines):
        prop = verdict["properties"][0]
        if prop["lower"] is not None and 0 < prop["probability"] < 1:
            assert prop["lower"] <= prop["probability"] <= prop["upper"]
            seen += prop["lower"] < prop["upper"]
    assert seen > 100


def test_a_merged_model_chooses_anew_and_says_so(
    forewarn: Callable[..., Any], folder: Path, model: Path, tmp_path: Path
) -> None:
    config, more = folder / "monitor.yaml", tmp_path / "more.json"
    assert forewarn("learn", folder / "more", "-c", config, "-o", more, "-q").code == 0
    merged = tmp_path / "merged.json"
    result = forewarn("merge", model, more, "-o", merged)
    assert result.code == 0, result.err
    assert "is left out: a monitor chooses anew" in result.text
    assert load_model(merged).estimates == ()
    shown = forewarn("inspect", merged, "-c", config)
    assert "from 50 recordings" in shown.text
    added = tmp_path / "added.json"
    learned = forewarn("learn", folder / "more", "-c", config, "--add-to", model, "-o", added, "-q")
    assert learned.code == 0, learned.err
    assert load_model(added).estimates[0].recordings == 50


@pytest.mark.parametrize("method", METHODS)
def test_what_learn_calibrates_comes_after_the_scores(
    forewarn: Callable[..., Any], folder: Path, tmp_path: Path, method: str
) -> None:
    config = folder / "monitor.yaml"
    found = {}
    for name, extra in (("plain", ()), ("mended", ("--calibrate", folder / "kept"))):
        path = tmp_path / f"{name}.json"
        arguments = ["learn", folder / "bags", "-c", config, "-o", path, "-q", *extra]
        if extra:
            arguments += ["--calibration", method]
        assert forewarn(*arguments).code == 0
        lines = tmp_path / f"{name}.jsonl"
        forewarn(
            "replay", folder / "more", "-c", config, "-m", path, "--verdicts", lines, "--exit-zero"
        )
        found[name] = ticks(lines)
    maps = {one.name: one for one in load_model(tmp_path / "mended.json").recalibration}
    changed = 0
    for before, after in zip(found["plain"], found["mended"], strict=True):
        one, other = before["properties"][0], after["properties"][0]
        if one["probability"] is None or one["status"] == "VIOLATED":
            continue
        expected = maps["no_crash"].at(one["probability"])
        assert other["probability"] == pytest.approx(expected, abs=1e-12)
        changed += other["probability"] != one["probability"]
    assert changed > 100
