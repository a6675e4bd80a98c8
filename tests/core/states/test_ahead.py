"""Derived signals computed for many moments at once, against the step that takes them singly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.expressions.blocks import Lifted, lift
from forewarn.expressions.syntax import parse_expression
from forewarn.logic.specification import compile_spec
from forewarn.signals.snapshots import Snapshot
from forewarn.states.abstraction import Abstraction, Past, Seen

HEAD = """
rate: 4
signals:
  a: {timeout: 1}
  b: {timeout: 1}
  f: {timeout: 1}
  n: {timeout: 1}
  v: {timeout: 1}
  w: {timeout: 1}
  m: {timeout: 1}
  t: {timeout: 1}
  o: {timeout: 1}
"""
TAIL = """
  top: {value: "highest(a, 0.75)"}
  fall: {value: "rate(first, 0.5) + previous(b)"}
predicates:
  near: a < b
  far: fall > 1
terminal: {over: a > 1e100}
active_when: not (b > 1e200)
properties:
  calm: {formula: always(not near), horizon: 1}
"""


@cache
def abstraction_of(*expressions: str) -> Abstraction:
    names = ("first", "second", "third")
    lines = [f'  {n}: {{value: "{e}"}}\n' for n, e in zip(names, expressions, strict=True)]
    lines.append('  fourth: {value: "second + first * 2 if f else third"}\n')
    text = HEAD + "".join(lines) + TAIL
    return compile_spec(parse_spec(parse_document(text))).abstraction


ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "f",
        "n",
        "v",
        "w",
        "m",
        "t",
        "1",
        "0.5",
        "(-2)",
        "inf",
        "true",
        "v",
        "w",
        "a",
        "v[1]",
        "o[0]",
        "o[1]",
        "o",
    ]
)
ONE = ("-{0}", "(not {0})", "abs({0})", "sqrt({0})", "sin({0})", "exp({0})", "({0} ** 2)",
       "({0} ** 0.3)", "({0} in (1, 2))", "isnan({0})", "isfinite({0})", "round({0})", "bool({0})",
       "min({0})", "max({0})", "min({0}, default=inf)", "max({0}, default=0)", "any({0})",
       "all({0})", "count({0})", "len({0})", "sum({0})", "mean({0})", "[{0} * e for e in v]",
       "{0}[0]", "min(e for e in w if e > {0})", "norm({0})")  # fmt: skip
TWO = ("({0} + {1})", "({0} - {1})", "({0} * {1})", "({0} / {1})", "({0} // {1})", "({0} % {1})",
       "({0} ** {1})", "({0} < {1})", "({0} == {1})", "({0} >= {1} > 0)", "({0} and {1})",
       "({0} or {1})", "min({0}, {1})", "max({0}, {1})", "atan2({0}, {1})", "hypot({0}, {1})",
       "[{0}, {1}]", "({0} in {1})", "(min({0}, default=1.0) + {1})")  # fmt: skip
THREE = ("({1} if {0} else {2})", "where({0}, {1}, {2})", "clamp({0}, {1}, {2})")
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds(lambda form, x: form.format(x), st.sampled_from(ONE), inner),
        st.builds(lambda form, x, y: form.format(x, y), st.sampled_from(TWO), inner, inner),
        st.builds(
            lambda form, x, y, z: form.format(x, y, z),
            st.sampled_from(THREE), inner, inner, inner,
        ),
    ),
    max_leaves=5,
)  # fmt: skip

NUMBERS = st.sampled_from(
    [0.0, -0.0, 1.0, 2.0, -1.5, 0.1, 3.7, 1e300, np.inf, -np.inf]
) | st.floats(-10, 10)
ELEMENTS = NUMBERS | st.just(np.nan)
FLOATS = st.lists(ELEMENTS, max_size=3).map(lambda items: np.array(items, np.float64))
THREE_FLOATS = st.lists(NUMBERS, min_size=3, max_size=3).map(np.array)
TRUTHS = st.lists(st.booleans(), max_size=3).map(lambda items: np.array(items, np.bool_))
WHOLE = st.lists(st.integers(-3, 3), max_size=3).map(lambda items: np.array(items, np.int64))


def rarely(usual: st.SearchStrategy[Any], *others: st.SearchStrategy[Any]) -> Any:
    return st.integers(0, 9).flatmap(lambda at: others[at] if at < len(others) else usual)


NOTHING = st.none()
VALUES = st.tuples(
    rarely(NUMBERS, NOTHING, st.integers(-3, 3)),
    rarely(NUMBERS, NOTHING),
    rarely(st.booleans(), NOTHING),
    rarely(st.integers(0, 3), NOTHING, st.just(2**53 + 1), NUMBERS),
    rarely(THREE_FLOATS, NOTHING, FLOATS, WHOLE),
    rarely(THREE_FLOATS, NOTHING, FLOATS),
    rarely(TRUTHS, NOTHING, FLOATS),
    rarely(st.sampled_from(["go", "stop"]), NOTHING, NUMBERS),
    rarely(st.lists(THREE_FLOATS, min_size=2, max_size=2), NOTHING, st.lists(FLOATS, max_size=2)),
)
GAPS = st.integers(0, 9).map(lambda at: 3 if at == 0 else 1)
RUNS = st.lists(st.tuples(GAPS, VALUES), min_size=1, max_size=8)


def snapshots_of(run: Sequence[tuple[int, tuple[Any, ...]]]) -> list[Snapshot]:
    ticks = np.cumsum([gap for gap, _ in run]).tolist()
    return [Snapshot(tick, values) for tick, (_, values) in zip(ticks, run, strict=True)]


def seen_of(abstraction: Abstraction, snapshots: Iterator[Snapshot]) -> list[Seen]:
    past: Past | None = None
    found = []
    for snapshot in snapshots:
        found.append(abstraction.observe(snapshot, past))
        past = found[-1].past
    return found


def exactly(value: Any) -> Any:
    """Return what differs wherever a bit or a type does."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (list, tuple)):
        return type(value), [exactly(element) for element in value]
    return type(value), repr(value)


