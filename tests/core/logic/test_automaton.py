"""What a monitor asks of an automaton when labels are unknown."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from forewarn.logic.automaton import compatible_classes, letter_of, step, successors
from forewarn.logic.compilation import compile_formula
from forewarn.logic.parser import parse_formula


@pytest.fixture
def automaton():
    return compile_formula(parse_formula("always(a and c implies eventually[0:3](b))"), 1.0)


def test_letters_are_masks_over_the_atoms(automaton):
    assert automaton.atoms == ("a", "c", "b")
    assert letter_of(automaton, {"a", "b", "unrelated"}) == 0b101


def test_nothing_known_is_compatible_with_every_class(automaton):
    assert compatible_classes(automaton, 0, 0b111) == (0, 1, 2)


def test_everything_known_leaves_one_class(automaton):
    for letter in range(8):
        expected = (int(automaton.letter_class[letter]),)
        assert compatible_classes(automaton, 0b111, letter) == expected


def test_what_is_known_restricts_the_classes(automaton):
    assert compatible_classes(automaton, 0b100, 0b100) == (2,)
    assert compatible_classes(automaton, 0b001, 0b000) == (0, 2)
    assert compatible_classes(automaton, 0b101, 0b001) == (0, 1)


def test_compatible_classes_are_those_of_all_completions(automaton):
    for known, values in itertools.product(range(8), repeat=2):
        letters = [x for x in range(8) if x & known == values & known]
        expected = tuple(sorted({int(automaton.letter_class[x]) for x in letters}))
        assert compatible_classes(automaton, known, values) == expected


def test_successors_are_all_that_one_tick_can_lead_to(automaton):
    assert successors(automaton, {0}, (0, 1, 2)) == {0, 3}
    assert successors(automaton, {0, 1}, (0,)) == {0, automaton.violated}
    assert successors(automaton, {3}, (2,)) == {0}


def test_a_known_label_moves_each_state_alone(automaton):
    for state, letter in itertools.product(range(automaton.n_states), range(8)):
        classes = compatible_classes(automaton, 0b111, letter)
        assert successors(automaton, {state}, classes) == {step(automaton, state, letter)}


def test_automata_compare_by_identity(automaton):
    other = compile_formula(parse_formula("always(a and c implies eventually[0:3](b))"), 1.0)
    assert automaton != other
    np.testing.assert_array_equal(automaton.transitions, other.transitions)
