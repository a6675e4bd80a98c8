"""Formulas are read as RTAMT reads them, and errors say where and what instead."""

from __future__ import annotations

import pytest

from forewarn.errors import FormulaError
from forewarn.logic.parser import parse_formula
from forewarn.logic.syntax import Atom, Bound, Eventually, Interval, atoms_of, format_formula


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a or b and c", "a or (b and c)"),
        ("a and b or c", "(a and b) or c"),
        ("not a and b", "(not(a)) and b"),
        ("always a and b", "(always(a)) and b"),
        ("always[0:1] a implies b", "(always[0:1](a)) implies b"),
        ("a implies b and c", "a implies (b and c)"),
        ("a iff b implies c", "a iff (b implies c)"),
        ("a xor b iff c", "a xor (b iff c)"),
        ("a and b until[0:1] c", "a and (b until[0:1] c)"),
        ("a until[0:1] b or c", "(a until[0:1] b) or c"),
        ("not a until[0:1] b", "(not(a)) until[0:1] b"),
        ("a since b until[0:1] c", "a since (b until[0:1] c)"),
        ("a since b unless c", "a since (b unless c)"),
        ("prev a or b", "(prev(a)) or b"),
        ("not speed > 0.5", "not(speed > 0.5)"),
        ("speed + 1 > 0 and b", "(speed + 1 > 0) and b"),
        ("!a & b | c -> a", "(((not(a)) and b) or c) implies a"),
        ("a && b || c <-> a", "((a and b) or c) iff a"),
        ("G F[0,2] a", "always(eventually[0:2](a))"),
        ("H a S O b", "(historically(a)) since (once(b))"),
        ("X a W Y b", "(next(a)) unless (prev(b))"),
        ("sX a or sY b", "s_next(a) or s_prev(b)"),
        ("rise a and fall(b)", "rise(a) and fall(b)"),
        ("TRUE and false", "true and false"),
        ("a\n  and b", "a and b"),
    ],
)
def test_precedence_is_that_of_rtamt(text, grouped):
    assert parse_formula(text) == parse_formula(grouped)


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("[0:2]", Bound(0.0), Bound(2.0)),
        ("[0,2]", Bound(0.0), Bound(2.0)),
        ("[0.5:2.25]", Bound(0.5), Bound(2.25)),
        ("[1 s : 2 s]", Bound(1.0), Bound(2.0)),
        ("[0:500ms]", Bound(0.0, "ms"), Bound(500.0, "ms")),
        ("[200ms:1s]", Bound(200.0, "ms"), Bound(1.0)),
        ("[0:7 us]", Bound(0.0, "us"), Bound(7.0, "us")),
        ("[0:7ns]", Bound(0.0, "ns"), Bound(7.0, "ns")),
        ("[1:5 steps]", Bound(1.0, "steps"), Bound(5.0, "steps")),
        ("[1 step:5 steps]", Bound(1.0, "steps"), Bound(5.0, "steps")),
        ("[2:inf]", Bound(2.0), None),
        ("[0:1e1]", Bound(0.0), Bound(10.0)),
    ],
)
def test_bounds_have_units(text, lower, upper):
    assert parse_formula(f"eventually{text}(a)") == Eventually(Atom("a"), Interval(lower, upper))


@pytest.mark.parametrize(
    ("text", "atom"),
    [
        ("speed>0.5", "speed > 0.5"),
        ("(speed) > (0.5)", "speed > 0.5"),
        ("speed !== 0", "speed != 0"),
        ("0 < speed <= 5", "0 < speed <= 5"),
        ("-speed < 3", "-speed < 3"),
        ("a + b * 2 > c ** 2", "a + b * 2 > c ** 2"),
        ("(a + b) * 2 > c", "(a + b) * 2 > c"),
        ("abs(x - y) < 2", "abs(x - y) < 2"),
        ("hypot( dx,dy ) < min(a, [b, 1][0])", "hypot(dx, dy) < min(a, [b, 1][0])"),
        ("lights[0].color == 1", "lights[0].color == 1"),
        ("mode == 'auto'", "mode == 'auto'"),
        ("x->5", None),
        ("any(d < 3 for d in distances)", "any((d < 3 for d in distances))"),
        ("((moving))", "moving"),
        ("ego.ready", "ego.ready"),
        ("s", "s"),
        ("steps > 3", "steps > 3"),
    ],
)
def test_a_comparison_is_one_atom_in_normal_form(text, atom):
    if atom is None:
        with pytest.raises(FormulaError, match="5 is a value"):
            parse_formula(text)
    else:
        assert parse_formula(text) == Atom(atom)


