"""What docs/properties.md says of formulas is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from forewarn.errors import FormulaError
from forewarn.logic.compilation import compile_formula
from forewarn.logic.parser import SPELLINGS, parse_formula

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "properties.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", re.findall(r"```formula\n(.*?)\n```", PAGE, re.S))
def test_examples_compile(text):
    compile_formula(parse_formula(text), 10.0)


def test_every_operator_is_in_the_table():
    table = PAGE[PAGE.index("## Words") : PAGE.index("## Predicates")].replace("\\|", "|")
    words = {spelling for spellings in SPELLINGS.values() for spelling in spellings}
    for word in words - {"!=", "!==", "TRUE", "True", "FALSE", "False"}:
        pattern = rf"(?<!\w){re.escape(word)}(?!\w)" if word.isidentifier() else re.escape(word)
        assert re.search(pattern, table), word


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("always a and b", "always(a) and b"),
        ("once[0:500 ms](a)", "once[0 ms:500 ms](a)"),
        ("a !== 3", "a != 3"),
    ],
)
def test_what_is_said_to_mean_the_same_does(wide, narrow):
    assert parse_formula(wide) == parse_formula(narrow)


@pytest.mark.parametrize(
    "text",
    [
        "always(a implies eventually[2:5](b))",
        "always(a implies eventually[0:5](always[0:2](b)))",
        "always(a and eventually[0:2](b) implies eventually[0:3](c))",
    ],
)
def test_what_is_said_to_need_too_many_states_is_refused(text):
    with pytest.raises(FormulaError, match="states"):
        compile_formula(parse_formula(text), 10.0, max_states=5_000)


@pytest.mark.parametrize(
    "text",
    [
        "always(a implies eventually[0:5](b))",
        "always(b and once[0:2](a) implies eventually[0:3](c))",
    ],
)
def test_what_is_said_to_help_does(text):
    assert compile_formula(parse_formula(text), 10.0).n_states < 1000
