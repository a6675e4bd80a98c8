"""Whether two formulas mean the same, against all short traces evaluated by the definition."""

from __future__ import annotations

import pytest
from extent import examples
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from trace_semantics import formulas, holds, traces

from forewarn.logic import syntax
from forewarn.logic.syntax import format_formula
from forewarn.wings.plans.equivalence.decision import Verdict, compare
from forewarn.wings.plans.notations.reader import read_formula

ATOMS = ("a", "b")
LENGTH = 2


@pytest.mark.parametrize("finite", [False, True], ids=["infinite", "finite"])
@pytest.mark.parametrize("past", [False, True], ids=["ahead", "back"])
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_trace_is_a_shortest_one_that_tells_two_formulas_apart(
    past: bool, finite: bool, data
) -> None:
    first, second = (data.draw(formulas(ATOMS, past=past)) for _ in range(2))
    note(f"{format_formula(first)}   {format_formula(second)}")
    found = compare(first, second, finite=finite)
    assert found.verdict is not Verdict.UNDECIDED
    size = LENGTH + 1
    if found.trace is not None:
        assert found.shortest
        size = len(found.trace.letters)
        assert holds(first, *found.trace) == (found.holds == "first")
        assert holds(second, *found.trace) == (found.holds == "second")
    for length in range(1, min(size, LENGTH + 1)):
        for letters, loop in traces(ATOMS, length, finite=finite):
            assert holds(first, letters, loop) == holds(second, letters, loop), (letters, loop)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(formulas(ATOMS, leaves=8), st.booleans())
def test_a_formula_is_equivalent_to_what_its_definition_unfolds_to(formula, finite: bool) -> None:
    until = syntax.Until(syntax.Atom("a"), formula)
    unfolded = syntax.Or(formula, syntax.And(syntax.Atom("a"), syntax.Next(until)))
    assert compare(until, unfolded, finite=finite).verdict is Verdict.EQUIVALENT


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(formulas(ATOMS, leaves=5, past=True), st.booleans())
def test_what_looks_back_is_equivalent_to_what_its_definition_unfolds_to(
    formula, finite: bool
) -> None:
    since = syntax.Since(syntax.Atom("a"), formula)
    unfolded = syntax.Or(formula, syntax.And(syntax.Atom("a"), syntax.StrongPrevious(since)))
    pair = (syntax.Always(part) for part in (since, unfolded))
    assert compare(*pair, finite=finite, effort=300_000).verdict is not Verdict.NOT_EQUIVALENT


@pytest.mark.parametrize(
    ("first", "second", "positions"),
    [
        ("G a", "a & X a & XX a & XXX a", 5),
        ("G(a -> X !a & XX !a & XXX !a & XXXX a) & a", "0", 4),
        ("F(a & X F(a & X F(a & X F a)))", "F(a & X F(a & X F(a & X F(a & X F a))))", 5),
        ("a U b", "a W b", 1),
        ("F G a", "G F a", 2),
    ],
)
def test_the_shortest_lasso_has_as_many_positions_as_counting_says(
    first: str, second: str, positions: int
) -> None:
    found = compare(read_formula(first).formula, read_formula(second).formula)
    assert found.trace is not None
    assert (len(found.trace.letters), found.shortest) == (positions, True)
