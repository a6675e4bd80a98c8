"""Answers of translators and sentences: whatever is written, a FormulaError or a formula."""

from __future__ import annotations

from hypothesis import strategies as st
from mutations import changed_text, soup

from forewarn.errors import FormulaError
from forewarn.logic.parser import parse_formula
from forewarn.logic.syntax import format_formula
from forewarn.wings.plans.equivalence.decision import Verdict, compare
from forewarn.wings.plans.equivalence.kinds import kind_of
from forewarn.wings.plans.fret.explanation import in_words
from forewarn.wings.plans.fret.meaning import translate
from forewarn.wings.plans.fret.sentences import read_requirement
from forewarn.wings.plans.notations.answers import is_prose, unwrapped
from forewarn.wings.plans.notations.reader import read_formula

ANSWERS = (
    "LTL: globally ( a implies next b )",
    "3. *FINAL:* G(a -> F b) FINISH",
    "always(a implies eventually[0:2](speed > 0.5)) and not c",
    'P>=1 [ G "a" => F<=5 "b" ]',
    "& U ! a b F c",
    "```ltl\n□(inside(a,b) → ◇(x - y) / 2 >= 3)\n```",
    "XXX !a W (GFb M c) R d xor e",
)
WORDS = (
    "globally", "finally", "next", "until", "unless", "release", "weak_next", "once", "rise",
    "not", "and", "or", "implies", "double_implies", "xor", "G", "F", "X", "U", "W", "R", "M", "V",
    "X[!]", "GF", "XXa", "i", "e", "a", "b", "f(a,b)", "speed > 0.5", "x", "(", ")", "[", "]",
    "[0:2]", "[<=3]", "<=5", "[2:1]", "[0:1e9]", "1", "0", "true", "[]", "<>", "()", "->", "=>",
    "<->", "&", "&&", "|", "!", "~", "^", "→", "¬", "LTL:", "`", "$", "*", ".", '"a"', "'", "\n",
)  # fmt: skip
SENTENCES = (
    "while autonomous, when red & close the car shall within 2 seconds satisfy stopped",
    "only after homing, whenever x > 3 the arm shall until (a | b) satisfy if c then !d.",
    "in landing mode upon alarm is false, or if y the drone shall at the last timepoint satisfy z",
)
FIELDS = (
    "while", "when", "whenever", "unless", "in", "not in", "only", "after", "before", "except",
    "if", "is true", "and", "or", ",", "the", "car", "shall", "within 2 ticks", "for 3 s", "until",
    "always", "never", "finally", "at the last timepoint", "satisfy", "a", "b & c", "(", ")", '"',
    "x > 1", "preBool(false, a)", "with probability > 0.5", "mode",
)  # fmt: skip


def check_answer(text: str) -> None:
    formula_text = unwrapped(text)
    assert is_prose(formula_text, ["a"]) in (True, False)
    try:
        formula = read_formula(formula_text, ["a", "b"]).formula
    except FormulaError as error:
        assert str(error)
        return
    assert kind_of(formula)
    for finite in (False, True):
        try:
            found = compare(formula, formula, finite=finite, effort=20_000)
        except FormulaError as error:
            assert str(error)
            continue
        assert found.verdict in (Verdict.EQUIVALENT, Verdict.UNDECIDED)


def check_sentence(text: str) -> None:
    try:
        requirement = read_requirement(text)
    except FormulaError as error:
        assert str(error)
        return
    assert in_words(requirement)
    found = translate(requirement)
    assert found.reason or found.formula is not None
    if found.formula is not None:
        assert format_formula(found.formula)


def test_answers(fuzz):
    fuzz(st.one_of(changed_text(ANSWERS, WORDS), soup(WORDS), st.text(max_size=40)), check_answer)


def test_sentences(fuzz):
    fuzz(
        st.one_of(changed_text(SENTENCES, FIELDS), soup(FIELDS), st.text(max_size=40)),
        check_sentence,
    )


def test_what_is_translated_is_read_back(fuzz):
    def check(text: str) -> None:
        try:
            formula = translate(read_requirement(text)).formula
        except FormulaError:
            return
        if formula is not None and '"' not in text:
            parse_formula(format_formula(formula))

    fuzz(changed_text(SENTENCES, FIELDS), check)
