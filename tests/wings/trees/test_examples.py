from __future__ import annotations

import json
from pathlib import Path

import pytest

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.wings.trees.examples import classifier, read_run


def compiled(formula: str) -> CompiledSpec:
    return compile_spec(
        parse_spec(
            parse_document(f"""
clock: steps
signals: {{x: {{}}}}
predicates: {{calm: x < 1}}
terminal: {{arrived: x > 5}}
properties: {{p: {{formula: "{formula}"}}}}
""")
        )
    )


def violations(path: Path, spec: CompiledSpec, values: list[float]) -> list[tuple[str, ...]]:
    path.write_text("".join(json.dumps({"x": x}) + "\n" for x in values))
    moments = [moment for run in read_run(path, spec, ["x"]) for moment in run]
    return [(*moment.violated, *(moment.ends or ())) for moment in moments]


@pytest.mark.parametrize(
    "formula", ["always(calm)", "always(calm implies eventually[1:1](not calm and x > 1))"]
)
def test_a_label_that_no_formula_names_violates_nothing(tmp_path: Path, formula: str) -> None:
    # At a terminal state nothing but its own name holds: read as any letter, it would break both.
    path, spec = tmp_path / "run.jsonl", compiled(formula)
    assert violations(path, spec, [0, 9, 9]) == [()]
    (run,) = read_run(path, spec, ["x"])
    assert classifier("violation:p:1", spec)([*run, *run], 0) == "none"


def test_a_label_that_a_formula_names_is_read_once_while_it_is_held(tmp_path: Path) -> None:
    path, spec = tmp_path / "run.jsonl", compiled("always(not arrived)")
    assert violations(path, spec, [0, 9, 9, 0, 0, 9]) == [("p",), (), ("p",)]


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        # The label comes right after the last moment: one step from there, two from the one before.
        ([0, 0, 0, 9], [["none", "violation", "violation"]]),
        ([0, 0, 0, 7], [["none", "none", "none"]]),
        # Nobody knows what would have come.
        ([0, 0, 0, 0], [["none", "none", "(unknown)", "(unknown)"]]),
        # An episode is not blamed for the next one.
        ([0, 7, 0, 9], [["none"], ["violation"]]),
    ],
)
def test_what_follows_is_known_where_a_label_ends_the_episode(
    tmp_path: Path, values: list[float], classes: list[list[str]]
) -> None:
    spec = compile_spec(
        parse_spec(
            parse_document("""
clock: steps
signals: {x: {}}
terminal: {bad: x > 8, good: x > 5}
properties: {p: {formula: always(not bad)}}
""")
        )
    )
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps({"x": x}) + "\n" for x in values))
    classify = classifier("violation:p:2", spec)
    runs = read_run(path, spec, ["x"])
    assert [[classify(run, i) for i in range(len(run))] for run in runs] == classes


def test_an_obligation_ends_with_the_episode(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    spec = compiled("always(calm implies eventually[1:2](not calm))")
    assert violations(path, spec, [0, 9, 0, 2]) == [(), (), ()]
    assert violations(path, spec, [0, 0, 0, 2]) == [(), (), ("p",), ()]
