"""What a monitor asks of an automaton when labels are unknown."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from forewarn.logic.automaton import letter_of, step, successors
from forewarn.logic.compilation import compile_formula
from forewarn.logic.parser import parse_formula


@pytest.fixture
def automaton():
    return compile_formula(parse_formula("always(a and c implies eventually[0:3](b))"), 1.0)


def test_letters_are_masks_over_the_atoms(automaton):
    assert automaton.atoms == ("a", "c", "b")
    assert letter_of(automaton, {"a", "b", "unrelated"}) == 0b101


def test_successors_are_all_that_one_tick_can_lead_to(automaton):
    assert successors(automaton, {0}, (0, 1, 2)) == {0, 3}
    assert successors(automaton, {0, 1}, (0,)) == {0, automaton.violated}
    assert successors(automaton, {3}, (2,)) == {0}


def test_a_known_label_moves_each_state_alone(automaton):
    for state, letter in itertools.product(range(automaton.n_states), range(8)):
        label = (int(automaton.letter_class[letter]),)
        assert successors(automaton, {state}, label) == {step(automaton, state, letter)}


def test_automata_compare_by_identity(automaton):
    other = compile_formula(parse_formula("always(a and c implies eventually[0:3](b))"), 1.0)
    assert automaton != other
    np.testing.assert_array_equal(automaton.transitions, other.transitions)
