"""Whether two formulas mean the same: what is told, what it costs, and where it gives up."""

from __future__ import annotations

import random
import time

import pytest
from extent import WHOLE

from forewarn.errors import FormulaError
from forewarn.logic.syntax import walk
from forewarn.wings.plans.equivalence.decision import Verdict, compare
from forewarn.wings.plans.equivalence.kinds import RequirementKind, kind_of
from forewarn.wings.plans.notations.reader import read_formula


def verdict(first: str, second: str, *, finite: bool = False) -> Verdict:
    return compare(read_formula(first).formula, read_formula(second).formula, finite=finite).verdict


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("!(a U b)", "!a R !b"),
        ("a W b", "!b -> (a U b) | G a"),
        ("G F a & G F b", "G(F a & F b)"),
        ("F G(a & b)", "F G a & F G b"),
        ("a U b", "b | a & X(a U b)"),
        ("F(a & F b)", "F(a & (F b))"),
        ("G(a -> b U c)", "G(!a | b U c)"),
        ("G(a -> F b) -> G F c", "F(a & G !b) | G F c"),
        ("F[0:2] a", "a | X a | XX a"),
        ("G[1:2] a", "X a & XX a"),
        ("a U[0:1] b", "b | a & X b"),
        ("a R b", "(b U (a & b)) | G b"),
    ],
)
def test_equal_on_infinite_traces(first: str, second: str) -> None:
    assert verdict(first, second) is Verdict.EQUIVALENT


def test_infinite_and_finite_traces_differ_at_the_end() -> None:
    assert verdict("X !a", "!X a") is Verdict.EQUIVALENT
    assert verdict("X !a", "!X a", finite=True) is Verdict.NOT_EQUIVALENT
    assert verdict("weak_next !a", "!X a", finite=True) is Verdict.EQUIVALENT
    # The last step is where all of these end.
    assert verdict("F G a", "G F a", finite=True) is Verdict.EQUIVALENT
    assert verdict("F G a", "G F a") is Verdict.NOT_EQUIVALENT
    assert verdict("G[1:2] a", "X a & XX a", finite=True) is Verdict.NOT_EQUIVALENT


def test_the_trace_shows_where_they_differ() -> None:
    found = compare(read_formula("G(a -> X b)").formula, read_formula("G(a -> F b)").formula)
    assert found.trace is not None
    assert str(found.trace) == "{a, b} ({}) for ever"
    assert (found.holds, found.shortest) == ("second", True)
    found = compare(read_formula("F a").formula, read_formula("a").formula, finite=True)
    assert str(found.trace) == "{} {a}"


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("G(b -> once a)", "!b W a"),
        ("G(b -> (!b since a) | historically !a)", "G(b -> (once a -> (!b since a)))"),
        ("G(b -> historically a)", "!(F(!a & F b))"),
        ("F(b & once a)", "F(a & F b)"),
        ("G(b -> once(s_prev b) | a)", "G(b -> s_prev(once b) | a)"),
        ("G rise(a)", "a & !X true | a & X false"),
        ("G(fall(a) -> b)", "G(!a & prev a -> b)"),
        ("G(once[1:2] a)", "0"),
        ("G(a since[0:1] b)", "G(b | a & s_prev b)"),
        ("G(a since[2:3] b)", "G(a & s_prev a & s_prev s_prev(b | a & s_prev b))"),
        ("once a", "a"),
    ],
)
def test_what_looks_back(first: str, second: str, finite: bool) -> None:
    assert verdict(first, second, finite=finite) is Verdict.EQUIVALENT


@pytest.mark.parametrize(
    ("first", "second", "outcome", "rate"),
    [
        ("G(a -> F[0:2 s] b)", "G(!a | F[0:2000 ms] b)", "equivalent", None),
        ("G(a -> once[0:2 s](b & c))", "!F(a & historically[0:2 s](!c | !b))", "equivalent", None),
        ("a W[1 s:2 s] b", "G[0:2 s] a | a U[1 s:2 s] b", "equivalent", None),
        ("F[0:1 s] a", "F[0:2 s] a", "not equivalent", 1.0),
        ("F[0:500 ms] a", "F[0:0.75 s] a", "not equivalent", 4.0),
        # As long as a step is as long as the window, nothing lies between its ends.
        ("F[0:2 s] a", "a | F[2 s:2 s] a", "not equivalent", 1.0),
        ("F[0:1 s] a", "a | X a", "not equivalent", 2.0),
        ("F[0:1 s] F[0:1 s] a", "F[0:2 s] a", "undecided", None),
    ],
)
def test_times_without_a_rate_are_told_for_all_rates(
    first: str, second: str, outcome: str, rate: float | None
) -> None:
    found = compare(read_formula(first).formula, read_formula(second).formula)
    assert (found.verdict.value, found.rate) == (outcome, rate)


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0, 10.0])
def test_at_a_rate_times_are_the_steps_of_the_monitor(rate: float) -> None:
    def at(first: str, second: str) -> Verdict:
        formulas = (read_formula(text).formula for text in (first, second))
        return compare(*formulas, rate=rate).verdict

    steps = int(2 * rate)
    assert at("F[0:2 s] a", f"F[0:{steps}] a") is Verdict.EQUIVALENT
    assert at("F[0:2 s] a", f"F[0:{steps + 1}] a") is Verdict.NOT_EQUIVALENT
    assert at("F[0:2.01 s] a", "F[0:2 s] a") is Verdict.EQUIVALENT
    assert at("F[0:2 s] F[0:2 s] a", "F[0:4 s] a") is Verdict.EQUIVALENT


