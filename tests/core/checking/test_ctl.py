"""CTL with bounds against its meaning, by recursion over every step that a graph allows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from forewarn.checking.ctl import CtlFormula, evaluate, names_in, parse
from forewarn.errors import CheckingError
from forewarn.signals.clock_kinds import Grid

N = 4


def until(
    formula: CtlFormula,
    node: int,
    left: int,
    upper: int,
    edges: np.ndarray,
    names: dict,
    every: bool,
) -> bool:
    """Tell whether `upper` steps or fewer, and `left` or more, bring the right side."""
    p, q = (
        formula.operands
        if len(formula.operands) == 2
        else (CtlFormula("true"), formula.operands[0])
    )
    if left <= 0 and means(q, node, edges, names):
        return True
    if upper == 0 or not means(p, node, edges, names):
        return False
    following = np.flatnonzero(edges[node]).tolist()
    answers = [until(formula, k, left - 1, upper - 1, edges, names, every) for k in following]
    return all(answers) if every else any(answers)


def means(formula: CtlFormula, node: int, edges: np.ndarray, names: dict) -> bool:
    """Tell the truth at a node; what is unbounded is bounded by enough steps for `N` nodes."""
    operator, parts = formula.operator, formula.operands
    if operator == "name":
        return bool(names[formula.name][node])
    if operator in ("true", "false"):
        return operator == "true"
    if operator == "!":
        return not means(parts[0], node, edges, names)
    if operator in ("&", "|"):
        answers = [means(part, node, edges, names) for part in parts]
        return all(answers) if operator == "&" else any(answers)
    if operator in ("AX", "EX"):
        answers = [means(parts[0], k, edges, names) for k in np.flatnonzero(edges[node])]
        return all(answers) if operator == "AX" else any(answers)
    if operator in ("AG", "EG"):
        dual = CtlFormula(
            "EF" if operator == "AG" else "AF", (CtlFormula("!", parts),), interval=formula.interval
        )
        return not means(dual, node, edges, names)
    low, high = 0, N
    if formula.interval is not None:
        low = int(formula.interval.lower.value)
        upper = formula.interval.upper
        high = low + N if upper is None else int(upper.value)
    return until(formula, node, low, high, edges, names, operator[0] == "A")


bounds = st.sampled_from(["", "[<=2]", "[1:2]", "[0:1]", "[2:inf]", "<=1"])
quantifiers = st.sampled_from("AE")
formulas = st.recursive(
    st.sampled_from(["p", "q", "true"]),
    lambda inner: st.one_of(
        inner.map(lambda f: f"!({f})"),
        st.tuples(inner, st.sampled_from("&|"), inner).map(lambda f: f"({f[0]}) {f[1]} ({f[2]})"),
        st.tuples(quantifiers, inner).map(lambda f: f"{f[0]}X ({f[1]})"),
        st.tuples(quantifiers, st.sampled_from("GF"), bounds, inner).map(
            lambda f: f"{f[0]}{f[1]}{f[2]} ({f[3]})"
        ),
        st.tuples(quantifiers, inner, bounds, inner).map(
            lambda f: f"{f[0]} [({f[1]}) U{f[2]} ({f[3]})]"
        ),
    ),
    max_leaves=3,
)


@given(text=formulas, drawn=st.integers(0, 2**32 - 1))
def test_labels_are_what_formulas_mean(text: str, drawn: int) -> None:
    rng = np.random.default_rng(drawn)
    edges = rng.random((N, N)) < 0.3
    edges[np.arange(N), rng.integers(0, N, size=N)] = True
    names = {"p": rng.random(N) < 0.6, "q": rng.random(N) < 0.4}
    formula = parse(text)
    found = evaluate(formula, names.__getitem__, sparse.csr_matrix(edges.astype(float)))
    assert found.tolist() == [means(formula, node, edges, names) for node in range(N)], text


def test_bounds_in_seconds_are_those_of_the_clock() -> None:
    line = sparse.csr_matrix(np.diag(np.ones(29), 1) + np.diag([0.0] * 29 + [1.0]))
    there = np.arange(30) == 20
    for text, reached in (("AF[<=1] p", 10), ("AF[<=0.5 s] p", 15), ("AF[<=3 steps] p", 17)):
        found = evaluate(parse(text, "s"), lambda name: there, line, Grid(10.0))
        assert np.flatnonzero(found)[0] == reached, text
    with pytest.raises(CheckingError, match="the clock is steps"):
        evaluate(parse("AF[<=1 s] p"), lambda name: there, line)


@pytest.mark.parametrize(
    "text",
    ["AF[<=] p", "AF[2] p", "AF[2:1] p", "A [p U[1:] q]", "AG", "AF<= p", "(" * 3000,
     "!" * 3000 + "p", "p & " * 90_000 + "p", "EX p q"],
)  # fmt: skip
def test_what_is_no_formula_says_where(text: str) -> None:
    line = sparse.csr_matrix(np.ones((1, 1)))
    with pytest.raises(CheckingError):
        evaluate(parse(text), lambda name: np.ones(1, dtype=bool), line)


def test_names_may_hold_any_character() -> None:
    assert names_in(parse('AG ("on(Stove)" => AF[<=2] !"on(Stove)") & ttc<1')) == {
        "on(Stove)",
        "ttc<1",
    }
