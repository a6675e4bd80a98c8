"""What docs/expressions.md says of expressions is so."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from forewarn.expressions.functions import CONSTANTS, FUNCTIONS
from forewarn.expressions.syntax import MAX_BRACKETS, MAX_LENGTH, MAX_NODES, parse_expression
from forewarn.messages.definitions import installed_message_type
from forewarn.messages.extraction import compile_extractor

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "expressions.md").read_text(encoding="utf-8")


def test_every_function_and_constant_is_listed() -> None:
    table = PAGE[PAGE.index("## Functions") :]
    listed = set(re.findall(r"`(\w+)\(", table))
    assert listed == set(FUNCTIONS)
    for constant in CONSTANTS:
        assert f"`{constant}`" in PAGE


def test_the_limits_are_those() -> None:
    limits = PAGE[PAGE.index("## Limits") :]
    assert [int(n) for n in re.findall(r"\d+", limits)] == [MAX_LENGTH, MAX_BRACKETS, MAX_NODES]


def test_examples_compile() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)
    monitor = yaml.safe_load(example)
    for signal in monitor["signals"].values():
        parsed = parse_expression(signal["value"])
        if "type" in signal:
            compile_extractor(installed_message_type(signal["type"]), [parsed])
    for predicate in monitor["predicates"].values():
        parse_expression(predicate)
    inline = re.findall(r"`([^`]*\bfor \w+ in [^`]*)`", PAGE)
    assert len(inline) >= 2
    for source in inline:
        parse_expression(source)
