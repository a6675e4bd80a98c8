"""Calibration as a step of learning, on the corridor: fitted, stored, applied, refused."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forewarn.errors import ModelError
from forewarn.logic.specification import compile_spec
from forewarn.models.calibration_map import Recalibration
from forewarn.models.counts import CountModel
from forewarn.models.file import _checksum, load_model, merge_models, save_model
from forewarn.monitoring.online_learning import OnlineLearner


@pytest.fixture
def config(corridor_run: Any, tmp_path: Path) -> Path:
    path = tmp_path / "monitor.yaml"
    shutil.copy(corridor_run.config, path)
    return path


@pytest.fixture(scope="module")
def kept_back(drive: Any, record: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept_back")
    for seed in range(30, 33):
        record(folder / f"run{seed}.mcap", drive(seed, 45.0))
    return folder


@pytest.fixture(scope="module")
def learned(corridor_run: Any, kept_back: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model that was learned from one recording and calibrated on three others."""
    from forewarn.cli import main

    path = tmp_path_factory.mktemp("calibrated") / "model.json"
    arguments = ["learn", corridor_run.recordings[0], "-c", corridor_run.config, "-o", path, "-q"]
    assert main([str(item) for item in (*arguments, "--calibrate", kept_back)]) == 0
    return path


def test_learn_tells_brier_and_error_before_and_after(
    forewarn: Callable[..., Any], corridor_run: Any, config: Path, kept_back: Path, tmp_path: Path
) -> None:
    path = tmp_path / "model.json"
    arguments = ("learn", corridor_run.recordings[0], "-c", config, "-o", path)
    result = forewarn(*arguments, "--calibrate", kept_back, "--calibration", "platt")
    assert result.code == 0
    assert "Brier after" in result.out
    assert "every run judged by a map fitted to the other held-out runs" in result.out
    assert {calibration_map.method for calibration_map in load_model(path).recalibration} == {
        "platt"
    }
    only = forewarn(*arguments, "--calibrate", kept_back, "--calibration", "none", "--json", "-q")
    figures = json.loads(only.out)["calibration"]["slow_down"]
    assert figures["method"] is None
    assert figures["after"] is None
    assert figures["before"]["ticks"] > 300
    assert load_model(path).recalibration == ()


def test_every_risk_is_the_map_of_the_chains(
    forewarn: Callable[..., Any],
    corridor_run: Any,
    learned: Path,
    tmp_path: Path,
) -> None:
    model = load_model(learned)
    plain = tmp_path / "plain.json"
    save_model(replace(model, recalibration=()), plain)
    found = {}
    for name, path in (("plain", plain), ("mended", learned)):
        lines = tmp_path / f"{name}.jsonl"
        result = forewarn(
            "replay", corridor_run.held_out, "-c", corridor_run.config, "-m", path,
            "--verdicts", lines, "--exit-zero",
        )  # fmt: skip
        assert ("chain's Brier" in result.out) == (name == "mended")
        found[name] = [json.loads(line) for line in lines.read_text().splitlines()]
    maps = {calibration_map.name: calibration_map for calibration_map in model.recalibration}
    assert set(maps) == {"slow_down", "no_contact"}
    changed = 0
    for raw, mended in zip(found["plain"], found["mended"], strict=True):
        for before, after in zip(raw["properties"], mended["properties"], strict=True):
            if before["status"] == "VIOLATED":
                continue
            for key in ("probability", "lower", "upper"):
                value = math.nan if before[key] is None else before[key]
                (expected,) = maps[before["name"]](np.array([value]))
                assert after[key] == (None if math.isnan(expected) else expected)
                changed += after[key] != before[key]
    assert changed > 500


def test_replay_tells_the_chains_own_figures_as_well(
    forewarn: Callable[..., Any], corridor_run: Any, learned: Path, tmp_path: Path
) -> None:
    def figures(path: Path) -> dict[str, Any]:
        arguments = ("replay", corridor_run.held_out, "-c", corridor_run.config, "-m", path)
        return dict(json.loads(forewarn(*arguments, "--json", "-q").out)["properties"])

    plain = tmp_path / "plain.json"
    save_model(replace(load_model(learned), recalibration=()), plain)
    mended, chain = figures(learned), figures(plain)
    for name in mended:
        assert chain[name]["calibration_of_the_chain"] is None
        assert mended[name]["calibration_of_the_chain"] == chain[name]["calibration"]
        assert mended[name]["calibration"] != chain[name]["calibration"]


