"""Formulas as other tools write them: which notation it is, how it groups, what is around it."""

from __future__ import annotations

import pytest

from forewarn.errors import FormulaError
from forewarn.logic.syntax import format_formula
from forewarn.wings.plans.notations.answers import is_prose, unwrapped
from forewarn.wings.plans.notations.reader import TooLargeError, read_formula
from forewarn.wings.plans.notations.tables import NOTATIONS


@pytest.mark.parametrize(
    ("text", "notation", "meaning"),
    [
        ("globally ( a implies next b )", "words", "always(a implies next(b))"),
        ("not a until b", "words", "not(a) until b"),
        ("globally finally a implies globally finally b", "words",
         "always(eventually(a)) implies always(eventually(b))"),
        ("a double_implies b", "words", "a iff b"),
        ("Globally (a OR NOT b)", "words", "always(a or not(b))"),
        ("pickup(potted_plant) implies next idle()", "words",
         "pickup(potted_plant) implies next(idle)"),
        ("G(a -> F b)", "spot", "always(a implies eventually(b))"),
        ("[](p -> <>q) && !r", "spot", "always(p implies eventually(q)) and not(r)"),
        ("□(p → ◇q)", "spot", "always(p implies eventually(q))"),
        ("a U b U c", "spot", "a until (b until c)"),
        ("a -> b <-> c", "spot", "a implies (b iff c)"),
        ("a xor b -> c", "spot", "(a xor b) implies c"),
        ("XXX !a", "spot", "next(next(next(not(a))))"),
        ("GFa", "spot", "always(eventually(a))"),
        ("FF!a", "spot", "eventually(eventually(not(a)))"),
        ("FF(a & b)", "spot", "eventually(eventually(a and b))"),
        ("G(a -> FF)", "spot", "always(a implies false)"),
        ("Ff & ff", "spot", "eventually(f) and false"),
        ("a R b", "spot", "b unless (b and a)"),
        ("a M b", "spot", "b until (b and a)"),
        ("X[!]a", "spot", "next(a)"),
        ("F[2:4] a", "spot", "eventually[2:4 steps](a)"),
        ("1 & !0", "spot", "true and not(false)"),
        ("always(a implies eventually[0:2](b))", "rtamt",
         "always(a implies eventually[0:2 steps](b))"),
        ("always(speed > 0.5 implies once[0:3](near))", "rtamt",
         "always(speed > 0.5 implies once[0:3 steps](near))"),
        ("always[0:500ms] a", "rtamt", "always[0:500 ms](a)"),
        ("a since[1,2] b", "rtamt", "a since[1:2 steps] b"),
        ('G "a" => F<=5 "b"', "prism", "always(a implies eventually[0:5 steps](b))"),
        ("P>=1 [ a & b U c | d ]", "prism", "(a and b) until (c or d)"),
        ("G i b X d", "prefix", "always(b implies next(d))"),
        ("& U ! a b F c", "prefix", "not(a) until b and eventually(c)"),
        ("G(ISON(Toaster) -> F[<=3](NOT(ISON(Toaster))))", "mixed",
         "always(ISON(Toaster) implies eventually[0:3 steps](not(ISON(Toaster))))"),
        ("globally (a ⇒ (b U c))", "mixed", "always(a implies b until c)"),
    ],
)  # fmt: skip
def test_reads(text: str, notation: str, meaning: str) -> None:
    reading = read_formula(text)
    assert (reading.notation, format_formula(reading.formula)) == (notation, meaning)


def test_a_notation_can_be_asked_for() -> None:
    text = "G a -> b"
    meanings = {name: format_formula(read_formula(text, notation=name).formula)
                for name in NOTATIONS if name not in ("prefix", "declare")}  # fmt: skip
    assert meanings["spot"] == meanings["words"] == meanings["rtamt"] == "always(a) implies b"
    assert meanings["prism"] == "always(a implies b)"
    assert format_formula(read_formula("e a b", notation="prefix").formula) == "a iff b"
    assert format_formula(read_formula("(Init a)", notation="declare").formula) == "a"
    with pytest.raises(FormulaError, match="no template"):
        read_formula(text, notation="declare")


