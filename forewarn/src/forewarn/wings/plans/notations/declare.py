"""Templates of Declare, as nl2ltl answers with: ``(Response a b)``, ``ChainResponse(a, b)``.

Meanings are those of Di Ciccio and Montali, "Declarative process specifications" (Process Mining
Handbook, 2022), for finite traces; nl2ltl's are among them. An infinite trace has no `End`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from itertools import count

from forewarn.logic.syntax import (
    Always,
    And,
    Atom,
    Constant,
    Eventually,
    Formula,
    Iff,
    Implies,
    Next,
    Not,
    Or,
    StrongPrevious,
    Unless,
    Until,
)


def _twice(a: Formula) -> Formula:
    return Eventually(And(a, Next(Eventually(a))))


def _response(a: Formula, b: Formula) -> Formula:
    return Always(Implies(a, Eventually(b)))


def _alternate_response(a: Formula, b: Formula) -> Formula:
    return Always(Implies(a, Next(Until(Not(a), b))))


def _chain_response(a: Formula, b: Formula) -> Formula:
    return Always(Implies(a, Next(b)))


def _precedence(a: Formula, b: Formula) -> Formula:
    return Unless(Not(b), a)


def _alternate_precedence(a: Formula, b: Formula) -> Formula:
    # after each b, whose next step there need not be
    again = Not(Next(Not(_precedence(a, b))))
    return And(_precedence(a, b), Always(Implies(b, again)))


def _chain_precedence(a: Formula, b: Formula) -> Formula:
    return Always(Implies(b, StrongPrevious(a)))


def _not_both(a: Formula, b: Formula) -> Formula:
    return Not(And(Eventually(a), Eventually(b)))


_UNARY: dict[str, Callable[[Formula], Formula]] = {
    "Existence": Eventually,
    "ExistenceTwo": _twice,
    "Absence": lambda a: Not(Eventually(a)),
    "AbsenceTwo": lambda a: Not(_twice(a)),
    "AtMostOne": lambda a: Not(_twice(a)),
    "ExactlyOne": lambda a: And(Eventually(a), Not(_twice(a))),
    "Init": lambda a: a,
    "End": lambda a: Eventually(And(a, Not(Next(Constant(True))))),
}
_BINARY: dict[str, Callable[[Formula, Formula], Formula]] = {
    "RespondedExistence": lambda a, b: Implies(Eventually(a), Eventually(b)),
    "CoExistence": lambda a, b: Iff(Eventually(a), Eventually(b)),
    "Response": _response,
    "AlternateResponse": _alternate_response,
    "ChainResponse": _chain_response,
    "Precedence": _precedence,
    "AlternatePrecedence": _alternate_precedence,
    "ChainPrecedence": _chain_precedence,
    "Succession": lambda a, b: And(_response(a, b), _precedence(a, b)),
    "AlternateSuccession": lambda a, b: And(_alternate_response(a, b), _alternate_precedence(a, b)),
    "ChainSuccession": lambda a, b: And(_chain_response(a, b), _chain_precedence(a, b)),
    "Choice": lambda a, b: Or(Eventually(a), Eventually(b)),
    "ExclusiveChoice": lambda a, b: And(Or(Eventually(a), Eventually(b)), _not_both(a, b)),
    "NotCoExistence": _not_both,
    "NotSuccession": lambda a, b: Always(Implies(a, Not(Eventually(b)))),
    "NotChainSuccession": lambda a, b: Always(Implies(a, Not(Next(b)))),
}
TEMPLATES = (*_UNARY, *_BINARY)
_NAME = rf"(?P<name>{'|'.join(sorted(TEMPLATES, key=len, reverse=True))})"
_ARGUMENT = r"(?:[^\W\d][\w.]*(?:\([\w.,' ]*\))?|\"[^\"\n]+\")"
_CALLED, _WHOLE = (_NAME.replace("name", group) for group in ("called", "whole"))
_USE = re.compile(
    rf"\(\s*{_NAME}\s+(?P<plain>{_ARGUMENT}(?:\s+{_ARGUMENT})?)\s*\)"
    rf"|\b{_CALLED}\s*\(\s*(?P<given>{_ARGUMENT}(?:\s*,\s*{_ARGUMENT})?)\s*\)"
    rf"|\A\s*{_WHOLE}\s+(?P<bare>{_ARGUMENT}(?:\s+{_ARGUMENT})?)\s*\Z"
)
_ARGUMENTS = re.compile(_ARGUMENT)


def without_templates(text: str, known: Collection[str]) -> tuple[str, Mapping[str, Formula]]:
    """Return a text with a name for each use of a template, and what these names mean.

    Names that are `known` as atoms are no templates.
    """
    found: dict[str, Formula] = {}
    fresh = (name for name in map("declared_{}".format, count()) if name not in text)

    def named(use: re.Match[str]) -> str:
        name = use["name"] or use["called"] or use["whole"]
        arguments = _ARGUMENTS.findall(use["plain"] or use["given"] or use["bare"])
        sides = [Atom(re.sub(r"\s+", "", argument.strip('"'))) for argument in arguments]
        formula: Formula | None = None
        if len(sides) == 1 and name in _UNARY:
            formula = _UNARY[name](sides[0])
        elif len(sides) == 2 and name in _BINARY:
            formula = _BINARY[name](sides[0], sides[1])
        if formula is None or name in known:
            return use[0]
        placeholder = next(fresh)
        found[placeholder] = formula
        return f"({placeholder})"

    return _USE.sub(named, text), found
