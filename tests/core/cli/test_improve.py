"""`forewarn init --improve`: proposals in a table, and a monitor file with its comments kept."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forewarn.cli.moving import PLACES, moved
from forewarn.config.file import load_spec
from forewarn.monitoring.loading import load_compiled

MONITOR = """\
# It knows how near it is, and not whether it comes nearer.
version: 1
rate: 10
startup_grace: 0
signals:
  gap: {timeout: never, unit: m}   # from the scanner
  hum: {timeout: never}
predicates:
  close: gap < 5        # a car's length
bins: {gap: [0.6, 10]}
properties:
  apart: {formula: always(not gap<0.6), horizon: 3.0}
"""


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    for seed in range(16):
        chance, gap, speed, closing = random.Random(seed), 20.0, 0.0, False
        lines = []
        for tick in range(600):
            closing = chance.random() < (0.99 if closing else 0.02)
            speed += 0.3 * ((-4.0 if closing else 0.0) - speed)
            gap = min(30.0, gap + 0.1 * speed)
            if gap < 0.3:
                gap, speed, closing = 20.0, 0.0, False
            values = {"t": tick / 10, "gap": round(gap, 4), "hum": round(chance.gauss(0, 1), 3)}
            lines.append(json.dumps(values) + "\n")
        (folder / f"run{seed}.jsonl").write_text("".join(lines))
    return folder


def test_what_holds_is_written_and_all_else_stays(
    forewarn: Callable[..., Any], bags: Path, tmp_path: Path
) -> None:
    config, better = tmp_path / "monitor.yaml", tmp_path / "better.yaml"
    config.write_text(MONITOR)
    asked = ("init", "--improve", config, bags, "--most", 1, "--tries", 8)
    result = forewarn(*asked, "-o", better, "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    (proposal,) = found["proposals"]
    assert proposal["holds"] and proposal["p_value"] <= 0.05 and "gap" in proposal["condition"]
    assert proposal["log_loss_gain"]["low"] < proposal["log_loss_gain"]["value"]
    assert len(found["choosing"]) == len(found["judging"]) == 8
    assert not set(found["choosing"]) & set(found["judging"])
    before, after = MONITOR.splitlines(), better.read_text().splitlines()
    (added,) = [line for line in after if line not in before]
    assert [line for line in after if line != added] == before, "comments and order stay"
    assert proposal["condition"] in added and "# log loss -" in added
    names = load_compiled(better).abstraction.vocabulary.predicates
    assert len(names) == len(load_compiled(config).abstraction.vocabulary.predicates) + 1
    table = forewarn(*asked)
    assert proposal["condition"] in table.out and "holds" in table.out
    assert "not written: -o FILE does it" in table.out
    assert "exists already" in forewarn(*asked, "-o", better).err


def test_so_few_recordings_that_nothing_could_hold_are_said(
    forewarn: Callable[..., Any], bags: Path, tmp_path: Path
) -> None:
    config = tmp_path / "monitor.yaml"
    config.write_text(MONITOR)
    runs = [bags / f"run{number}.jsonl" for number in range(6)]
    result = forewarn("init", "--improve", config, *runs, "--most", 1, "--tries", 4)
    assert "nothing to write" in result.out
    said = "with 3 recordings that judge no p is below 0.12, whatever is gained: it takes 10 "
    assert said in result.err.replace("\n", " ")


def test_paths_lead_to_the_same_files_from_another_folder(
    forewarn: Callable[..., Any], bags: Path, tmp_path: Path
) -> None:
    for name in ("here", "far/away"):
        (tmp_path / name).mkdir(parents=True)
    config, better = tmp_path / "here" / "monitor.yaml", tmp_path / "far" / "away" / "better.yaml"
    (tmp_path / "here" / "laws.yaml").write_text("predicates: {quiet: hum < 1}\n")
    days = "".join(f"{path.name},{i}\n" for i, path in enumerate(sorted(bags.iterdir())))
    (tmp_path / "here" / "days.csv").write_text("recording,day\n" + days)
    config.write_text(
        f"{MONITOR}include: [laws.yaml]\nmodel: ./m.json   # learned in May\n"
        "learning: {group_by: day, group_source: days.csv}\n"
        f"black_box: {{folder: {tmp_path / 'seen'}}}\n"
    )
    asked = ("init", "--improve", config, bags, "--most", 1, "--tries", 8)
    result = forewarn(*asked, "-o", better)
    assert result.code == 0, result.err
    spec = load_spec(better)
    assert spec.model_path is not None and spec.learning.group_source is not None
    assert spec.model_path.resolve() == tmp_path / "here" / "m.json"
    assert spec.beside(spec.learning.group_source).resolve() == tmp_path / "here" / "days.csv"
    assert spec.black_box is not None and spec.black_box.folder == str(tmp_path / "seen")
    assert 'model: "../../here/m.json"   # learned in May\n' in better.read_text()
    assert 'include: ["../../here/laws.yaml"]\n' in better.read_text()


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("model: m.json\n", 'model: "../a/m.json"\n'),
        ("include: [{file: 'laws.yaml', properties: [p]}]\n",
         'include: [{file: "../a/laws.yaml", properties: [p]}]\n'),
        ("shapes: {b: {file: $MAP/b.bin}, c: {file: c.bin}}\n",
         'shapes: {b: {file: $MAP/b.bin}, c: {file: "../a/c.bin"}}\n'),
        ("learning: {group_source: 'bags/{robot}/*'}\n",) * 2,
        ("model: /m.json\nanomaly:\n  file: ~/a\n", "model: /m.json\nanomaly:\n  file: ~/a\n"),
        ("signals: {p: {rules: \"r ü.yaml\"}}\nmodel: ../m.json\n",
         'signals: {p: {rules: "../a/r ü.yaml"}}\nmodel: "../m.json"\n'),
    ],
)  # fmt: skip
def test_only_relative_paths_are_written_anew(tmp_path: Path, text: str, moves: str) -> None:
    assert moved(text, tmp_path / "a" / "m.yaml", tmp_path / "b" / "n.yaml") == moves
    assert moved(text, tmp_path / "a" / "m.yaml", tmp_path / "a" / "n.yaml") == text


def test_every_key_that_starts_at_the_file_moves_with_it() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "monitor-file.md"
    told = re.findall(
        r"^- \*\*`(\w+)`.*a relative path starts at this file", page.read_text(), re.M
    )
    assert set(told) <= {place[-1] for place in PLACES} and len(told) >= 4


def test_danger_scores_that_nobody_has_fitted_are_pointed_out(
    forewarn: Callable[..., Any], bags: Path, tmp_path: Path
) -> None:
    config = tmp_path / "monitor.yaml"
    config.write_text(f"{MONITOR}learned_score: {{ahead: {{for: apart, from: [gap]}}}}\n")
    result = forewarn("init", "--improve", config, bags, "--most", 1, "--tries", 1)
    assert result.code == 0, result.err
    assert "learned scores are unknown before" in result.err.replace("\n", " ")


def test_groups_and_copies_of_recordings_are_heeded(
    forewarn: Callable[..., Any], bags: Path, tmp_path: Path
) -> None:
    config, copy = tmp_path / "monitor.yaml", tmp_path / "copy.jsonl"
    rows = [f"{path.name},{i // 4}" for i, path in enumerate(sorted(bags.iterdir()))]
    (tmp_path / "days.csv").write_text("recording,day\n" + "\n".join(rows) + "\n")
    config.write_text(MONITOR + "learning: {group_by: day, group_source: days.csv}\n")
    asked = ("init", "--improve", config)
    result = forewarn(*asked, bags, "--most", 1, "--tries", 4, "--json", "-q")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    days = dict(row.split(",") for row in rows)
    halves = [{days[Path(name).name] for name in found[key]} for key in ("choosing", "judging")]
    assert [len(half) for half in halves] == [2, 2] and not halves[0] & halves[1]
    few = forewarn(*asked, *sorted(bags.iterdir())[:8])
    assert few.code == 2 and "2 groups of recordings (accepted: 4 or more" in few.err
    config.write_text(MONITOR)
    copy.write_bytes((bags / "run0.jsonl").read_bytes())
    twice = forewarn(*asked, bags, copy)
    assert twice.code == 2 and "holds the same data as" in twice.err


def test_what_cannot_be_improved_is_refused(
    forewarn: Callable[..., Any], bags: Path, tmp_path: Path
) -> None:
    config = tmp_path / "monitor.yaml"
    config.write_text(MONITOR)
    one = sorted(bags.iterdir())[0]
    for text, arguments, said in (
        (MONITOR, (one,), "BAG: 1 recording (accepted: 4 or more"),
        (MONITOR, (bags, "--property", "no"), "properties: there is no property 'no'"),
        (MONITOR.replace("gap<0.6)", "gap > 40)"), (bags,), "is violated in none of the"),
        (
            MONITOR.replace("hum:", "improve_1:"),
            (bags,),
            "the name 'improve_1' is reserved for --improve",
        ),
    ):
        config.write_text(text)
        result = forewarn("init", "--improve", config, *arguments)
        assert result.code == 2 and said in result.err.replace("\n", " "), said
    assert "-o: is missing" in forewarn("init", one).err


def test_blocks_of_one_long_recording_count_as_recordings(
    forewarn: Callable[..., Any], bags: Path, tmp_path: Path
) -> None:
    config = tmp_path / "monitor.yaml"
    config.write_text(MONITOR)
    asked = ("init", "--improve", config, bags / "run0.jsonl", "--most", 1, "--tries", 1)
    refused = forewarn(*asked)
    assert refused.code == 2
    assert "--blocks S to cut them" in refused.err
    result = forewarn(*asked, "--blocks", 7, "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    parts = [*found["choosing"], *found["judging"]]
    assert len(parts) == 8, "of 59.9 s"
    assert any(part.endswith("run0.jsonl::0.000..6.999") for part in parts)
