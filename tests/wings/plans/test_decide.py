"""Decisions over finite traces against the meaning of the operators, word by word."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.logic import syntax
from forewarn.logic.parser import parse_formula
from forewarn.logic.syntax import Atom, Constant, Formula, in_steps
from forewarn.signals.clock_kinds import Steps as StepClock
from forewarn.wings.plans.decide import decide, of_truth

CLOCK = StepClock()
Trace = tuple[frozenset[str], ...]


def holds(formula: Formula, trace: Trace, t: int) -> bool:
    """Tell the truth at a position of a finite trace, by the definitions."""
    if isinstance(formula, Constant):
        return formula.value
    if isinstance(formula, Atom):
        return formula.text in trace[t]
    n = len(trace)

    def at(part: Formula, k: int) -> bool:
        return holds(part, trace, k)

    if isinstance(formula, syntax.Unary):
        part = formula.operand
        if isinstance(formula, syntax.Not):
            return not at(part, t)
        if isinstance(formula, (syntax.Next, syntax.StrongNext)):
            return t + 1 < n and at(part, t + 1)
        if isinstance(formula, syntax.Previous):
            return t == 0 or at(part, t - 1)
        if isinstance(formula, syntax.StrongPrevious):
            return t > 0 and at(part, t - 1)
        if isinstance(formula, syntax.Rise):
            return at(part, t) and (t == 0 or not at(part, t - 1))
        return not at(part, t) and (t == 0 or at(part, t - 1))
    if isinstance(formula, syntax.Binary):
        left, right = at(formula.left, t), at(formula.right, t)
        return {
            syntax.And: left and right,
            syntax.Or: left or right,
            syntax.Implies: not left or right,
            syntax.Iff: left == right,
            syntax.Xor: left != right,
        }[type(formula)]
    steps = in_steps(formula.interval, CLOCK)
    upper = n if steps.upper is None else steps.upper
    ahead = [k for k in range(t + steps.lower, t + upper + 1) if k < n]
    behind = [k for k in range(t - upper, t - steps.lower + 1) if k >= 0]
    if isinstance(formula, syntax.Always):
        return all(at(formula.operand, k) for k in ahead)
    if isinstance(formula, syntax.Eventually):
        return any(at(formula.operand, k) for k in ahead)
    if isinstance(formula, syntax.Historically):
        return all(at(formula.operand, k) for k in behind)
    if isinstance(formula, syntax.Once):
        return any(at(formula.operand, k) for k in behind)
    until = any(
        at(formula.right, k) and all(at(formula.left, j) for j in range(t, k)) for k in ahead
    )
    if isinstance(formula, syntax.Until):
        return until
    if isinstance(formula, syntax.Unless):
        return until or all(at(formula.left, k) for k in range(t, min(t + upper, n - 1) + 1))
    return any(
        at(formula.right, k) and all(at(formula.left, j) for j in range(k + 1, t + 1))
        for k in behind
    )


def decisions(formula: Formula, trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    n = len(trace)
    found = decide(
        formula,
        n,
        lambda atom: of_truth(np.array([atom.text in letter for letter in trace]), n),
        lambda interval: in_steps(interval, CLOCK),
    )
    return tuple(np.broadcast_to(part, (n,)) for part in found)  # type: ignore[return-value]


letters = st.sets(st.sampled_from("ab")).map(frozenset)
bounds = st.one_of(
    st.just(""),
    st.tuples(st.integers(0, 3), st.integers(0, 4)).map(lambda b: f"[{b[0]}:{b[0] + b[1]}]"),
    st.integers(0, 3).map(lambda b: f"[{b}:inf]"),
)
PREFIX = ["not", "next", "prev", "s_prev", "rise", "fall"]
TIMED = ["always", "eventually", "historically", "once"]


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(st.sampled_from(PREFIX), inner).map(lambda p: f"{p[0]}({p[1]})"),
        st.tuples(st.sampled_from(TIMED), bounds, inner).map(lambda p: f"{p[0]}{p[1]}({p[2]})"),
        st.tuples(inner, st.sampled_from(["and", "or", "implies", "iff", "xor"]), inner).map(
            lambda p: f"({p[0]}) {p[1]} ({p[2]})"
        ),
        st.tuples(inner, st.sampled_from(["until", "unless", "since"]), bounds, inner).map(
            lambda p: f"({p[0]}) {p[1]}{p[2]} ({p[3]})"
        ),
    )


formulas = st.recursive(st.sampled_from(["a", "b", "true", "false"]), larger, max_leaves=5)


@given(text=formulas, trace=st.lists(letters, min_size=1, max_size=7))
def test_truth_is_that_of_the_definitions(text: str, trace: list[frozenset[str]]) -> None:
    formula = parse_formula(text, unit="steps")
    true, false = decisions(formula, tuple(trace))
    for t in range(len(trace)):
        truth = holds(formula, tuple(trace), t)
        assert (true[t] <= len(trace)) == truth, (t, text)
        assert (false[t] <= len(trace)) == (not truth), (t, text)


LETTERS = tuple(frozenset(c) for n in range(3) for c in itertools.combinations("ab", n))


@settings(max_examples=examples(50), deadline=None)
@given(text=formulas, trace=st.lists(letters, min_size=1, max_size=4))
def test_what_is_decided_before_the_end_holds_however_the_trace_goes_on(
    text: str, trace: list[frozenset[str]]
) -> None:
    formula = parse_formula(text, unit="steps")
    true, false = decisions(formula, tuple(trace))
    n = len(trace)
    if min(true[0], false[0]) >= n:
        return
    seen = tuple(trace[: max(0, min(true[0], false[0])) + 1])
    for more in range(3):
        for rest in itertools.product(LETTERS, repeat=more):
            assert holds(formula, seen + rest, 0) == (true[0] < n), (text, rest)


@pytest.mark.parametrize(
    ("text", "trace", "false"),
    [
        ("always(not a)", "..a.", 2),
        ("always(a implies eventually[0:2](b))", "a...", 2),
        ("always(a implies eventually(b))", "a...", 4),
        ("always(a implies next(b))", "..a.", 3),
        ("always(a implies next(b))", "...a", 4),
        ("not a until b", "..a.b", 2),
        ("always(a implies once(b))", ".b..a", 6),
        ("always(a implies once(b))", "..a.b", 2),
    ],
)
def test_the_step_that_breaks_a_rule(text: str, trace: str, false: int) -> None:
    letters = tuple(frozenset() if c == "." else frozenset(c) for c in trace)
    assert decisions(parse_formula(text, unit="steps"), letters)[1][0] == false
