"""Automata and reference semantics against RTAMT's discrete-time offline robustness.

Signals are +1 where a predicate holds and -1 where it does not: the sign of the robustness is
the truth value wherever the window of the formula lies within the trace.
"""

from __future__ import annotations

import logging

import numpy as np
import pytest
from extent import examples
from formula_semantics import ATOMS, bounded_formulas, evaluate
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from forewarn.errors import FormulaError
from forewarn.logic import syntax
from forewarn.logic.automaton import letter_of, step
from forewarn.logic.compilation import compile_formula
from forewarn.logic.syntax import Bound, Constant, Interval, format_formula
from forewarn.wings.plans.equivalence.decision import compare

rtamt = pytest.importorskip(
    "rtamt", reason="RTAMT is not installed (pip install -r requirements/oracles.txt)"
)

LENGTH = 14  # longer than any bound: RTAMT lengthens its inputs in place otherwise


def in_rtamts_words(formula):
    """Rewrite what RTAMT cannot parse or whose robustness is 0: literals, iff, xor, 'inf'."""
    if isinstance(formula, Constant):
        name = syntax.Atom(ATOMS[0])
        kind = syntax.Or if formula.value else syntax.And
        return kind(name, syntax.Not(name))
    if isinstance(formula, syntax.Atom):
        return formula
    parts = [in_rtamts_words(part) for part in syntax.operands(formula)]
    if isinstance(formula, (syntax.Iff, syntax.Xor)):
        same = syntax.And(syntax.Implies(*parts), syntax.Implies(*parts[::-1]))
        return same if isinstance(formula, syntax.Iff) else syntax.Not(same)
    if isinstance(formula, (syntax.TimedUnary, syntax.TimedBinary)):
        return type(formula)(*parts, _in_seconds(formula.interval))
    return type(formula)(*parts)


def _in_seconds(interval):
    if interval is None:
        return None
    upper = interval.upper or Bound(float(LENGTH - 1))
    return Interval(Bound(interval.lower.value), Bound(upper.value))


@pytest.fixture(autouse=True)
def quiet() -> None:
    """Keep out what RTAMT logs; `levels_of_logs` gives the level back."""
    logging.getLogger().setLevel(logging.ERROR)


def robustness(text: str, letters: np.ndarray) -> np.ndarray:
    """Return RTAMT's robustness of a formula at every tick."""
    specification = rtamt.StlDiscreteTimeOfflineSpecification()
    data = {"time": list(range(len(letters)))}
    for i, name in enumerate(ATOMS):
        specification.declare_var(name, "float")
        data[name] = [1.0 if bit else -1.0 for bit in letters >> i & 1]
    specification.declare_var("out", "float")
    specification.spec = f"out = {text}"
    specification.parse()
    return np.array([value for _, value in specification.evaluate(data)])


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(bounded_formulas(leaves=4, longest=2), bounded_formulas(leaves=4, longest=2))
def test_exactly_one_of_two_formulas_holds_on_the_trace_that_tells_them_apart(first, second):
    delayed = Interval(Bound(2.0), Bound(2.0))  # so that there is something to look back at
    pair = [syntax.Eventually(formula, delayed) for formula in (first, second)]
    found = compare(*pair, rate=1.0)
    assume(found.trace is not None)
    held, loop = found.trace.letters, found.trace.loop
    places = [i if i < len(held) else loop + (i - loop) % (len(held) - loop) for i in range(LENGTH)]
    letters = np.array([sum((n in held[i]) << k for k, n in enumerate(ATOMS)) for i in places])
    known = [evaluate(formula, letters[None]) for formula in pair]
    assume(all(value.must[0, 0] == value.may[0, 0] for value in known))
    texts = [format_formula(in_rtamts_words(formula)) for formula in pair]
    note(f"{texts} {found.trace}")
    positive = [bool(robustness(text, letters)[0] > 0) for text in texts]
    assert positive == [found.holds == "first", found.holds == "second"]


traces = st.lists(st.integers(0, 3), min_size=LENGTH, max_size=LENGTH).map(np.array)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(bounded_formulas(leaves=5), traces)
def test_reference_semantics_agree_on_the_sign(formula, letters):
    text = format_formula(in_rtamts_words(formula))
    note(text)
    ours = evaluate(formula, letters[None])
    known = ours.must[0] == ours.may[0]
    theirs = robustness(text, letters)
    assert (theirs != 0).all()
    np.testing.assert_array_equal(theirs[known] > 0, ours.must[0][known])


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(bounded_formulas(leaves=4, longest=2), traces)
def test_monitors_are_violated_when_the_robustness_is_negative(formula, letters):
    text = format_formula(in_rtamts_words(formula))
    note(text)
    known = evaluate(formula, letters[None])
    resolved = known.must[0] == known.may[0]
    negative = (robustness(text, letters) < 0) & resolved
    try:
        automaton = compile_formula(syntax.Always(formula), 1.0, max_states=3000)
    except FormulaError as error:
        assume("more than" not in error.problem)
        assert negative.any()
        return
    state, violated = automaton.initial, []
    for letter in letters.tolist():
        holding = [name for i, name in enumerate(ATOMS) if letter >> i & 1]
        state = step(automaton, state, letter_of(automaton, holding))
        violated.append(state == automaton.violated)
    if negative.any():
        assert violated[-1]
    # Whatever is violated early shows in the robustness before the trace ends.
    if violated[LENGTH // 2]:
        assert negative.any()