def test_the_report_shows_calibrated_risks(
    forewarn: Callable[..., Any], corridor_run: Any, learned: Path, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    arguments = ("report", corridor_run.held_out, "-c", corridor_run.config, "-m", learned)
    result = forewarn(*arguments, "-o", page)
    assert result.code == 0
    assert page.stat().st_size > 100_000


def test_a_stale_map_is_refused(
    forewarn: Callable[..., Any], corridor_run: Any, config: Path, learned: Path, tmp_path: Path
) -> None:
    text = config.read_text()
    config.write_text(text.replace("horizon: 2.0", "horizon: 3.0"))
    arguments = ("replay", corridor_run.held_out, "-c", config, "--exit-zero")
    result = forewarn(*arguments, "-m", learned)
    assert result.code == 2
    assert f"{learned}: properties.slow_down: the model calibrates the risk" in result.err
    assert "within 2 s; the monitor file says" in result.err
    assert "`forewarn merge MODEL -o FILE`, which leaves calibrations out" in result.err
    merged = tmp_path / "merged.json"
    note = forewarn("merge", learned, "-o", merged)
    assert f"the calibration in {learned} is left out" in note.err
    assert forewarn(*arguments, "-m", merged).code == 0
    config.write_text(text.replace("warn: 0.2", "warn: 0.1"))
    assert forewarn(*arguments, "-m", learned).code == 0
    config.write_text(text.replace("slow_down", "renamed"))
    renamed = forewarn(*arguments, "-m", learned)
    assert renamed.code == 0
    assert "slow_down: the model calibrates a property that the monitor file does not" in (
        renamed.err
    )


@pytest.fixture
def told_without_a_map(
    forewarn: Callable[..., Any], corridor_run: Any, tmp_path: Path
) -> Callable[..., str]:
    """Return a function that learns a model which has no map in the end, and what it says."""

    def learn(*arguments: object) -> str:
        path = tmp_path / "uncalibrated.json"
        bag, config = corridor_run.recordings[1], corridor_run.config
        result = forewarn("learn", bag, "-c", config, "-o", path, *arguments)
        assert result.code == 0
        assert load_model(path).recalibration == ()
        return str(result.err)

    return learn


def test_learning_on_leaves_the_calibration_of_others_out(
    told_without_a_map: Callable[..., str], learned: Path
) -> None:
    said = told_without_a_map("--add-to", learned)
    assert f"the calibration in {learned} is left out" in said


def test_without_violations_nothing_is_calibrated_and_it_is_said(
    told_without_a_map: Callable[..., str], drive: Any, record: Any, tmp_path: Path
) -> None:
    quiet = record(tmp_path / "quiet.mcap", drive(30, 4.0))
    said = told_without_a_map("--calibrate", quiet)
    assert "no_contact is not calibrated: a violation follows no tick" in said


def test_recordings_serve_one_purpose(
    forewarn: Callable[..., Any], corridor_run: Any, learned: Path, kept_back: Path, tmp_path: Path
) -> None:
    bag = corridor_run.recordings[0]
    path = tmp_path / "model.json"
    both = forewarn("learn", bag, "-c", corridor_run.config, "-o", path, "--calibrate", bag)
    assert both.code == 2
    assert "this model was learned from this recording: calibrating on it" in both.err
    assert not path.exists()
    tuned = forewarn(
        "tune", kept_back, "-c", corridor_run.config, "-m", learned, "--false-alarms-per-hour", 1
    )
    assert tuned.code == 2
    assert "was calibrated on this recording: thresholds chosen on it" in tuned.err
    bag = sorted(kept_back.iterdir())[0]
    shown = forewarn("replay", bag, "-c", corridor_run.config, "-m", learned, "--exit-zero")
    assert f"{bag.name}: the model was calibrated on this very recording" in shown.err
    held_out = corridor_run.held_out
    other = forewarn("replay", held_out, "-c", corridor_run.config, "-m", learned, "--exit-zero")
    assert "this very recording" not in other.err


def test_inspect_names_what_is_calibrated(forewarn: Callable[..., Any], learned: Path) -> None:
    result = forewarn("inspect", learned)
    assert "the risk of slow_down is calibrated: isotonic, " in result.out
    assert "ticks of 3 held-out recordings" in result.out


def test_the_key_of_the_monitor_file_asks_for_held_out_recordings(
    forewarn: Callable[..., Any], corridor_run: Any, config: Path, kept_back: Path, tmp_path: Path
) -> None:
    config.write_text(config.read_text() + "learning: {calibration: platt}\n")
    path = tmp_path / "model.json"
    arguments = ("learn", corridor_run.recordings[0], "-c", config, "-o", path, "-q")
    result = forewarn(*arguments)
    assert result.code == 2
    assert f"{config}: learning.calibration: platt calibration needs recordings" in result.err
    assert "(accepted: --calibrate BAG..., or none)" in result.err
    assert forewarn(*arguments, "--calibrate", kept_back).code == 0
    assert {calibration_map.method for calibration_map in load_model(path).recalibration} == {
        "platt"
    }
    assert forewarn(*arguments, "--calibration", "none").code == 0


def test_the_node_keeps_the_map_while_it_learns_on(corridor_run: Any, learned: Path) -> None:
    from forewarn.config.file import load_spec

    model = load_model(learned)
    learner = OnlineLearner(compile_spec(load_spec(corridor_run.config)), model)
    assert learner.model().recalibration == model.recalibration
    assert merge_models([model]).recalibration == ()


MAPS = (
    Recalibration("a", "always(p)", 2.0, "isotonic", ((0.1, 0.2), (0.5, 0.5)), ticks=9),
    Recalibration("b", "always(q)", math.inf, "platt", (), 1.5, -0.25, 7, ("d1", "d2")),
    Recalibration("c", "always(r)", 2.0, "platt", groups=("robot=r1", "robot=r2")),
)


@pytest.fixture
def written(learned: Path, tmp_path: Path) -> tuple[CountModel, Path]:
    model, path = replace(load_model(learned), recalibration=MAPS), tmp_path / "model.json"
    save_model(model, path)
    return model, path


def test_maps_are_read_back_and_are_part_of_the_identity(written: tuple[CountModel, Path]) -> None:
    model, path = written
    again = load_model(path)
    assert again.recalibration == MAPS
    assert again.fingerprint == model.fingerprint
    plain = replace(model, recalibration=())
    assert plain.fingerprint != model.fingerprint
    assert plain.fingerprint == plain.seed == model.seed
    save_model(plain, path)
    document = json.loads(path.read_text())
    assert "recalibration" not in document


@pytest.mark.parametrize(
    ("place", "key", "value", "said"),
    [
        (0, "method", "guess", r"recalibration\[0\].method: 'guess' is not accepted"),
        (0, "knots", [[0.5, 0.2], [0.4, 0.3]], r"recalibration\[0\].knots: .* rising risks"),
        (0, "knots", [["a", 0.2]], r"recalibration\[0\].knots: .* \[risk, frequency\]"),
        (0, "knots", [[0.5, 1e400]], "Infinity|no JSON number|knots"),
        (0, "horizon", -1, r"recalibration\[0\].horizon: -1.0 is not accepted"),
        (1, "slope", 0, r"recalibration\[1\].slope: 0.0 is not accepted"),
        (1, "name", "a", "recalibration: .* names a property twice"),
        (1, "recordings", [1], r"recalibration\[1\].recordings\[0\]: 1 is not"),
        (2, "groups", ["r1", 2], r"recalibration\[2\].groups\[1\]: 2 is not accepted"),
        (1, "ticks", -1, r"recalibration\[1\].ticks: -1 is not accepted"),
    ],
)
def test_damaged_maps_are_named(
    written: tuple[CountModel, Path], place: int, key: str, value: object, said: str
) -> None:
    _, path = written
    document = json.loads(path.read_text())
    document.pop("checksum")
    document["recalibration"][place][key] = value
    try:
        document["checksum"] = _checksum(document)
    except ValueError:
        document["checksum"] = ""
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match=said):
        load_model(path)


def test_recordings_that_end_early_can_be_weighed_for(
    forewarn: Callable[..., Any], corridor_run: Any, learned: Path, kept_back: Path
) -> None:
    def figures(*more: object) -> Any:
        arguments = ("replay", kept_back, "-c", corridor_run.config, "-m", learned)
        found = json.loads(forewarn(*arguments, "--json", "-q", *more).out)["properties"]
        return found["slow_down"]["calibration"], found["slow_down"]["calibration_of_the_chain"]

    for dropped, weighed in zip(figures(), figures("--censoring", "weigh"), strict=True):
        assert weighed["ticks"] >= dropped["ticks"]
        assert weighed["ticks"] + weighed["censored"] == dropped["ticks"] + dropped["censored"]
        assert dropped["censored"]
        assert weighed["brier"] != dropped["brier"]
