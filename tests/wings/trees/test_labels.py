"""``forewarn learn-states --label``: labels of few runs become an expression."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from forewarn.config.file import load_spec
from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.syntax import parse_expression

TEXT = """\
# An agent.
clock: steps
signals: {errors: {}, files: {}, last: {}, solved: {}}
predicates:
  bad: errors > 9   # far too many
properties: {p: {template: absence, event: bad, horizon: 2}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "monitor.yaml"
    path.write_text(TEXT)
    return path


def solved(row: dict[str, Any]) -> bool:
    return row["errors"] <= 1 and row["files"] > 3


@pytest.fixture
def runs(tmp_path: Path):
    def write(labelled: float, noise: float = 0.0, number: int = 60) -> tuple[Path, Path]:
        rng = random.Random(3)
        lines, labels = [], []
        for run in range(number):
            row = {"errors": 0, "files": 0, "last": "a"}
            for _ in range(rng.randint(3, 9)):
                row["errors"] += rng.random() < 0.2
                row["files"] += rng.random() < 0.7
                row["last"] = rng.choice(["a", "b", "c"])
                lines.append({"run": f"r{run}", **row, "action": "go"})
            label = solved(row) ^ (rng.random() < noise)
            if rng.random() < labelled:
                lines[-1]["solved"] = label
                labels.append({"run": f"r{run}", "solved": label})
        path, file = tmp_path / "runs.jsonl", tmp_path / "labels.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        file.write_text("".join(json.dumps(line) + "\n" for line in labels))
        return path, file

    return write


@pytest.mark.parametrize(
    "words", [("--labels", "labels.jsonl"), ("--label", "solved", "--group", "last")]
)
def test_arguments_that_would_count_for_nothing_are_refused(forewarn, config, runs, words):
    path, _ = runs(1.0)
    result = forewarn("learn-states", path, "-c", config, *words)
    assert result.code == 2 and words[-2] in result.err and "accepted" in result.err


@pytest.mark.parametrize("beside", [False, True])
def test_the_rule_behind_the_labels_is_found(forewarn, config, runs, beside):
    path, file = runs(0.7)
    extra = ("--labels", file) if beside else ()
    if beside:
        config.write_text(TEXT.replace(", solved: {}", ""))
    words = ("learn-states", path, "-c", config, "--label", "solved", "--write", *extra)
    found = json.loads(forewarn(*words, "--json").out)
    assert found["right"] / found["runs"] > found["common"] and found["unlabelled"] > 0
    assert found["lower"] < found["right"] / found["runs"] <= found["upper"]
    spec = load_spec(config)
    expression = parse_expression(spec.predicates["learned_solved"])
    says = compile_expression(expression, sorted(expression.names))
    rows = [{"errors": e, "files": f, "last": "a"} for e in range(4) for f in range(8)]
    wrong = [
        row for row in rows if bool(says([row[n] for n in sorted(expression.names)])) != solved(row)
    ]
    assert len(wrong) <= 3
    text = config.read_text()
    assert "bad: errors > 9   # far too many" in text and "held-out runs" in text
    # Learned again, it takes the place of what was there.
    forewarn(*words)
    assert config.read_text() == text
    assert forewarn("validate", config).code in (0, 1)


def test_what_no_variable_tells_is_no_label(forewarn, config, runs):
    path, _ = runs(1.0, noise=0.5)
    found = forewarn("learn-states", path, "-c", config, "--label", "solved", "--json")
    said = json.loads(found.out)
    assert found.code == 1 or said["lower"] < said["common"]
    assert config.read_text() == TEXT


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('{"run": "r1", "solved": 1}\n', "labels.jsonl:1: is no label of a run"),
        ('{"run": "r1"}\n', "labels.jsonl:1: is no label"),
        ('{"run": "r1", "solved": true}\n' * 2, "labels.jsonl:2: is no label"),
        ("nothing\n", "labels.jsonl:1: is no label"),
        ('{"run": "r99", "solved": true}\n', "labels a run 'r99' that is not among"),
        ('{"run": "r1", "solved": true}\n', "1 runs have the label, 0 have it not, 59 are not"),
    ],
)
def test_wrong_labels_are_told_with_their_line(forewarn, config, runs, lines, said):
    path, file = runs(0.0)
    file.write_text(lines)
    found = forewarn("learn-states", path, "-c", config, "--label", "solved", "--labels", file)
    assert found.code == 2 and said in found.err


def test_a_label_that_is_no_signal_or_has_a_default_is_refused(forewarn, config, runs):
    path, _ = runs(0.5)
    found = forewarn("learn-states", path, "-c", config, "--label", "solvd")
    assert found.code == 2 and "'solvd' is no signal" in found.err
    config.write_text(TEXT.replace("solved: {}", "solved: {default: false}"))
    found = forewarn("learn-states", path, "-c", config, "--label", "solved")
    assert found.code == 2 and "has a default" in found.err