@settings(max_examples=examples(100))
@given(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS, RUNS)
def test_blocks_give_the_bits_of_the_step(
    first: str, second: str, third: str, run: list[tuple[int, tuple[Any, ...]]]
) -> None:
    abstraction = abstraction_of(first, second, third)
    snapshots = snapshots_of(run)
    singly = seen_of(abstraction, iter(snapshots))
    at_once = seen_of(abstraction, abstraction.outlook.over([snapshots[:3], snapshots[3:]]))
    for one, other in zip(singly, at_once, strict=True):
        assert exactly(other.values) == exactly(one.values)
        assert other.observation == one.observation
        assert other.failures == one.failures
        assert exactly(other.past) == exactly(one.past)


SIGNATURES = {"a": ("f", False), "f": ("b", False), "n": ("i", False), "v": ("f", True)}


def lifted(source: str) -> Lifted | tuple[Lifted, ...] | None:
    expression = parse_expression(source)
    names = sorted(expression.names)
    return lift(expression, names, [SIGNATURES[name] for name in names])


@pytest.mark.parametrize(
    ("source", "arrays"),
    [("a * a / (2 * max(a, 0.1))", False), ("v * cos(a) > 1.5 and not f", True),
     ("min(where(v > a, v, inf), default=inf)", False), ("a if f else inf", False),
     ("a - (3 if n == 2 else 0)", False), ("any(v > a) or n in (1, 2)", False),
     ("where(v > 0, a, 1)", True), ("max(v, default=0)", False)],
)  # fmt: skip
def test_what_works_element_by_element_runs_at_once(source: str, arrays: bool) -> None:
    found = lifted(source)
    assert isinstance(found, Lifted)
    assert found.arrays == arrays


def test_of_a_list_each_element_runs_at_once() -> None:
    found = lifted("[a, where(v > a, v, 1), f]")
    assert found is not None and not isinstance(found, Lifted)
    assert [element.arrays for element in found] == [False, True, False]


@pytest.mark.parametrize(
    "source",
    ["[a, 1]", "v[0]", "[2 * e for e in v]", "a if f else 0", "v if f else a", "a ** n",
     "isnan(max(v, default=0))", "argmin(v)", "1 + 1"],
)  # fmt: skip
def test_what_does_not_is_left_to_the_step(source: str) -> None:
    assert lifted(source) is None