def test_a_window_without_a_step_is_named() -> None:
    formula = read_formula("F[0.1 s:0.2 s] a").formula
    with pytest.raises(FormulaError, match="no tick at 1 Hz"):
        compare(formula, formula, rate=1.0)


def wide(n: int) -> str:
    return " & ".join(f"(a{i} U b{i})" for i in range(n))


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (" & ".join(f"G(a{i} -> F b{i})" for i in range(2_000)), "G a0"),
        (f"{wide(40)} | F x", f"F x | {wide(39)} & (b39 | (a39 & X(a39 U b39)))"),
        (" <-> ".join(f"F a{i}" for i in range(40)), " <-> ".join(f"G a{i}" for i in range(40))),
        ("X " * 150 + "a", "X " * 149 + "a"),
        ("F[0:900] G[0:900] (a U[0:900] b)", "G[0:900] F[0:900] (a U[0:900] b)"),
        ("G[0:100000] a", "a"),
        ("F(" * 60 + "a" + " & X b)" * 60, "F(" * 60 + "a" + " & b)" * 60),
        ("G(once[0:900] a & once[900:901] b)", "G(once[0:901] a)"),
        ("once(" * 60 + "a" + " since b)" * 60, "G F(" * 30 + "once b" + ")" * 30),
    ],
)
def test_hostile_formulas_end_within_the_budget(first: str, second: str, finite: bool) -> None:
    one, other = read_formula(first).formula, read_formula(second).formula
    begun = time.process_time()
    found = compare(one, other, finite=finite, effort=200_000)
    assert time.process_time() - begun < 10
    assert found.verdict is not Verdict.UNDECIDED or found.reason.startswith("too large: ")


def drawn_formula(nodes: int, drawn: random.Random) -> str:
    """Return a formula of so many leaves, of all operators, as deep as they make it."""
    if nodes <= 1:
        return drawn.choice("abcde")
    left = drawn.randint(nodes // 3, 2 * nodes // 3) or 1
    sides = drawn_formula(left, drawn), drawn_formula(nodes - left, drawn)
    operator = drawn.choice(["&", "|", "U", "W", "->", "<->", "since", "& X", "| F", "& once"])
    return f"({sides[0]}) {operator} ({sides[1]})"


def test_formulas_of_thousands_of_nodes_end() -> None:
    leaves = 4_500 if WHOLE else 1_000
    drawn = random.Random(1)
    texts = [drawn_formula(leaves, drawn) for _ in range(2)]
    first, second = (read_formula(text).formula for text in texts)
    nearly = read_formula(texts[0].replace("(a)", "(a & b)", 1)).formula
    assert sum(1 for _ in walk(first)) > 2 * leaves
    begun = time.process_time()
    assert compare(first, second, effort=500_000).verdict is Verdict.NOT_EQUIVALENT
    # Whatever it says of one small change, it says it soon.
    found = compare(first, nearly, effort=500_000)
    assert found.verdict is not Verdict.UNDECIDED or found.reason.startswith("too large: ")
    kind_of(first)
    assert time.process_time() - begun < 20


@pytest.mark.parametrize(
    ("formula", "kind"),
    [
        ("G(on -> !open)", "state invariant"),
        ("!F(on & open)", "state invariant"),
        ("G a & G !b", "state invariant"),
        ("!a U b", "ordering constraint"),
        ("F b -> (!a U b)", "ordering constraint"),
        ("!a W b", "ordering constraint"),
        ("F(a & F b)", "ordering constraint"),
        ("G(a -> F b)", "other"),
        ("G(a -> X b)", "other"),
        ("F a & F b", "other"),
        ("G F a", "other"),
        ("F G a", "other"),
        ("once a", "other"),
        ("G(b -> once a)", "ordering constraint"),
        ("G(b -> once[0:3] a)", "other"),
        ("G(a -> F[0:2 s] b)", "other"),
        ("G(rise(a) -> b)", "other"),
    ],
)
def test_kinds_of_requirements(formula: str, kind: str) -> None:
    assert kind_of(read_formula(formula).formula) is RequirementKind(kind)
