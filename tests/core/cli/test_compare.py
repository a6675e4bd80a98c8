"""`forewarn compare`: monitor files and rivals on the same recordings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forewarn.assessment.ranking import precision_recall
from forewarn.assessment.results import scored_runs
from forewarn.cli.output import Output
from forewarn.cli.readers import FleetOptions, Readers
from forewarn.cli.train_test_separation import identified
from forewarn.cli.tune_runs import folded_runs
from forewarn.learning.executors import Here
from forewarn.monitoring.loading import load_compiled


@pytest.fixture(scope="module")
def bags(drive, record, tmp_path_factory: pytest.TempPathFactory) -> Path:  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("compared")
    for seed in range(30, 34):
        record(folder / f"run{seed}.mcap", drive(seed, 30.0))
    return folder


QUICK = ("--folds", 2, "--resamples", 20)


def test_figures_are_those_of_models_that_did_not_learn_the_recording(
    forewarn: Callable[..., Any], corridor_run: Any, bags: Path, tmp_path: Path
) -> None:
    config = corridor_run.config
    other = tmp_path / "coarse.yaml"
    other.write_text(config.read_text().replace("timeout: 0.5", "timeout: 0.6"))
    plot = tmp_path / "curves.html"
    result = forewarn(
        "compare", config, other, bags, *QUICK, "--rival", "near=-nearest", "--json", "-q",
        "--plot", plot,
    )  # fmt: skip
    assert result.code == 0, result.err
    document = json.loads(result.out)
    [(name, rows)] = list(document["properties"].items())[:1]
    assert [row["name"] for row in rows] == [config.stem, "coarse", "near"]
    compiled = load_compiled(config)
    known = identified(sorted(bags.iterdir()), compiled.spec, Here())
    clusters = {path: one.cluster for path, one in known.items()}
    options = FleetOptions(jobs=1, scheduler=None, unreadable="stop")
    readers = Readers(options, [*clusters], Output(quiet=True))
    [(monitor, runs)] = folded_runs(compiled, clusters, 2, readers)
    own = precision_recall(
        scored_runs(monitor, runs, name), monitor.spec.properties[name].out_of_model
    ).area
    assert rows[0]["pr_area"]["value"] == pytest.approx(own)
    assert rows[0]["differences"] == {}
    assert set(rows[2]["differences"]) == {"area", "brier", "lead"}
    assert rows[2]["states"] is None
    page = plot.read_text()
    assert all(label in page for label in (config.stem, "coarse", "near"))


def test_the_table_for_people(forewarn: Callable[..., Any], corridor_run: Any, bags: Path) -> None:
    config = corridor_run.config
    rivals = ("--rival", "near=-nearest", "--rival", "flat=1")
    result = forewarn("compare", config, bags, *QUICK, *rivals)
    assert result.code == 0
    assert "flat: in some folds no threshold keeps to the budget" in result.err
    assert "PR area" in result.out
    assert f"near - {config.stem}: PR area " in result.out


def test_what_cannot_be_compared_is_refused(
    forewarn: Callable[..., Any], corridor_run: Any, bags: Path, tmp_path: Path
) -> None:
    config = corridor_run.config
    slower = tmp_path / "slower.yaml"
    slower.write_text(config.read_text().replace("rate: 10", "rate: 5"))
    for arguments, said in (
        ((bags,), "FILE: there is no monitor file (accepted: at least one monitor file"),
        ((config,), "FILE: there is no recording"),
        ((config, bags, "--rival", "nearest"), "--rival: 'nearest' (accepted: NAME=EXPRESSION"),
        (
            (config, bags, "--rival", "nearest=-nearest"),
            "(accepted: another name, such as rival_nearest=-nearest)",
        ),
        ((config, bags / "none"), "none: does not exist (accepted: a recording"),
        ((config, sorted(bags.iterdir())[0]), "--folds: 5 folds of 1 recording (accepted: more"),
        ((config, bags, "--models"), "(accepted: a model that the monitor file names; or no --"),
        ((config, bags, "--rival", "x=1", "--rival", "x=2"), "--rival: 'x' is another rival"),
        ((config, bags, "--rival", f"{config.stem}=1"), "--rival: 'monitor' is a monitor file"),
        ((config, bags, "--rival", "x=-gap"), "signals.x.value: unknown name 'gap'"),
        ((config, bags, *QUICK, "--rival", "x='high'"), "--rival: x is a text in"),
        ((config, bags, *QUICK, "--rival", "x=(1, 2)"), "--rival: x is a list in"),
        ((config, bags, "--property", "unheard"), "properties: there is no property 'unheard'"),
        ((config, bags, "--folds", 9), "--folds: 9 folds of 4 recordings"),
        ((config, slower, bags, *QUICK), "slower and monitor were not asked at the same moments"),
    ):
        result = forewarn("compare", *arguments)
        assert result.code == 2, arguments
        assert said in result.err.replace("\n", " ").replace(f"{config.stem}", "monitor"), said


def test_another_horizon_is_pointed_out(
    forewarn: Callable[..., Any], corridor_run: Any, bags: Path, tmp_path: Path
) -> None:
    config, longer = corridor_run.config, tmp_path / "longer.yaml"
    longer.write_text(config.read_text().replace("horizon: 2.0", "horizon: 3.0"))
    result = forewarn("compare", config, longer, bags, *QUICK, "--rival", "near=-nearest")
    assert result.code == 0
    warned = [line for line in result.err.splitlines() if line.startswith("warning: ")]
    assert [line.split(" than ")[0] for line in warned] == [
        "warning: slow_down: longer has another horizon"
    ]


def test_a_copy_is_not_judged_by_what_was_learned_from_the_other(
    forewarn: Callable[..., Any], corridor_run: Any, bags: Path, tmp_path: Path
) -> None:
    first, *others = sorted(bags.iterdir())
    copy = tmp_path / "copy.mcap"
    copy.write_bytes(first.read_bytes())
    given = (first, copy, *others[:1])
    budget = ("--false-alarms-per-hour", 100, "--folds", 3)
    for result in (
        forewarn("compare", corridor_run.config, *given, "--folds", 3),
        forewarn("tune", *given, "-c", corridor_run.config, *budget),
    ):
        assert result.code == 2
        assert f"copy.mcap: holds the same data as {first}" in result.err.replace("\n", " ")


def test_estimators_of_one_file_are_compared(
    forewarn: Callable[..., Any], corridor_run: Any, bags: Path, tmp_path: Path
) -> None:
    config = corridor_run.config
    arguments = ("compare", config, bags, *QUICK, "--json", "-q", "--property", "slow_down")
    document = json.loads(forewarn(*arguments, "-e", "chain,frequency,logistic").out)
    rows = document["properties"]["slow_down"]
    assert [row["name"] for row in rows] == ["chain", "frequency", "logistic"]
    assert len({row["brier"]["value"] for row in rows}) == 3
    alone = json.loads(forewarn(*arguments).out)["properties"]["slow_down"]
    assert rows[0]["brier"] == alone[0]["brier"]
    written = tmp_path / "pooled.yaml"
    text = config.read_text()
    written.write_text(text.replace("formula:", "estimator: logistic\n    formula:"))
    as_file = json.loads(forewarn("compare", written, *arguments[2:]).out)
    assert as_file["properties"]["slow_down"][0]["brier"] == rows[2]["brier"]


def test_an_unknown_estimator_is_refused(
    forewarn: Callable[..., Any], corridor_run: Any, bags: Path
) -> None:
    result = forewarn("compare", corridor_run.config, bags, "-e", "chain,guessed")
    assert result.code == 2
    assert "guessed" in result.err
