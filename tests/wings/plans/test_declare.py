"""Templates of Declare against their published definitions for finite traces."""

from __future__ import annotations

import pytest

from forewarn.logic.syntax import And, format_formula
from forewarn.wings.plans.equivalence.decision import Verdict, compare
from forewarn.wings.plans.notations.answers import unwrapped
from forewarn.wings.plans.notations.declare import TEMPLATES
from forewarn.wings.plans.notations.reader import read_formula

#: nl2ltl's `to_ltlf` where it has the template, else the table of Di Ciccio and Montali, 2022, with
#: its operators of the past: `s_prev` is its circled minus.
PUBLISHED = {
    "Existence": "F a",
    "ExistenceTwo": "F(a & X(F a))",
    "Absence": "!(F a)",
    "RespondedExistence": "F a -> F b",
    "Response": "G(a -> F b)",
    "Precedence": "(!b U a) | G(!b)",
    "ChainResponse": "G(a -> X b)",
    "NotCoExistence": "F a -> !(F b)",
    "AbsenceTwo": "!F(a & X(F a))",
    "AtMostOne": "G(a -> !(X(F a)))",
    "ExactlyOne": "F(a & !(X F a)) & !F(a & X F a)",
    "Init": "a",
    "End": "F G a",  # the last step decides it
    "CoExistence": "(F a -> F b) & (F b -> F a)",
    "AlternateResponse": "G(a -> X(!a U b))",
    "AlternatePrecedence": "G(b -> s_prev(!b since a))",
    "ChainPrecedence": "G(b -> s_prev a)",
    "Succession": "G(a -> F b) & G(b -> once a)",
    "AlternateSuccession": "G((a -> X(!a U b)) & (b -> s_prev(!b since a)))",
    "ChainSuccession": "G((a -> X b) & (b -> s_prev a))",
    "Choice": "F a | F b",
    "ExclusiveChoice": "(F a | F b) & !(F a & F b)",
    "NotSuccession": "G(a -> !(F b))",
    "NotChainSuccession": "G(a -> !(X b))",
}
#: Templates whose published forms differ where both happen in one step, which event logs rule out.
ONE_EVENT = frozenset({"AlternatePrecedence", "AlternateSuccession"})


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_mean_what_is_published(name: str) -> None:
    arguments = "a b" if "b" in PUBLISHED[name] else "a"
    reading = read_formula(f"({name} {arguments})")
    published = read_formula(PUBLISHED[name], ("a", "b")).formula
    assert reading.notation == "declare"
    pair = [reading.formula, published]
    if name in ONE_EVENT:
        alone = read_formula("G !(a & b)").formula
        pair = [And(part, alone) for part in pair]
    assert compare(*pair, finite=True).verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("Response(a, b)", "always(a implies eventually(b))"),
        ("ChainResponse Slack Gmail", "always(Slack implies next(Gmail))"),
        ("!(Existence a) & (Absence f(x, y))", "not(eventually(a)) and not(eventually(f(x,y)))"),
        ("PATTERN: Response\nSYMBOLS: a, b", "always(a implies eventually(b))"),
        ("PATTERN: (ExistenceTwo a)", "eventually(a and next(eventually(a)))"),
    ],
)
def test_reads_what_nl2ltl_writes(text: str, meaning: str) -> None:
    reading = read_formula(unwrapped(text))
    assert (reading.notation, format_formula(reading.formula)) == ("declare", meaning)


def test_names_that_are_known_and_other_arities_are_no_templates() -> None:
    assert read_formula("F Response(a,b)", ("Response(a,b)", "Response")).notation == "spot"
    assert read_formula("F Init(a,b)").notation == "spot"
    taken = read_formula("declared_0 & (Init a)")
    assert format_formula(taken.formula) == "declared_0 and a"
