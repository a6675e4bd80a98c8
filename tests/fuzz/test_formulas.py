"""Formulas: whatever is written, a FormulaError or an automaton of bounded size."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import strategies as st
from mutations import changed_text, soup

from forewarn.errors import ForewarnError, FormulaError
from forewarn.logic.compilation import compile_formula
from forewarn.logic.explanation import explain
from forewarn.logic.parser import parse_formula
from forewarn.logic.syntax import format_formula

EXAMPLES = (
    "always(p implies eventually[0:2](q))",
    "always((p and speed > 0.5) implies (q until[0:1] not r))",
    "always(rise(p) implies once[0:500ms](q) or historically[1:3 steps](r))",
    "always(p since q implies prev(r) xor next(p))",
    "G(p -> F[0,1] (q && !r)) and always(not 0 < abs(x - y) <= 5)",
    "p unless[0:2] q",
    "always(eventually[0.2:0.5](always[0:3 steps] p))",
)
WORDS = (
    "always", "eventually", "historically", "once", "until", "unless", "since", "next", "prev",
    "s_next", "s_prev", "rise", "fall", "not", "and", "or", "implies", "iff", "xor", "true",
    "false", "p", "q", "r", "speed > 0.5", "x", "(", ")", "[", "]", "[0:1]", "[1:2 steps]",
    "[0:inf]",
    "[0:1e300]", "[0:1000000000]", "[0:500ms]", ":", ",", "->", "<->", "!", "&&", "||", "G",
    "F[0:2]",
    "X", "H", "O", "S", "U[0:1]", "W", "0", "1e999", "'text'", "\u2192", "\n", "#", "//",
)  # fmt: skip
UNARY = ("always", "eventually", "historically", "once", "not", "next", "prev", "rise", "s_next")
BINARY = ("until", "unless", "since", "and", "or", "implies", "iff", "xor")
TIMED = {"always", "eventually", "historically", "once", "until", "unless", "since"}
BOUNDS = ("", "[0:3 steps]", "[1:2 steps]", "[0:0]", "[0:0.4]", "[2 steps:inf]", "[0:40 steps]")


def tree(random: Random, depth: int = 4) -> str:
    """Return a formula."""
    kind = random.randrange(3) if depth else 0
    if kind == 0:
        return random.choice(("p", "q", "r", "speed > 0.5", "true", "false"))
    word = random.choice(UNARY if kind == 1 else BINARY)
    bound = random.choice(BOUNDS) if word in TIMED else ""
    first = tree(random, depth - 1)
    if kind == 1:
        return f"{word}{bound}({first})"
    return f"({first}) {word}{bound} ({tree(random, depth - 1)})"


TREES = st.randoms(use_true_random=True).map(tree)  # drawing each node would be ten times slower
CASES = st.tuples(
    st.one_of(
        TREES,
        TREES.map(lambda text: f"always({text})"),
        changed_text(EXAMPLES, WORDS),
        soup(WORDS),
        st.text(max_size=40),
    ),
    st.sampled_from([0.1, 1.0, 10.0, 100.0]),
)


def check(case: tuple[str, float]) -> None:
    text, rate = case
    try:
        formula = parse_formula(text)
    except FormulaError as error:
        assert str(error)
        return
    assert parse_formula(format_formula(formula)) == formula
    try:
        automaton = compile_formula(formula, rate, max_states=500)
    except ForewarnError as error:
        assert str(error)
        return
    states, classes = automaton.transitions.shape
    assert automaton.transitions.min() >= 0
    assert automaton.transitions.max() < states
    assert automaton.letter_class.max() < classes
    for absorbing in (automaton.violated, automaton.satisfied):
        if absorbing is not None:
            assert np.all(automaton.transitions[absorbing] == absorbing)
    explain(formula, automaton)


def test_formulas(fuzz):
    fuzz(CASES, check)
