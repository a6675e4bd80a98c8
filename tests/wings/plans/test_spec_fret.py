"""``forewarn spec fret``: sentences of FRET's language as properties."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forewarn.logic.compilation import compile_formula
from forewarn.logic.parser import parse_formula

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("sentence", "formula"),
    [
        ("while autonomous, when red & close the car shall within 2 seconds satisfy stopped",
         "always(rise(autonomous and (red and close)) implies "
         "eventually[0:2](stopped or not(autonomous)))"),
        ("The car shall always satisfy speed <= 30.", "always(speed <= 30)"),
        ("car shall never satisfy if open then moving", "always(not(open implies moving))"),
        ("Upon alarm the arm shall immediately satisfy halted",
         "always(rise(alarm) implies halted)"),
        ("whenever a is false the arm shall at the next timepoint satisfy b",
         "always(not(a) implies next(b))"),
        ("when a, or if b, unless c the arm shall for 500 milliseconds satisfy x",
         "always(rise((a or b) and not(c)) implies always[0:500 ms](x))"),
        ("in landing mode the drone shall for 3 ticks satisfy low",
         "always(rise(landing) implies low unless[0:3 steps] not(landing))"),
        ("before takeoff the drone shall satisfy checked",
         "historically(not(takeoff)) implies historically(not(takeoff)) unless "
         "(checked and historically(not(takeoff)))"),
        ("only while armed shall the drone satisfy x",
         "always(rise(not(armed)) implies not(x) unless armed)"),
        ("if a robot shall until released satisfy (x - y) / 2 > -1 & z",
         "always(rise(a) implies ((x - y) / 2 > -1 and z) unless released)"),
        ("robot shall within 2 minutes satisfy x", "eventually[0:120](x)"),
        ("except in docked mode robot shall always satisfy x",
         "always(rise(not(docked)) implies x unless docked)"),
    ],
)  # fmt: skip
def test_translates_into_properties(forewarn: Run, sentence: str, formula: str) -> None:
    result = forewarn("spec", "fret", sentence, "--json")
    (found,) = json.loads(result.out)
    assert found["formula"] == formula
    assert compile_formula(parse_formula(found["formula"]), 10.0).n_states > 1
    assert "`" in found["words"]


@pytest.mark.parametrize(
    ("sentence", "code", "named"),
    [
        ("the car shall eventually satisfy parked", 1, "no run breaks 'eventually'"),
        ("after homing the arm shall finally satisfy x", 1, "no run breaks 'finally'"),
        ("in m the arm shall finally satisfy x", 1, "decided when the scope ends"),
        ("the car parks", 2, "has no 'shall'"),
        ("the car shall park", 2, "no 'satisfy'"),
        ("when red shall satisfy x", 2, "condition is empty"),
        ("sometimes the car shall satisfy x", 2, "'sometimes' is neither a scope nor a condition"),
        ("the car shall within x satisfy x", 2, "'x' is no duration"),
        ("the car shall within 2 fortnights satisfy x", 2, "'2 fortnights' is no duration"),
        ("the car shall with probability > 0.9 satisfy x", 2, "a probability"),
        ("the car shall always satisfy G x", 2, "more than one moment"),
        ("the car shall always satisfy PREBOOL(false, x > 1)", 0, "s_prev(x > 1)"),
        ("the car shall always satisfy preInt(0, x) > 1", 2, "preInt(...) is a number"),
        ("the car shall always satisfy occurs(2, x)", 2, "occurs(...) looks ahead"),
        ("the car shall always satisfy persisted(n, x)", 2, "persisted(n, x)"),
        ("the car shall always satisfy persisted(3, 1, x)", 2, "3 to 1 moments"),
        ("the car shall always satisfy persisted(1, x", 2, "never closed"),
        ("while occurred(1, a) the car shall always satisfy x", 2, "counts from the beginning"),
        ("the car shall always satisfy x &", 2, "response: column"),
        ("the car shall always satisfy", 2, "the response is empty"),
        ("a shall b shall satisfy c", 2, "'shall' stands twice"),
        ("when " + "(" * 9_000 + " the car shall satisfy x", 2, "condition"),
        ("the car shall satisfy " + "x & " * 9_000, 2, "at most 20000"),
    ],
)
def test_what_is_not_monitored_or_not_understood_says_why(
    forewarn: Run, sentence: str, code: int, named: str
) -> None:
    result = forewarn("spec", "fret", sentence)
    assert result.code == code
    assert named in result.out
    assert max(map(len, result.out.splitlines())) < 1_000


def test_reads_files_of_lines_and_frets_own(forewarn: Run, tmp_path: Path) -> None:
    lines = tmp_path / "r.txt"
    lines.write_text("the car shall always satisfy x\n\nthe car shall satisfy y\n")
    result = forewarn("spec", "fret", "-f", lines)
    assert result.code == 1
    assert result.out.splitlines()[:2] == [
        "line 1: the car shall always satisfy x", "  formula: always(x)",
    ]  # fmt: skip
    exported = tmp_path / "r.json"
    exported.write_text(json.dumps([{"reqid": "R1", "fulltext": "car shall never satisfy x"}]))
    assert "R1: car shall never satisfy x" in forewarn("spec", "fret", "-f", exported).out
    for text in ("{}", "[1]", "[", '[{"fulltext": 3}]'):
        exported.write_text(text)
        assert forewarn("spec", "fret", "-f", exported).code == 2
    assert forewarn("spec", "fret").code == 2
    assert forewarn("spec", "fret", "x", "-f", lines).code == 2
