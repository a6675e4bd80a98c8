"""The bounded response keeps the layered numbering that the fast solver relies on."""

from __future__ import annotations

import numpy as np
import pytest

from forewarn.logic.automaton import letter_of, restart_state, step
from forewarn.logic.compilation import compile_formula
from forewarn.logic.parser import parse_formula


def run(automaton, letters):
    """Return the states after each tick; a letter is the text of the atoms that hold."""
    states, state = [], automaton.initial
    for letter in letters:
        state = step(automaton, state, letter_of(automaton, letter.split()))
        states.append(state)
    return states


def test_states_count_down_the_ticks_that_may_still_pass():
    automaton = compile_formula(parse_formula("always(a implies eventually[0:3](b))"), 1.0)
    assert automaton.countdown == 3
    assert automaton.names == ("idle", "waiting 1", "waiting 2", "waiting 3", "violated")
    assert automaton.violated == 4
    assert automaton.satisfied is None
    assert automaton.transitions.tolist() == [[0, 3, 0], [4, 4, 0], [1, 1, 0], [2, 2, 0], [4] * 3]


@pytest.mark.parametrize("bound", [0, 1, 2, 5])
def test_an_obligation_raised_at_t_is_violated_at_t_plus_the_bound(bound):
    automaton = compile_formula(parse_formula(f"always(a implies eventually[0:{bound}](b))"), 1.0)
    assert automaton.n_states == bound + 2
    states = run(automaton, ["", "a", *[""] * (bound + 2)])
    assert states.index(automaton.violated) == 1 + bound
    answered = run(automaton, ["a", *[""] * (bound - 1), "b", "", ""] if bound else ["a b", ""])
    assert automaton.violated not in answered


def test_the_earliest_pending_obligation_decides():
    automaton = compile_formula(parse_formula("always(a implies eventually[0:3](b))"), 1.0)
    assert run(automaton, ["a", "a", "a", ""])[-1] == automaton.violated
    assert run(automaton, ["a", "a", "b", "a", "", ""])[-1] == 1


def test_a_bound_one_step_longer_gives_the_automaton_of_probguard_s_definition():
    automaton = compile_formula(parse_formula("always(a implies eventually[0:4](b))"), 1.0)
    assert automaton.n_states == 6
    assert automaton.countdown == 4
    assert run(automaton, ["a", "", "", "", ""])[3:] == [1, automaton.violated]


@pytest.mark.parametrize(
    "spelling",
    [
        "always(not a or eventually[0:2](b))",
        "G(a -> F[0,2] b)",
        "always(eventually[0:2](b) or not a)",
        "always(eventually[0:200 steps](b))",
        "always((a and c) implies (d or eventually[0:2](b or e)))",
    ],
)
def test_every_spelling_of_a_bounded_response_is_recognised(spelling):
    automaton = compile_formula(parse_formula(spelling), 100.0)
    assert automaton.countdown == 200
    assert automaton.transitions.shape == (202, 3)


@pytest.mark.parametrize(
    "other",
    ["always(not a)", "always(a implies eventually[1:2](b))", "always(a implies always[0:2](b))",
     "always(rise(a) implies eventually[0:2](b))", "always(a implies eventually[0:2](not b or b))",
     "always(a implies eventually[0:2](a and not a))", "a implies eventually[0:2](b)"],
)  # fmt: skip
def test_other_formulas_are_not_taken_for_one(other):
    assert compile_formula(parse_formula(other), 1.0).countdown is None


def test_classes_are_neither_trigger_and_response():
    automaton = compile_formula(parse_formula("always(a implies eventually[0:2](b))"), 1.0)
    assert automaton.atoms == ("a", "b")
    np.testing.assert_array_equal(automaton.letter_class, [0, 1, 2, 2])


def test_after_a_violation_the_present_tick_counts_as_the_first():
    automaton = compile_formula(parse_formula("always(a implies eventually[0:2](b))"), 1.0)
    assert [restart_state(automaton, c) for c in range(3)] == [0, 2, 0]


def test_an_invariant_is_armed_again_when_its_condition_has_cleared():
    automaton = compile_formula(parse_formula("always(not a)"), 1.0)
    holding, broken = automaton.letter_class[[0, 1]].tolist()
    assert restart_state(automaton, broken) is None
    assert restart_state(automaton, holding) == automaton.initial


def test_a_thousand_steps_compile_to_a_thousand_and_two_states():
    automaton = compile_formula(parse_formula("always(a implies eventually[0:10](b))"), 100.0)
    assert automaton.n_states == 1002
