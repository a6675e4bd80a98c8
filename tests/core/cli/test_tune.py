"""`forewarn tune` on the corridor: what it promises is what replay then shows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forewarn.cli.tune_runs import Elsewhere
from forewarn.config.file import load_spec
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import compile_spec


@pytest.fixture(scope="module")
def unseen(drive, record, tmp_path_factory: pytest.TempPathFactory) -> Path:  # type: ignore[no-untyped-def]
    """Return a folder of recordings that the corridor's model has not seen."""
    folder = tmp_path_factory.mktemp("unseen")
    for seed in range(20, 24):
        record(folder / f"run{seed}.mcap", drive(seed, 45.0))
    return folder


@pytest.fixture
def config(corridor_run, tmp_path: Path) -> Path:  # type: ignore[no-untyped-def]
    path = tmp_path / "monitor.yaml"
    shutil.copy(corridor_run.config, path)
    return path


@pytest.fixture
def tuned(
    forewarn: Callable[..., Any], config: Path, corridor_model: Path, unseen: Path
) -> Callable[..., Any]:
    def run(*arguments: object) -> Any:
        return forewarn("tune", unseen, "-c", config, "-m", corridor_model, *arguments)

    return run


BUDGET = ("--false-alarms-per-hour", 400, "--alert-share", 0.9, "--least-violations", 1)


def test_what_tune_says_of_thresholds_is_what_replay_shows(
    tuned: Callable[..., Any],
    forewarn: Callable[..., Any],
    config: Path,
    corridor_model: Path,
    unseen: Path,
) -> None:
    def replayed() -> dict[str, Any]:
        found = forewarn("replay", unseen, "-c", config, "-m", corridor_model, "--json", "-q")
        return dict(json.loads(found.out)["properties"])

    def same(figures: dict[str, Any], shown: dict[str, Any]) -> None:
        for key in ("violations", "detected", "missed", "alerts", "false_alarms", "precision"):
            assert figures[key] == shown[key], key
        assert figures["false_alarms_per_hour"] == pytest.approx(shown["false_alarms_per_hour"])

    before = config.read_text()
    result = tuned(*BUDGET, "--json", "-q")
    assert result.code == 0
    document = json.loads(result.out)
    assert config.read_text() == before
    assert not document["written"]
    shown = replayed()
    assert list(shown) == ["slow_down", "no_contact"]
    for name, figures in shown.items():
        same(document["properties"][name]["present"], figures)

    written = tuned(*BUDGET, "--write", "-q")
    assert written.code == 0
    assert f"written: {config}" in written.out
    assert document["diff"].splitlines()[2] in written.out
    spec, shown = load_spec(config), replayed()
    for name, prop in document["properties"].items():
        chosen = prop["chosen"]
        assert spec.properties[name].thresholds.act == chosen["thresholds"]["act"]
        same(chosen, shown[name])
        best = [c for c in prop["trade_off"] if c["affordable"]]
        assert chosen["median_lead"] == max(c["median_lead"] for c in best)
    changed = [
        old for old, new in zip(before.splitlines(), config.read_text().splitlines(), strict=True)
        if old != new
    ]  # fmt: skip
    assert all("thresholds" in line for line in changed)


def test_one_property_can_be_tuned_alone(tuned: Callable[..., Any], config: Path) -> None:
    result = tuned(*BUDGET, "--property", "no_contact", "--enter", 1, "--enter", 2)
    assert result.code == 0
    assert "no_contact: 9 violations in 4 of 4 runs" in result.out
    assert "slow_down" not in result.out
    assert "<- chosen" in result.out
    assert "not written: --write does it" in result.out
    wrong = tuned(*BUDGET, "--property", "crash")
    assert wrong.code == 2
    assert f"{config}: properties: 'crash' is no property (accepted: slow_down, no_contact)" in (
        wrong.err
    )