def test_atoms_come_in_order_of_first_appearance():
    formula = parse_formula("always(b and x > 3 implies eventually[0:1](a or b or x>3))")
    assert atoms_of(formula) == ("b", "x > 3", "a")


@pytest.mark.parametrize(
    ("text", "where", "problem", "accepted"),
    [
        ("", "", "empty", "a predicate"),
        ("always(a impl b)", "column 10", "did you mean 'implies'", "and"),
        ("always(a", "column 7", "'(' is never closed", "')'"),
        ("a and", "column 6", "ends too early", "a predicate"),
        ("and a", "column 1", "'and' was not expected", "a predicate"),
        ("a b", "column 3", "'b' was not expected", "or the end"),
        ("a)", "column 2", "')' was not expected", "or the end"),
        ("eventually[0:2(a)", "column 15", "'(' was not expected", "a unit"),
        ("eventually[0 2](a)", "column 14", "'2' was not expected", "':' or ','"),
        ("eventually[2:1](a)", "column 11", "ends before it begins", "lower <= upper"),
        ("eventually[a:1](a)", "column 12", "'a' was not expected", "a number >= 0"),
        ("eventually[0:2 h](a)", "column 16", "'h' was not expected", "a unit"),
        ("eventually[-1:2](a)", "column 12", "'-' was not expected", "a number >= 0"),
        ("a = 2", "column 3", "'=' has no meaning", "== to compare"),
        ("a ^ b", "column 3", "'^' has no meaning", "and, or xor"),
        ("speed + 1", "column 1", "is a value, not a predicate", "a comparison"),
        ("(a and b) > 3", "column 11", "needs numbers or signals", "a signal"),
        ("3 and a", "column 1", "3 is a value", "a comparison"),
        ("a implies b implies c", "column 13", "twice in a row", "parentheses"),
        ("a until[0:1] b until[0:1] c", "column 16", "twice in a row", "parentheses"),
        ("f(a", "column 2", "'(' is never closed", "')'"),
        ("f(a]", "column 4", "']' closes nothing", "opening"),
        ("x.3 > 2", "column 2", "'.3' was not expected", "the end"),
        ("a and\n  b impl c", "2:5", "'impl' was not expected", "and"),
        ("f(1 +) > 2", "column 1", "is no expression", "an expression"),
        ("eventually[1e308:1e309](a)", "column 12", "the bound is too large", "at most 1e+18"),
        ("eventually[0:1e309](a)", "column 14", "the bound is too large", "at most 1e+18"),
        ("eventually[0:" + "9" * 400 + "steps](a)", "column 14", "too large", "at most 1e+18"),
        ("eventually[0:1__0](a)", "column 15", "'__0' was not expected", "a unit"),
        ("always(a < 1e309)", "column 8", "is neither an operator nor", "below 1.8e308"),
    ],
)
def test_errors_show_the_position_and_what_could_stand_there(text, where, problem, accepted):
    with pytest.raises(FormulaError) as caught:
        parse_formula(text)
    assert problem in caught.value.problem
    assert where in caught.value.problem
    assert accepted in caught.value.accepted


def test_the_error_marks_the_place():
    with pytest.raises(FormulaError) as caught:
        parse_formula("always(a impl b)")
    assert str(caught.value).startswith(
        "column 10: 'impl' was not expected; did you mean 'implies'?\n"
        "  always(a impl b)\n"
        "           ^ (accepted: "
    )


NESTED = {
    "parentheses": "(" * 5000 + "a" + ")" * 5000,
    "negations": "not " * 5000 + "a",
    "conjunctions": " and ".join(["a"] * 5000),
    "calls": "f(" * 3000 + ")" * 3000,
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED.keys())
def test_deep_nesting_is_refused_without_a_traceback(text):
    with pytest.raises(FormulaError) as caught:
        parse_formula(text)
    assert len(str(caught.value)) < 400


def test_long_formulas_are_fine():
    text = " or ".join(f"p{i}" for i in range(90))
    assert format_formula(parse_formula(text)) == text
