"""Automata against the definition of the semantics, on all traces up to a length."""

from __future__ import annotations

import numpy as np
import pytest
from extent import examples
from formula_semantics import ATOMS, all_traces, evaluate, safety_formulas
from hypothesis import HealthCheck, assume, given, note, settings

from forewarn.errors import FormulaError
from forewarn.logic import syntax
from forewarn.logic.compilation import compile_formula
from forewarn.logic.parser import parse_formula
from forewarn.logic.syntax import format_formula

TRACES = {n: all_traces(length, n) for n, length in ((1, 11), (2, 7))}


def states_along(automaton, letters: np.ndarray, atoms: tuple[str, ...]) -> np.ndarray:
    """Return the state after each tick, (traces, ticks)."""
    bits = sum(
        ((letters >> atoms.index(atom)) & 1) << i for i, atom in enumerate(automaton.atoms)
    ) + np.zeros_like(letters)
    classes = automaton.letter_class[bits]
    state = np.full(len(letters), automaton.initial)
    columns = []
    for column in classes.T:
        state = automaton.transitions[state, column]
        columns.append(state)
    return np.stack(columns, axis=1)


def check(formula, letters: np.ndarray, n_atoms: int, look_ahead: int) -> None:
    """Compare the verdict after each prefix with all its continuations in `letters`."""
    atoms = ATOMS[:n_atoms]
    may_hold = evaluate(formula, letters, atoms).may[:, 0]
    length = letters.shape[1]
    try:
        automaton = compile_formula(formula, 1.0, max_states=3000)
    except FormulaError as error:
        assume("more than" not in error.problem)
        assert error.problem == "no run satisfies the formula"
        assert not may_hold.any()
        return
    states = states_along(automaton, letters, atoms)
    size = 1 << n_atoms
    for ticks in range(1, length + 1):
        continuations = may_hold.reshape(size**ticks, -1)
        inevitable, impossible = ~continuations.any(axis=1), continuations.all(axis=1)
        state = states[:, ticks - 1].reshape(size**ticks, -1)[:, 0]
        violated = (
            np.full(len(state), False)
            if automaton.violated is None
            else (state == automaton.violated)
        )
        satisfied = (
            np.full(len(state), False)
            if automaton.satisfied is None
            else (state == automaton.satisfied)
        )
        # What is inevitable on all short continuations is so on all infinite ones.
        assert not (inevitable & ~violated).any(), f"missed after {ticks} ticks"
        assert not (satisfied & ~impossible).any(), f"satisfied too early, {ticks} ticks"
        if length - ticks >= look_ahead:
            assert (inevitable == violated).all(), f"violated too early, {ticks} ticks"
            assert (impossible == satisfied).all(), f"not satisfied after {ticks} ticks"


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(safety_formulas(leaves=4, longest=2, atoms=("a",)))
def test_one_atom(formula):
    note(format_formula(formula))
    check(formula, TRACES[1], 1, look_ahead=8)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(safety_formulas(leaves=4, longest=1))
def test_two_atoms(formula):
    note(format_formula(formula))
    check(formula, TRACES[2], 2, look_ahead=5)


@pytest.mark.parametrize(
    "text",
    [
        "always(not a)",
        "always(a implies b)",
        "always(a implies eventually[0:2](b))",
        "always(a implies eventually[1:2](b))",
        "always(a implies always[0:2](b))",
        "always(rise(a) implies eventually[0:2](b))",
        "always(fall(a) implies next(b))",
        "always(a implies (not b until[0:2] b))",
        "always(a implies b unless a)",
        "always(a implies always(b))",
        "always(a implies once[0:2](b))",
        "always(a implies historically[1:2](b))",
        "always(b implies (b since[0:3] a))",
        "always(a since b or not a)",
        "always(once(eventually[0:1](a)) implies b)",
        "always(historically[0:1](next(a)) implies b)",
        "always(prev(eventually[0:1](a)) implies b)",
        "always(once[1:inf](eventually[0:1](a)) implies b)",
        "always(b implies historically[1:inf](next(a)))",
        "always(b implies (a since[1:inf] next(a)))",
        "always(a implies eventually[0:1](b)) and always(b implies eventually[0:1](a))",
        "always(a implies eventually[0:1](b)) and always(not b)",
        "eventually[0:2](a and next(b))",
        "a implies eventually[0:2](b)",
        "always[1:inf](a or b)",
        "b or always(a)",
        "always(b) or always(a)",
    ],
)
def test_typical_formulas(text):
    check(parse_formula(text), TRACES[2], 2, look_ahead=4)


@pytest.mark.parametrize(
    "text",
    [
        "always[0:1](a) or eventually[3:4](a)",
        "always(not a or always[1:2](a) or eventually[4:5](a))",
        "always(a implies (eventually[2:3](a) and always[1:2](not a)))",
        "always(once[2:4](a) implies not a)",
        "always(a implies (rise(a) or (a since[2:inf] rise(a))))",
        "always[0:3](a) unless[1:2] not a",
    ],
)
def test_windows_that_do_not_meet(text):
    check(parse_formula(text), TRACES[1], 1, look_ahead=6)


def test_the_reference_itself_knows_the_first_tick():
    letters = np.array([[1, 0, 1]])
    expected = {
        "rise(a)": [1, 0, 1], "fall(a)": [0, 1, 0], "prev(a)": [1, 1, 0], "s_prev(a)": [0, 1, 0],
        "once[1:1](a)": [0, 1, 0], "historically[1:1](a)": [1, 1, 0], "a since a": [1, 0, 1],
    }  # fmt: skip
    for text, values in expected.items():
        assert evaluate(parse_formula(text), letters).must.astype(int).tolist() == [values]


def test_walk_reaches_every_part():
    formula = parse_formula("always(a implies eventually[0:2](b))")
    assert [type(part).__name__ for part in syntax.walk(formula)] == [
        "Always", "Implies", "Atom", "Eventually", "Atom",
    ]  # fmt: skip