def test_a_property_that_there_is_not_is_said_before_recordings_are_read(
    forewarn: Callable[..., Any], config: Path, corridor_model: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.mcap"
    broken.write_bytes(b"no recording")
    asked = (broken, "-c", config, "-m", corridor_model, *BUDGET, "--property", "crash")
    assert "'crash' is no property" in forewarn("tune", *asked).err


def test_a_wish_beyond_the_data_is_refused_with_what_it_would_take(
    tuned: Callable[..., Any], config: Path
) -> None:
    before = config.read_text()
    result = tuned(*BUDGET, "--miss-rate", 0.05, "--confidence", 0.95, "--write")
    assert result.code == 1
    assert "runs with a violation support a miss rate of" in result.out
    assert "at 95 %, not 5 %: 59 are needed, or about" in result.out
    assert config.read_text() == before
    calm = tuned("--false-alarms-per-hour", 400, "--alert-share", 0.001)
    assert calm.code == 1
    assert "is in alert for more than 0.1 % of the time; the least is" in calm.out
    assert "--alert-share says how much is bearable" in calm.out


def test_a_wish_within_the_data_is_proven(tuned: Callable[..., Any]) -> None:
    result = tuned(*BUDGET, "--miss-rate", 0.6, "--confidence", 0.8, "--property", "slow_down")
    assert result.code == 0
    assert "proven at 80 %: at most 60 % of the violations of a run are missed" in result.out
    single = tuned(*BUDGET, "--miss-rate", 0.6, "--per", "violation", "--property", "slow_down")
    assert "violations, independent and exchangeable with those to come" in single.out


def test_recordings_that_the_model_knows_are_refused(
    forewarn: Callable[..., Any],
    config: Path,
    corridor_model: Path,
    corridor_run: Any,
) -> None:
    known = corridor_run.recordings[0]
    result = forewarn("tune", known, "-c", config, "-m", corridor_model, *BUDGET)
    assert result.code == 2
    assert f"{known}: the model {corridor_model} was learned from this recording" in result.err
    assert "--folds K" in result.err


def test_a_copy_of_a_recording_proves_nothing_more(
    forewarn: Callable[..., Any],
    config: Path,
    corridor_model: Path,
    unseen: Path,
    tmp_path: Path,
) -> None:
    first, copy = unseen / "run20.mcap", tmp_path / "copy.mcap"
    copy.write_bytes(first.read_bytes())
    given = (first, copy, "-c", config)
    for result in (
        forewarn("tune", *given, "-m", corridor_model, *BUDGET),
        forewarn("anomalies", first, "-c", config, "-m", corridor_model, "--calibrate", *given[:2]),
    ):
        assert result.code == 2
        assert f"copy.mcap: holds the same data as {first}" in " ".join(result.err.split())


def test_without_a_second_set_the_recordings_take_turns(
    forewarn: Callable[..., Any], config: Path, corridor_run: Any, tmp_path: Path
) -> None:
    plot = tmp_path / "trade_off.html"
    bags = corridor_run.recordings[:4]
    result = forewarn("tune", *bags, "-c", config, "--folds", 2, *BUDGET, "--plot", plot)
    assert result.code == 0
    assert "every run was judged by a model learned from the other folds" in result.err
    assert "slow_down: 8 violations in 4 of 4 runs" in result.out
    page = plot.read_text(encoding="utf-8")
    assert "false alarms an hour" in page
    assert "<script src" not in page
    many = forewarn("tune", *bags, "-c", config, "--folds", 5, *BUDGET)
    assert many.code == 2
    assert "--folds: 5 folds of 4 recordings (accepted: 2 to 4; or --blocks SECONDS" in many.err


def test_blocks_of_one_recording_take_turns(
    forewarn: Callable[..., Any], config: Path, drive: Any, record: Any, tmp_path: Path
) -> None:
    bag = record(tmp_path / "long.mcap", drive(40, 120.0))
    arguments = ("tune", bag, "-c", config, *BUDGET, "--least-violations", 1, "--folds", 2)
    result = forewarn(*arguments, "--blocks", 20, "--json", "-q")
    found = json.loads(result.out)["properties"]["slow_down"]
    assert found["support"]["runs"] in (6, 7)  # blocks, the first and the last cut short
    assert found["chosen"] is not None
    assert not any(item["proven"] for item in found["trade_off"])
    replayed = forewarn("replay", bag, "-c", config, "--json", "-q")
    shown = json.loads(replayed.out)["properties"]["slow_down"]
    assert found["support"]["violations"] == shown["violations"]


def test_the_parts_of_a_recording_are_learned_from_by_the_folds_of_its_blocks(
    config: Path, drive: Any, record: Any, tmp_path: Path
) -> None:
    bag = record(tmp_path / "long.mcap", drive(41, 60.0))
    compiled = compile_spec(load_spec(config))
    arguments = ([bag], compiled.spec, compiled.abstraction)
    whole = learn(*arguments).model
    parts = [learn(*arguments, keep=Elsewhere(100, 3, fold)).model for fold in range(3)]
    ticks = [sum(p.ticks for p in model.provenance) for model in (whole, *parts)]
    assert sum(ticks[1:]) == 2 * ticks[0]
    assert all(0 < part < ticks[0] for part in ticks[1:])


def test_without_a_model_there_is_nothing_to_tune(
    forewarn: Callable[..., Any], config: Path, unseen: Path
) -> None:
    result = forewarn("tune", unseen, "-c", config, *BUDGET)
    assert result.code == 2
    assert f"{config}: model: there is no model" in result.err


@pytest.mark.parametrize(
    ("argument", "value", "said"),
    [
        ("--miss-rate", "1.5", "'1.5' (accepted: a number between 0 and 1)"),
        ("--confidence", "0", "'0' (accepted: a number between 0 and 1)"),
        ("--enter", "0", "'0' (accepted: a whole number, 1 or more)"),
        ("--folds", "1", "'1' (accepted: a whole number, 2 or more)"),
        ("--blocks", "0", "--blocks"),
    ],
)
def test_numbers_out_of_range_are_named(
    tuned: Callable[..., Any], argument: str, value: str, said: str
) -> None:
    result = tuned(*BUDGET, argument, value)
    assert result.code == 2
    assert said in result.err


def test_recordings_without_a_violation_tune_nothing(
    forewarn: Callable[..., Any],
    config: Path,
    corridor_model: Path,
    drive: Any,
    record: Any,
    tmp_path: Path,
) -> None:
    bag = record(tmp_path / "short.mcap", drive(30, 2.0))
    result = forewarn("tune", bag, "-c", config, "-m", corridor_model, *BUDGET)
    assert result.code == 1
    assert "no violation in these recordings: there is nothing to foresee" in result.out
