"""Printed formulas parse back to the same formula."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.logic import syntax
from forewarn.logic.parser import parse_formula
from forewarn.logic.syntax import Atom, Bound, Constant, Interval, format_formula

ATOMS = ("a", "stopped", "speed > 0.5", "0 < x <= 5", "abs(x - y) < 2", "ego.ready")


def intervals():
    """Return a strategy for intervals with all units."""
    values = st.floats(0, 1e6) | st.integers(0, 10**6).map(float)
    same = st.tuples(st.tuples(values, values).map(sorted), st.sampled_from(syntax.UNITS)).map(
        lambda drawn: Interval(Bound(drawn[0][0], drawn[1]), Bound(drawn[0][1], drawn[1]))
    )
    mixed = st.builds(
        Interval, st.builds(Bound, values, st.just("ms")), st.builds(Bound, values, st.just("s"))
    )
    endless = st.builds(
        Interval, st.builds(Bound, values, st.sampled_from(syntax.UNITS)), st.none()
    )
    return st.none() | same | mixed | endless


def formulas():
    """Return a strategy for all of the syntax."""
    leaf = st.sampled_from(ATOMS).map(Atom) | st.builds(Constant, st.booleans())

    def extend(inner):
        kinds = {
            base: list(base.__subclasses__())
            for base in (syntax.Unary, syntax.Binary, syntax.TimedUnary, syntax.TimedBinary)
        }
        return st.one_of(
            *(st.builds(kind, inner) for kind in kinds[syntax.Unary]),
            *(st.builds(kind, inner, inner) for kind in kinds[syntax.Binary]),
            *(st.builds(kind, inner, intervals()) for kind in kinds[syntax.TimedUnary]),
            *(st.builds(kind, inner, inner, intervals()) for kind in kinds[syntax.TimedBinary]),
        )

    return st.recursive(leaf, extend, max_leaves=12)


@given(formulas())
def test_print_and_parse_round_trip(formula):
    assert parse_formula(format_formula(formula)) == formula


@pytest.mark.parametrize(
    "text",
    [
        "always(a implies eventually[0:2](b))",
        "a and (b or c)",
        "(a implies b) implies c",
        "always[0:500 ms](speed > 0.5)",
        "a until[1:3 steps] b",
        "historically[2:inf](a)",
        "eventually[0 ms:2 s](a)",
    ],
)
def test_normal_text_is_kept(text):
    assert format_formula(parse_formula(text)) == text
