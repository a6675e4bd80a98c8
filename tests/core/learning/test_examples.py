from __future__ import annotations

import json
from pathlib import Path

import pytest

from forewarn.config import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.examples import classifier, read_run
from forewarn.logic.specification import CompiledSpec, compile_spec


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
    return [moment.violated for run in read_run(path, spec, ["x"]) for moment in run]


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


def test_an_obligation_ends_with_the_episode(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    spec = compiled("always(calm implies eventually[1:2](not calm))")
    assert violations(path, spec, [0, 9, 0, 2]) == [(), (), ()]
    assert violations(path, spec, [0, 0, 0, 2]) == [(), (), ("p",), ()]
