"""Computation tree logic over the states of a chain (Clarke and Emerson 1981)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from forewarn.checking.graph import backward_reachable
from forewarn.errors import CheckingError

Mask = NDArray[np.bool_]
Ask = Callable[[str, dict[str, Mask]], Mask]

_TOKEN = re.compile(r'\s*(?:"[^"]*"|[A-Za-z_][\w.]*(?:<=?\d[\w.]*)?|=>|<=>|[!&|()\[\]])')
_UNARY = ("AX", "AG", "AF", "EX", "EG", "EF")
_WORDS = {*_UNARY, "A", "E", "U"}


@dataclass(frozen=True)
class CtlFormula:
    """A formula: an operator and its operands, or a name (operator ``name``)."""

    operator: str
    operands: tuple[CtlFormula, ...] = ()
    name: str = ""


def is_ctl(text: str) -> bool:
    """Tell whether a query is CTL: it has no probability operator."""
    bare = re.sub(r'"[^"]*"', "", text)
    return re.search(r"\b(P|R|S|T|LRA)(max|min)?\s*(=\?|[<>]=?)", bare) is None


def parse(text: str) -> CtlFormula:
    """Parse a CTL formula; raises CheckingError with the position."""
    parser = _Parser(text)
    result = parser.implication()
    parser.end()
    return result


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, int]] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                self._fail(at, "a name, an operator or a bracket")
            start = found.end() - len(found[0].lstrip())
            self.tokens.append((found[0].strip(), start))
            at = found.end()
        self.next = 0

    def _fail(self, at: int, accepted: str) -> NoReturn:
        shown = self.text[at : at + 12] or "the end"
        raise CheckingError(
            f"column {at + 1}: {shown!r} is not understood", accepted=accepted, key=self.text
        )

    def _peek(self) -> str:
        return self.tokens[self.next][0] if self.next < len(self.tokens) else ""

    def _take(self, *options: str) -> bool:
        if self._peek() in options and self._peek():
            self.next += 1
            return True
        return False

    def _need(self, mark: str) -> None:
        if not self._take(mark):
            self._fail(self._at(), mark)

    def _at(self) -> int:
        return self.tokens[self.next][1] if self.next < len(self.tokens) else len(self.text)

    def end(self) -> None:
        if self.next < len(self.tokens):
            self._fail(self._at(), "&, |, =>, <=> or the end")

    def implication(self) -> CtlFormula:
        left = self._or()
        if self._take("=>"):
            return CtlFormula("|", (CtlFormula("!", (left,)), self.implication()))
        if self._take("<=>"):
            right = self.implication()
            both = CtlFormula("&", (left, right))
            return CtlFormula("|", (both, CtlFormula("!", (CtlFormula("|", (left, right)),))))
        return left

    def _or(self) -> CtlFormula:
        left = self._and()
        while self._take("|"):
            left = CtlFormula("|", (left, self._and()))
        return left

    def _and(self) -> CtlFormula:
        left = self._unary()
        while self._take("&"):
            left = CtlFormula("&", (left, self._unary()))
        return left

    def _unary(self) -> CtlFormula:
        if self._take("!"):
            return CtlFormula("!", (self._unary(),))
        if self._take("("):
            inner = self.implication()
            self._need(")")
            return inner
        word = self._peek()
        if word in _UNARY:
            self.next += 1
            return CtlFormula(word, (self._unary(),))
        if word in {"A", "E"}:
            self.next += 1
            close = "]" if self._take("[") else ")"
            if close == ")":
                self._need("(")
            left = self.implication()
            self._need("U")
            right = self.implication()
            self._need(close)
            return CtlFormula(f"{word}U", (left, right))
        if word in {"true", "false"}:
            self.next += 1
            return CtlFormula(word)
        if word and word not in _WORDS and (word[0] == '"' or word[0].isalpha() or word[0] == "_"):
            self.next += 1
            return CtlFormula("name", name=word.strip('"'))
        self._fail(self._at(), "a name, !, (, AX, AG, AF, EX, EG, EF, A [p U q] or E [p U q]")


def evaluate(
    formula: CtlFormula, leaf: Callable[[str], Mask], matrix: sparse.csr_matrix, ask: Ask
) -> Mask:
    """Return the states in which `formula` holds, shape (n,).

    Parameters
    ----------
    leaf : callable
        States in which a name holds.
    matrix : csr_matrix, shape (n, n)
        The chain; every state has a successor.
    ask : callable
        Answers a qualitative PCTL formula over labels.
    """
    parts = [evaluate(part, leaf, matrix, ask) for part in formula.operands]
    operator, n = formula.operator, matrix.shape[0]
    if operator == "name":
        return leaf(formula.name)
    if operator in {"true", "false"}:
        return np.full(n, operator == "true")
    if operator == "!":
        return ~parts[0]
    if operator in {"&", "|"}:
        return parts[0] & parts[1] if operator == "&" else parts[0] | parts[1]
    if operator in _PCTL:
        return ask(_PCTL[operator], dict(zip(("p", "q"), parts, strict=False)))
    if operator == "EG":
        return forever(matrix, parts[0])
    if operator == "AF":
        return ~forever(matrix, ~parts[0])
    holds, until = parts
    strays = ask(_PCTL["EU"], {"p": ~until, "q": ~until & ~holds})
    return ~(strays | forever(matrix, ~until))


_PCTL = {
    "AX": 'P>=1 [X "p"]',
    "AG": 'P>=1 [G "p"]',
    "EX": 'P>0 [X "p"]',
    "EF": 'P>0 [F "p"]',
    "EU": 'P>0 ["p" U "q"]',
}


def forever(matrix: sparse.csr_matrix, inside: Mask) -> Mask:
    """Return the states with some path that stays `inside` for ever (EG), shape (n,).

    Such a path ends in a cycle: the greatest fixpoint is what reaches a cycle within `inside`.
    """
    edges = (matrix > 0).multiply(inside[:, None]).multiply(inside)
    within = sparse.csr_matrix(edges, dtype=np.int8)
    within.eliminate_zeros()
    _, label = csgraph.connected_components(within, directed=True, connection="strong")
    cyclic = (np.bincount(label)[label] > 1) | (within.diagonal() > 0)
    return backward_reachable(within, cyclic & inside) & inside