def test_tells_who_would_group_otherwise() -> None:
    assert read_formula("a -> b <-> c").otherwise == ("rtamt",)
    assert read_formula("G a => b").otherwise == ("prism",)
    assert read_formula("G(a -> b)").otherwise == ()


def test_known_names_are_names_whatever_else_they_could_be() -> None:
    def read(text: str, *known: str) -> str:
        return format_formula(read_formula(text, known).formula)

    assert read("F & a", "F", "a") == "F and a"
    assert read("G(Xready -> XXready)", "ready") == "always(next(ready) implies next(next(ready)))"
    assert read("Xbox_4 U Xa_2", "a_1") == "Xbox_4 until next(a_2)"
    assert read("G Fork_2", "Fork_1") == "always(Fork_2)"
    assert read("G(a -> Xb)") == "always(a implies next(b))"
    assert read("G Fork", "Fork") == read("G Fork", "cork") == "always(Fork)"
    assert read("once until finally", "once", "finally") == "once until finally"
    assert read("G NEAR(Cup , Sink)", "NEAR(Cup,Sink)") == "always(NEAR(Cup,Sink))"
    assert read("G a(b)", "a") == "always(a(b))"


@pytest.mark.parametrize(
    "text",
    ["", "  ", "G", "a b", "(a", "a)", "a U", "U a", "G[3:1] a", "G[0:x] a", "F<0 a", "a ? b",
     "not", "finally ( not set east light yellow )", "(a, b)", "a < b < c", "x > 1 > y", "2nd",
     "globally search(bike)%20and%20finally b", "F[<=T_MAX] a", "a R[0:2] b", "& a"],
)  # fmt: skip
def test_what_no_notation_has_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(FormulaError, match=r"column \d+|1:\d+|empty"):
        read_formula(text)


@pytest.mark.parametrize(
    ("answer", "formula"),
    [
        ("G(a)", "G(a)"),
        ("LTL: globally a", "globally a"),
        ("PATTERN: globally ( a and b )", "globally ( a and b )"),
        ("3. *FINAL:* G a FINISH", "G a"),
        ('(a)"\n}\n\n3. *FINAL:* F(a)', "F(a)"),
        ("* G(a)", "G(a)"),
        ("This can be translated into the LTL formula: finally a.", "finally a"),
        ("Sure:\n```ltl\nG (a -> X b)\n```\nIt says ...", "G (a -> X b)"),
        ("`G a`", "G a"),
        ("$G a$", "G a"),
        ("**G a**", "G a"),
        ("*", ""),
        ("", ""),
        ("FINAL: FINISH", ""),
    ],
)
def test_takes_off_what_stands_around_a_formula(answer: str, formula: str) -> None:
    assert unwrapped(answer) == formula


def test_sentences_are_told_from_formulas_with_errors() -> None:
    assert is_prose("This sentence does not contain any propositions.", ["a_1"])
    assert not is_prose("finally ( not set east light yellow )", ["a_1"])
    assert not is_prose("a_1 happens until the end", ["a_1"])
    assert not is_prose("hold", ["a_1"])


def test_limits_are_told_apart_from_errors() -> None:
    deep = "(" * 300 + "X(" * 300 + "a" + ")" * 600
    brackets = "(" * 5_000 + "a" + ")" * 5_000
    for text in ("a" * 1_000_000, "!" * 300 + "a", brackets, deep, "F " * 300 + "a"):
        with pytest.raises(TooLargeError):
            read_formula(text)
    chain = " & ".join(f"G a{i}" for i in range(10_000))
    assert read_formula(chain).notation == "spot"
    assert read_formula("(" * 190 + "a" + ")" * 190).notation == "spot"


@pytest.mark.parametrize("text", ["X[0:3] a", "X[2 s] a", "X[1.5] a", "X[1000000] a"])
def test_next_by_anything_but_some_steps_is_refused(text: str) -> None:
    with pytest.raises(FormulaError, match="next"):
        read_formula(text)
    assert format_formula(read_formula("X[2] a").formula) == "next(next(a))"
