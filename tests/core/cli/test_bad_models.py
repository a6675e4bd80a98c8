"""Models that do not fit, are damaged, or know too little: said by name, never used in silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MODEL_CHANGES = [
    ("rate: 10", "rate: 20", ["rate", "10 Hz", "20 Hz"]),
    ("fast: speed > 0.3", "fast: speed > 0.3\n  quick: speed > 0.8", ["predicates", "quick"]),
    ("fast: speed > 0.3", "fast: speed > 0.4", ["digest", "learn again"]),
    ("contact: bumper", "hit: bumper", ["terminal", "hit"]),
    ("timeout: 0.5}", "timeout: 0.7}", ["digest"]),
]


@pytest.mark.parametrize(("old", "new", "named"), MODEL_CHANGES)
def test_a_model_learned_with_another_file(
    forewarn: Callable[..., Any],
    corridor_run: Any,
    corridor_model: Path,
    tmp_path: Path,
    old: str,
    new: str,
    named: list[str],
) -> None:
    text = corridor_run.config.read_text().replace(old, new, 1)
    if "hit" in new:
        text = text.replace("always(not contact)", "always(not hit)")
    path = tmp_path / "other.yaml"
    path.write_text(text)
    for arguments in (
        ["replay", corridor_run.held_out, "-c", path, "-m", corridor_model],
        ["inspect", corridor_model, "-c", path],
        ["validate", path, "--model", corridor_model],
    ):
        result = forewarn(*arguments)
        assert result.code == 2
        assert "corridor.model.json" in result.text
        for part in named:
            assert part in result.text


def test_a_threshold_in_a_formula_is_part_of_the_states(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    trace, path, model = (tmp_path / name for name in ("t.jsonl", "monitor.yaml", "m.json"))
    trace.write_text("".join(f'{{"t": {i / 10}, "d": {i * 7 % 30 / 10}}}\n' for i in range(200)))
    text = "rate: 10\nsignals: {d: {timeout: 1}}\nproperties: {far: {formula: always(d > 0.6)}}\n"
    path.write_text(text)
    assert forewarn("learn", trace, "-c", path, "-o", model).code == 0
    path.write_text(text.replace("0.6", "0.7"))
    result = forewarn("replay", trace, "-c", path, "-m", model)
    assert result.code == 2
    says = "the comparison d > 0.7 in the formula of far is part of the states"
    assert says in result.err and "d > 0.6, which this model knows" in result.err
    # What it proposes works: formulas choose among the thresholds, and the model stays.
    assert "under `predicates:`" in result.err
    both = "predicates: {near: d > 0.6, nearer: d > 0.7}\n"
    path.write_text(text + both)
    assert forewarn("learn", trace, "-c", path, "-o", model).code == 0
    path.write_text(text.replace("0.6", "0.7") + both)
    assert forewarn("replay", trace, "-c", path, "-m", model, "--exit-zero").code == 0


def test_thresholds_may_change_under_a_model(
    forewarn: Callable[..., Any],
    corridor_run: Any,
    corridor_model: Path,
    tmp_path: Path,
    edited: Callable[[str, str], Path],
) -> None:
    path = edited("act: 0.4", "act: 0.9")
    assert forewarn("validate", path, "--model", corridor_model).code == 0


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.99])
def test_a_model_file_cut_short(
    forewarn: Callable[..., Any],
    corridor_run: Any,
    corridor_model: Path,
    tmp_path: Path,
    keep: float,
) -> None:
    text = corridor_model.read_text()
    path = tmp_path / "cut.json"
    path.write_text(text[: int(len(text) * keep)])
    for arguments in (
        ["inspect", path],
        ["merge", corridor_model, path, "-o", tmp_path / "out.json"],
        ["replay", corridor_run.held_out, "-c", corridor_run.config, "-m", path],
    ):
        result = forewarn(*arguments)
        assert result.code == 2
        assert "cut.json" in result.err
    assert not (tmp_path / "out.json").exists()


def test_a_count_changed_by_hand_is_noticed(
    forewarn: Callable[..., Any], corridor_model: Path, tmp_path: Path
) -> None:
    document = json.loads(corridor_model.read_text())
    document["transitions"] = json.loads(json.dumps(document["transitions"]).replace("1", "2", 1))
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(document))
    result = forewarn("inspect", path)
    assert result.code == 2
    assert "forged.json" in result.err


def test_a_state_never_seen_raises_an_alert_that_says_so(
    forewarn: Callable[..., Any], corridor_run: Any, tmp_path: Path, drive: Any, record: Any
) -> None:
    calm = record(tmp_path / "calm.mcap", drive(3, 3.0))
    model = tmp_path / "calm.json"
    assert forewarn("learn", calm, "-c", corridor_run.config, "-o", model).code == 0
    result = forewarn(
        "replay", corridor_run.held_out, "-c", corridor_run.config, "-m", model, "--json"
    )
    assert result.code == 1
    document = json.loads(result.out)
    alerts = [e for e in document["recordings"][0]["events"] if e["event"] == "alert"]
    assert any(alert["out_of_model"] for alert in alerts)
    assert "unknown to the model" in result.err
