"""Automata against Spot's deterministic monitors: the same language of good runs."""

from __future__ import annotations

import pytest
from extent import examples
from formula_semantics import ATOMS, intervals
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from evaluation.translators.spots_words import INFIX, in_spots_words
from forewarn.errors import FormulaError
from forewarn.logic import syntax
from forewarn.logic.compilation import compile_formula
from forewarn.logic.parser import parse_formula
from forewarn.logic.syntax import Atom, format_formula

spot = pytest.importorskip(
    "spot", reason="Spot is not installed (pip install -r requirements/oracles.txt)"
)
buddy = pytest.importorskip("buddy")


def as_spots_automaton(automaton, dictionary):
    """Return the automaton without its violated state, every run accepting."""
    result = spot.make_twa_graph(dictionary)
    variables = [result.register_ap(atom) for atom in automaton.atoms]
    result.new_states(automaton.n_states)
    result.set_init_state(automaton.initial)
    guards = {}
    for letter, letter_class in enumerate(automaton.letter_class.tolist()):
        guard = buddy.bddtrue
        for i, variable in enumerate(variables):
            literal = buddy.bdd_ithvar(variable)
            guard &= literal if letter >> i & 1 else buddy.bdd_not(literal)
        guards[letter_class] = guards.get(letter_class, buddy.bddfalse) | guard
    for state, row in enumerate(automaton.transitions.tolist()):
        for letter_class, target in enumerate(row):
            # A bounded response has three classes even where no letter belongs to one of them.
            if automaton.violated not in (state, target) and letter_class in guards:
                result.new_edge(state, target, guards[letter_class])
    return result


def check(formula) -> None:
    """Compare our automaton with Spot's monitor of the same formula."""
    text = in_spots_words(formula)
    try:
        automaton = compile_formula(formula, 1.0)
    except FormulaError as error:
        assert error.problem == "no run satisfies the formula"
        assert spot.translate(text).is_empty()
        return
    monitor = spot.translate(text, "monitor", "deterministic")
    ours = as_spots_automaton(automaton, monitor.get_dict())
    assert spot.are_equivalent(ours, monitor)
    # Both are minimal: Spot's has no violated state, and may lack our state before the first tick.
    alive = automaton.n_states - (automaton.violated is not None)
    assert alive == monitor.num_states()


def safety_formulas():
    """Return a strategy for the future fragment."""
    leaf = st.sampled_from([Atom(name) for name in ATOMS])
    window = intervals(2)

    def grow(inner):
        return st.one_of(
            st.builds(syntax.Not, inner),
            st.builds(syntax.Next, inner),
            *(st.builds(kind, inner, inner) for kind in INFIX),
            *(st.builds(kind, inner, window) for kind in (syntax.Always, syntax.Eventually)),
            st.builds(syntax.Until, inner, inner, window),
        )

    bounded = st.recursive(leaf, grow, max_leaves=3)

    def endless(inner):
        return st.one_of(
            st.builds(syntax.Always, inner),
            st.builds(syntax.Unless, inner, inner),
            st.builds(syntax.And, inner, inner),
            st.builds(syntax.Or, inner, inner),
            st.builds(syntax.Implies, bounded, inner),
            st.builds(syntax.Next, inner),
        )

    return st.recursive(bounded, endless, max_leaves=3)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(safety_formulas())
def test_monitors_have_the_same_language(formula):
    note(f"{format_formula(formula)}\n{in_spots_words(formula)}")
    check(formula)


@pytest.mark.parametrize(
    "text",
    [
        "always(not a)",
        "always(a implies always(b))",
        "a unless b",
        "always(a implies (b unless a))",
        "always(a implies eventually[0:8](b))",
        "always(a implies eventually[2:4](b))",
        "always(a implies (not b until[0:3] b))",
        "always(a implies eventually[0:3](b)) and always(b implies always[1:2](not a))",
    ],
)
def test_typical_formulas(text):
    check(parse_formula(text))
