"""``learn --group-by`` and ``drift``: a model for each group, and what differs between them."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forewarn.cli.main import main
from forewarn.models.file import load_model
from forewarn.monitoring.loading import make_monitor

MONITOR = """
rate: 10
signals: {gap: {}}
predicates: {near: gap < 2, hit: gap < 1}
properties:
  safe: {formula: "always(not hit)", horizon: 1, thresholds: {act: 0.3}}
"""
ROBOTS, RUNS = 3, 8


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a monitor file and recordings of three robots; one comes near often."""
    folder = tmp_path_factory.mktemp("groups")
    (folder / "monitor.yaml").write_text(MONITOR)
    for robot in range(ROBOTS):
        for run in range(RUNS if robot else RUNS // 2):
            draw = random.Random(f"{robot} {run}")
            near, rows = False, []
            for tick in range(300):
                near = draw.random() < (0.8 if near else 0.05 + 0.10 * (robot == 2))
                gap = 5.0 if not near else 0.5 if draw.random() < 0.1 else 1.5
                rows.append({"t": 86_400 * 40 * (robot == 2) + tick / 10, "gap": gap})
            path = folder / f"r{robot}" / f"{run}.jsonl"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any], str]:
    code = main([*map(str, arguments), "--json", "-q"])
    told = capsys.readouterr()
    return code, json.loads(told.out) if told.out else {}, told.err


def test_each_group_has_a_model_that_a_monitor_takes(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, model = given / "monitor.yaml", tmp_path / "fleet.json"
    by_robot = ("--group-by", "robot", "--group-source", "{robot}/*")
    code, found, _ = run(
        capsys, "learn", given / "r*" / "*.jsonl", "-c", config, "-o", model, *by_robot
    )
    assert code == 0
    groups = found["groups"]["models"]
    assert list(groups) == [f"robot=r{i}" for i in range(ROBOTS)]
    fleet, total = load_model(model), 0
    for name, told in groups.items():
        group = load_model(told["model"])
        assert Path(told["model"]) == tmp_path / f"fleet.{name}.json"
        assert group.hierarchical_prior is not None
        total += int(group.counts.sum())
        others = fleet.counts - group.counts
        assert (others != group.hierarchical_prior.counts).nnz == 0
        share = group.hierarchical_prior.share(group.visits)
        assert told["hierarchical_prior"]["share"] == share and 0 < share < 1
        monitor, _ = make_monitor(config, Path(told["model"]))
        table = monitor.properties[0].table
        assert table is not None and np.isfinite(table.values).all()
    assert total == int(fleet.counts.sum())
    assert (
        groups["robot=r0"]["hierarchical_prior"]["share"]
        > groups["robot=r1"]["hierarchical_prior"]["share"]
    )
    (moved,) = found["groups"]["differences"]["moved"]
    assert (moved["state"], moved["to"], moved["group"]) == ("(none)", "near", "robot=r2")

    assert main(["inspect", groups["robot=r0"]["model"]]) == 0
    told = capsys.readouterr().out
    assert (
        "model of robot=r0: " in told and "is borrowed from 16 recordings of other groups" in told
    )


def test_drift_names_what_moved_between_months(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, recordings = given / "monitor.yaml", given / "r*" / "*.jsonl"
    arguments = ("drift", recordings, "-c", config, "--store", tmp_path / "shards")
    code, found, _ = run(capsys, *arguments, "--group-by", "month")
    assert code == 1
    assert found["groups"] == {"month=1970-01": 12, "month=1970-02": 8}
    assert [one["state"] for one in found["moved"]] == ["(none)"]
    again, told, _ = run(capsys, *arguments, "--group-by", "month", "-j", "2", "--fdr", "0.05")
    assert (again, told) == (1, found)
    alike, told, _ = run(capsys, *arguments[:1], given / "r1", *arguments[2:], "--group-by", "half",
                         "--group-source", half(given, tmp_path))  # fmt: skip
    assert (alike, told["moved"], told["tested"]) == (0, [], 3)


def half(given: Path, tmp_path: Path) -> Path:
    table = tmp_path / "halves.csv"
    lines = [f"r1/{run}.jsonl,{run % 2}" for run in range(RUNS)]
    table.write_text("\n".join(["recording,half", *lines]) + "\n")
    return table


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--group-by", "robot", "--group-source", "{robot}/x/*"), "does not match the pattern"),
        (("--group-by", "month", "-o", "/dev/stdout"), "has no files beside it"),
        (
            ("--group-source", "{robot}/*"),
            "has no effect without --group-by (accepted: --group-by as well)",
        ),
        (("--group-by", "site"), "site: has no value here"),
        (("--group-by", "site", "--group-source", "none.csv"), "none.csv: cannot be read"),
    ],
)
def test_what_cannot_be_grouped_is_an_error(
    given: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    told: str,
) -> None:
    paths = ("-c", given / "monitor.yaml", "-o", tmp_path / "model.json")
    code, _, problem = run(capsys, "learn", given / "r1", *paths, *arguments)
    assert code == 2 and told in problem


def test_every_group_has_a_file_of_its_own_whatever_its_name(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = ("a, b", "a,b", "../../a", "\u6771\u4eac " * 60, 'say "a, b"', "two\nlines")
    table = tmp_path / "odd.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows(
            [("recording", "robot"), *((f"r1/{i}.jsonl", x) for i, x in enumerate(odd))]
        )
    code, found, _ = run(
        capsys, "learn", *(given / "r1" / f"{i}.jsonl" for i in range(len(odd))), "-c",
        given / "monitor.yaml", "-o", tmp_path / "fleet.json", "--group-by", "robot",
        "--group-source", table,
    )  # fmt: skip
    models = {name: Path(told["model"]) for name, told in found["groups"]["models"].items()}
    assert code == 0 and len(models) == len(odd)
    assert not any("\n" in name for name in models)
    written = [path for path in tmp_path.iterdir() if path.name.startswith("fleet.")]
    assert len(written) == len(odd) + 1
    for name, path in models.items():
        borrowed = load_model(path).hierarchical_prior
        assert borrowed is not None and borrowed.group == name


def test_one_group_is_no_group(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, told = run(
        capsys, "drift", given / "r1", "-c", given / "monitor.yaml", "--group-by", "month"
    )
    assert code == 2 and "all recordings are of one group, month=1970-01" in told
