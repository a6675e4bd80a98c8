"""A property is explained in words and drawn so that a long countdown stays readable."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.logic.compilation import compile_formula
from forewarn.logic.explanation import explain, graph_of, guard_text
from forewarn.logic.nodes import truth_table
from forewarn.logic.parser import parse_formula


def explained(text: str, rate: float = 10.0):
    formula = parse_formula(text)
    return explain(formula, compile_formula(formula, rate))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("always(not p)", "At every tick: 'p' does not hold."),
        ("always(a implies eventually[0:2](b))",
         "At every tick: if 'a' holds, then 'b' holds within 2 s."),
        ("always(rise(a) implies eventually[1:2](b))",
         "At every tick: if 'a' begins to hold, then 'b' holds at some time 1 s to 2 s later."),
        ("always(fall(a) implies always[0:3 steps](b))",
         "At every tick: if 'a' ceases to hold, then 'b' holds for the next 3 steps."),
        ("always(a implies b unless c)",
         "At every tick: if 'a' holds, then 'b' holds for as long as 'c' does not."),
        ("always(a implies (b until[0:2] c))",
         "At every tick: if 'a' holds, then 'c' holds within 2 s, and 'b' holds until then."),
        ("always(a implies once[0:500 ms](b))",
         "At every tick: if 'a' holds, then 'b' has held within the last 500 ms."),
        ("always(a implies historically[1:2](b))",
         "At every tick: if 'a' holds, then 'b' has held from 1 s to 2 s ago."),
        ("always(a) and always(next(b))",
         "At every tick: 'a' holds.\nAt every tick: one tick later, 'b' holds."),
        ("eventually[0:2](a)", "From the first tick of an episode: 'a' holds within 2 s."),
    ],
)  # fmt: skip
def test_words_say_what_is_monitored(text, sentence):
    assert explained(text).words.startswith(sentence + "\n")


def test_words_say_how_the_automaton_decides():
    words = explained("always(a implies eventually[0:2](b))").words
    assert "22 states" in words
    assert "distinguishes 3 cases of" in words
    assert "counts down the ticks that may still pass, from 20" in words
    assert "can never be violated" in explained("always(a or not a)").words
    assert "satisfied for the rest of an episode" in explained("eventually[0:2](a)").words


def test_a_long_countdown_becomes_four_nodes():
    formula = parse_formula("always(a implies eventually[0:100](b))")
    graph = graph_of(compile_formula(formula, 10.0))
    assert list(graph.labels.values()) == [
        "idle", "waiting 1", "waiting 2 ... waiting 999", "waiting 1000", "violated",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["always(a implies eventually[100 ms:40 s](b))", "always(a implies always[0:40](b))",
     "always(once[0:30](a) implies b)", "always(a implies (b until[0:50] c))"],
)  # fmt: skip
def test_countdowns_of_other_formulas_are_folded_too(text):
    formula = parse_formula(text)
    automaton = compile_formula(formula, 10.0)
    assert automaton.n_states > 300
    assert len(graph_of(automaton).labels) <= 6


def test_of_a_large_automaton_the_beginning_is_drawn():
    text = "always(a implies eventually[0:5](b)) and always(c implies always[0:20](d))"
    formula = parse_formula(text)
    automaton = compile_formula(formula, 10.0)
    graph = graph_of(automaton)
    assert automaton.n_states > 10_000
    assert len(graph.labels) <= 62
    assert re.fullmatch(r"\.\.\. \d+ more", list(graph.labels.values())[-1])


@pytest.mark.parametrize(
    "text", ["always(a implies eventually[0:3 steps](b))", "always(rise(a) implies next(b))",
             "always(a xor b) and eventually[0:2 steps](c)", "a unless b"],
)  # fmt: skip
def test_guards_of_a_state_partition_the_letters(text):
    automaton = compile_formula(parse_formula(text), 1.0)
    graph = graph_of(automaton)
    covered: dict[int, np.ndarray] = {}
    for (source, _), guard in graph.edges.items():
        letters = truth_table(parse_formula(guard), automaton.atoms).astype(int)
        covered[source] = covered.get(source, 0) + letters
    assert len(covered) == len(graph.labels) - sum(
        state is not None for state in (automaton.violated, automaton.satisfied)
    )
    for count in covered.values():
        assert (count == 1).all()


def test_dot_and_mermaid_have_the_same_edges():
    explanation = explained("always(a and ttc < 1 implies eventually[0:2](b))")
    dot = re.findall(r'^  (q\d+) -> (q\d+) \[label="(.*)"\];$', explanation.dot, re.M)
    mermaid = re.findall(r'^  (q\d+) -->\|"(.*)"\| (q\d+)$', explanation.mermaid, re.M)
    plain = [(a, b, text.replace("&lt;", "<")) for a, text, b in mermaid]
    assert plain == dot
    assert ("q0", "q20", "a and ttc < 1 and not b") in dot
    assert explanation.dot.count("{") == explanation.dot.count("}")
    assert 'label="violated", color=' in explanation.dot


@given(st.integers(0, 2**16 - 1))
def test_guard_text_means_the_set(bits):
    letters = np.array([bool(bits >> i & 1) for i in range(16)])
    atoms = ("a", "b", "ttc < 1", "d")
    text = guard_text(letters, atoms)
    np.testing.assert_array_equal(truth_table(parse_formula(text), atoms), letters)
