"""Computation tree logic on graphs, with bounds in time.

Clarke and Emerson 1981; bounds as in Emerson, Mok, Sistla and Srinivasan, "Quantitative temporal
reasoning", Real-Time Systems 4, 1992. Each part of a formula is the set of nodes in which it holds,
found from the sets of its operands by searches and fixpoints over edges. Probabilities do not
matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from forewarn.checking.reachability import backward_reachable
from forewarn.errors import CheckingError, FormulaError
from forewarn.logic.syntax import FOREVER, UNITS, Bound, Interval, Steps, in_steps
from forewarn.signals.clock_kinds import Steps as StepClock

if TYPE_CHECKING:
    from forewarn.signals.clock import Clock

Mask = NDArray[np.bool_]

_TOKEN = re.compile(
    r'\s*(?:"[^"]*"|(?:A[XGF]|E[XGF]|U)(?=<=)|[A-Za-z_][\w.]*(?:<=?\d[\w.]*)?'
    r"|\d+(?:\.\d+)?|=>|<=>|<=|[!&|()\[\]:,])"
)
_UNARY = ("AX", "AG", "AF", "EX", "EG", "EF")
_WORDS = {*_UNARY, "A", "E", "U"}
LONGEST = 200_000
DEEPEST = 150
MOST_ROUNDS = 100_000


@dataclass(frozen=True)
class CtlFormula:
    """A formula: an operator and its operands, or a name (operator ``name``)."""

    operator: str
    operands: tuple[CtlFormula, ...] = ()
    name: str = ""
    interval: Interval | None = None


def is_ctl(text: str) -> bool:
    """Tell whether a query is CTL: it has no probability operator."""
    bare = re.sub(r'"[^"]*"', "", text)
    return re.search(r"\b(P|R|S|T|LRA)(max|min)?\s*(=\?|[<>]=?)", bare) is None


def parse(text: str, unit: str = "steps") -> CtlFormula:
    """Parse a CTL formula: ``AG (a => AF[<=5] b)``, ``A [p U[2:5] q]``, ``EF<=3 p``.

    `unit`: unit of bounds that name none: ``s``, ``ms``, ``us``, ``ns`` or ``steps``.
    Raises CheckingError with the position.
    """
    if len(text) > LONGEST:
        raise CheckingError(f"has {len(text)} characters", accepted=f"at most {LONGEST}")
    parser = _Parser(text, unit)
    result = parser.implication()
    parser.end()
    return result


class _Parser:
    def __init__(self, text: str, unit: str) -> None:
        self.text = text
        self.unit = unit
        self.depth = 0
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
        self.depth += 1
        if self.depth > DEEPEST:
            self._fail(self._at(), f"less than {DEEPEST} within each other")
        found = self._implication()
        self.depth -= 1
        return found

    def _implication(self) -> CtlFormula:
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

    def _nested(self) -> CtlFormula:
        self.depth += 1
        if self.depth > DEEPEST:
            self._fail(self._at(), f"less than {DEEPEST} within each other")
        found = self._unary()
        self.depth -= 1
        return found

    def _interval(self) -> Interval | None:
        """Read ``<=5``, ``[<=5 s]`` or ``[2:5]``, if one is there."""
        if self._take("<="):
            return Interval(Bound(0.0, self.unit), self._bound())
        if not self._take("["):
            return None
        lower = Bound(0.0, self.unit)
        if not self._take("<="):
            lower = self._bound()
            if not self._take(":", ","):
                self._fail(self._at(), "a unit, ':' or ','")
        upper = None if self._take("inf") else self._bound()
        self._need("]")
        return Interval(lower, upper)

    def _bound(self) -> Bound:
        word = self._peek()
        if not word or not word[0].isdecimal():
            self._fail(self._at(), "a number")
        self.next += 1
        unit = self._peek()
        return Bound(float(word), unit if self._take(*UNITS) else self.unit)

    def _unary(self) -> CtlFormula:
        if self._take("!"):
            return CtlFormula("!", (self._nested(),))
        if self._take("("):
            inner = self.implication()
            self._need(")")
            return inner
        word = self._peek()
        if word in _UNARY:
            self.next += 1
            interval = self._interval()
            return CtlFormula(word, (self._nested(),), interval=interval)
        if word in {"A", "E"}:
            self.next += 1
            close = "]" if self._take("[") else ")"
            if close == ")":
                self._need("(")
            left = self.implication()
            self._need("U")
            interval = self._interval()
            right = self.implication()
            self._need(close)
            return CtlFormula(f"{word}U", (left, right), interval=interval)
        if word in {"true", "false"}:
            self.next += 1
            return CtlFormula(word)
        if word and word not in _WORDS and (word[0] == '"' or word[0].isalpha() or word[0] == "_"):
            self.next += 1
            return CtlFormula("name", name=word.strip('"'))
        self._fail(self._at(), "a name, !, (, AX, AG, AF, EX, EG, EF, A [p U q] or E [p U q]")


def names_in(formula: CtlFormula) -> set[str]:
    """Return the names in a formula."""
    found = {formula.name} if formula.operator == "name" else set()
    return found.union(*map(names_in, formula.operands))


def evaluate(
    formula: CtlFormula,
    leaf: Callable[[str], Mask],
    graph: sparse.csr_matrix,
    clock: Clock | None = None,
) -> Mask:
    """Return the nodes in which `formula` holds, shape (n,).

    `leaf`: nodes in which a name holds.
    `graph`, shape (n, n): an edge for each stored entry above 0; every node has a successor. An
    edge is one moment.
    `clock`: what bounds in seconds mean; without it, bounds are in steps.
    Raises CheckingError if a bound means nothing to the clock, or takes too many rounds.
    """
    return _Labelling(leaf, sparse.csr_matrix(graph > 0, dtype=np.int8), clock).label(formula)


class _Labelling:
    def __init__(
        self, leaf: Callable[[str], Mask], edges: sparse.csr_matrix, clock: Clock | None
    ) -> None:
        self.leaf, self.edges = leaf, edges
        self.clock = clock if clock is not None else StepClock()
        self.all = np.ones(edges.shape[0], dtype=bool)

    def label(self, formula: CtlFormula) -> Mask:
        operator = formula.operator
        if operator == "name":
            return self.leaf(formula.name)
        if operator in {"true", "false"}:
            return self.all if operator == "true" else ~self.all
        parts = [self.label(part) for part in formula.operands]
        if operator == "!":
            return ~parts[0]
        if operator in {"&", "|"}:
            return parts[0] & parts[1] if operator == "&" else parts[0] | parts[1]
        steps = self._steps(formula.interval)
        left, right = (self.all, parts[0]) if len(parts) == 1 else parts
        if operator in {"EX", "AX"}:
            return self._next(right, every=operator == "AX")
        if operator in {"EG", "AG"}:
            return ~self._until(self.all, ~right, steps, every=operator == "EG")
        return self._until(left, right, steps, every=operator[0] == "A")

    def _steps(self, interval: Interval | None) -> Steps:
        try:
            return in_steps(interval, self.clock)
        except FormulaError as error:
            raise CheckingError(error.problem, accepted=error.accepted) from None

    def _next(self, inside: Mask, *, every: bool) -> Mask:
        if every:
            return ~self._next(~inside, every=False)
        return np.asarray(self.edges @ inside.astype(np.int64) > 0)

    def _until(self, left: Mask, right: Mask, steps: Steps, *, every: bool) -> Mask:
        if steps == FOREVER:
            return self._always_or_some(left, right, every=every)
        if steps.upper is None:
            found = self._always_or_some(left, right, every=every)
        else:
            found = self._rounds(right, left, right, steps.upper - steps.lower, every=every)
        return self._rounds(found, left, ~self.all, steps.lower, every=every)

    def _rounds(self, found: Mask, left: Mask, right: Mask, rounds: int, *, every: bool) -> Mask:
        """Return `right`, or `left` and what was found in the round before at the next node."""
        for done in range(rounds):
            before = found
            found = right | (left & self._next(before, every=every))
            if (found == before).all():
                return found
            if done >= MOST_ROUNDS:
                raise CheckingError(
                    f"a bound of {rounds} steps takes too long", accepted=f"up to {MOST_ROUNDS}"
                )
        return found

    def _always_or_some(self, left: Mask, right: Mask, *, every: bool) -> Mask:
        if every:
            strays = self._always_or_some(~right, ~right & ~left, every=False)
            return ~(strays | forever(self.edges, ~right))
        through = sparse.csr_matrix(self.edges.multiply(left[:, None]))
        return backward_reachable(through, right)


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
