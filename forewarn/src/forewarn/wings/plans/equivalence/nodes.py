"""Formulas of linear temporal logic in negation normal form, interned: equal ones are one number.

Each operator has its dual: ``next`` and ``weak next``, ``until`` and ``release`` look ahead,
``prev`` and ``weak prev``, ``since`` and ``trigger`` look back.

Operands have lower numbers than what they are part of, so that a visit of all nodes in
order needs no recursion. There are two kinds of traces: an infinite trace has always a next
step, a finite one ends, and there ``next`` (strong) differs from ``weak next``
(De Giacomo and Vardi, "Linear temporal logic and linear dynamic logic on finite traces", 2013).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

FALSE, TRUE = 0, 1
(LITERAL, AND, OR, NEXT, WEAK_NEXT, UNTIL, RELEASE, CONSTANT, PREV, WEAK_PREV, SINCE, TRIGGER) = (
    range(12)
)
_PAIRS = ((AND, OR), (NEXT, WEAK_NEXT), (UNTIL, RELEASE), (PREV, WEAK_PREV), (SINCE, TRIGGER))
_DUAL = {kind: dual for pair in _PAIRS for kind, dual in (pair, pair[::-1])}
AHEAD = frozenset({NEXT, WEAK_NEXT, UNTIL, RELEASE})
BACK = frozenset({PREV, WEAK_PREV, SINCE, TRIGGER})
#: Those that ask for something that has to come, or to have been.
STRONG = frozenset({NEXT, UNTIL, PREV, SINCE})
MAX_NODES = 100_000


class TooLarge(Exception):
    """More work than the budget of a formula allows: the question stays undecided."""


class LtlNode(NamedTuple):
    """One interned formula.

    `args` are the numbers of the operands; of a literal the atom's number and 1, or 0 where it is
    negated. `upper` bounds ``until``, ``release``, ``since`` and ``trigger``: None is no bound.
    """

    kind: int
    args: tuple[int, ...]
    upper: int | None = None


class LtlArena:
    """Holds the nodes of formulas that are compared with each other; `finite` traces end."""

    def __init__(self, *, finite: bool) -> None:
        self.finite = finite
        self.nodes: list[LtlNode] = []
        self._numbers: dict[LtlNode, int] = {}
        self._negations: dict[int, int] = {FALSE: TRUE, TRUE: FALSE}
        self._atoms: dict[object, int] = {}
        for value in (0, 1):
            self._intern(LtlNode(CONSTANT, (value,)))

    @property
    def atoms(self) -> tuple[object, ...]:
        """The atoms, by number: texts of formulas, and whatever else stands for one."""
        return tuple(self._atoms)

    def _intern(self, node: LtlNode) -> int:
        number = self._numbers.get(node)
        if number is None:
            number = len(self.nodes)
            if number >= MAX_NODES:
                raise TooLarge(f"more than {MAX_NODES} parts")
            self._numbers[node] = number
            self.nodes.append(node)
        return number

    def literal(self, atom: object, positive: bool) -> int:
        """Return an atom or its negation; an atom of a trace is a text."""
        index = self._atoms.setdefault(atom, len(self._atoms))
        return self._intern(LtlNode(LITERAL, (index, int(positive))))

    def negation(self, root: int) -> int:
        """Return the negation of a node, in negation normal form."""
        pending = [root]
        while pending:
            number = pending[-1]
            if number in self._negations:
                pending.pop()
                continue
            node = self.nodes[number]
            if node.kind != LITERAL:
                missing = [arg for arg in node.args if arg not in self._negations]
                if missing:
                    pending += missing
                    continue
            negated = self._negated(node)
            self._negations[number] = negated
            self._negations.setdefault(negated, number)
            pending.pop()
        return self._negations[root]

    def _negated(self, node: LtlNode) -> int:
        if node.kind == LITERAL:
            return self._intern(LtlNode(LITERAL, (node.args[0], 1 - node.args[1])))
        args = [self._negations[arg] for arg in node.args]
        kind = _DUAL[node.kind]
        if kind in (AND, OR):
            return self.junction(kind, args)
        if kind in (NEXT, WEAK_NEXT):
            return self.next(args[0], strong=kind == NEXT)
        if kind in (PREV, WEAK_PREV):
            return self.prev(args[0], strong=kind == PREV)
        return self.until(kind, args[0], args[1], node.upper)

    def junction(self, kind: int, parts: Iterable[int]) -> int:
        """Return the conjunction (`AND`) or the disjunction (`OR`) of `parts`."""
        neutral, zero = (TRUE, FALSE) if kind == AND else (FALSE, TRUE)
        flat: set[int] = set()
        for part in parts:
            node = self.nodes[part]
            flat.update(node.args if node.kind == kind else (part,))
        flat.discard(neutral)
        if zero in flat or any(self._negations.get(part) in flat for part in flat):
            return zero
        flat = self._gathered(kind, flat)
        flat.discard(neutral)
        if zero in flat:
            return zero
        flat = self._absorbed(kind, flat)
        if not flat:
            return neutral
        if len(flat) == 1:
            return flat.pop()
        for part in flat:  # literals learn their negations late
            node = self.nodes[part]
            if node.kind == LITERAL:
                other = LtlNode(LITERAL, (node.args[0], 1 - node.args[1]))
                if self._numbers.get(other) in flat:
                    return zero
        return self._intern(LtlNode(kind, tuple(sorted(flat))))

    def _gathered(self, kind: int, flat: set[int]) -> set[int]:
        """Join ``always a and always b`` into one, ``eventually a or eventually b``, and nexts."""
        outer, left = (RELEASE, FALSE) if kind == AND else (UNTIL, TRUE)
        alike: dict[int, list[int]] = {}
        for part in flat:
            node = self.nodes[part]
            endless = node.kind == outer and node.args[0] == left and node.upper is None
            if endless or node.kind in (NEXT, WEAK_NEXT):
                alike.setdefault(node.kind, []).append(part)
        for group, parts in alike.items():
            if len(parts) < 2:
                continue
            inner = self.junction(kind, [self.nodes[part].args[-1] for part in parts])
            endless = group == outer
            joined = (
                self.until(outer, left, inner, None)
                if endless
                else self.next(inner, strong=group == NEXT)
            )
            flat = flat.difference(parts) | {joined}
        return flat

    def _absorbed(self, kind: int, flat: set[int]) -> set[int]:
        """Drop what another part implies (of a conjunction), or is implied by (a disjunction)."""
        other, temporal = (OR, RELEASE) if kind == AND else (AND, UNTIL)
        kept = set(flat)
        for part in flat:
            node = self.nodes[part]
            if node.kind == other and any(arg in kept for arg in node.args):
                kept.discard(part)
            elif node.kind == temporal and len(flat) > 1 and part in kept:
                inner = self.nodes[node.args[1]]
                known = inner.args if inner.kind == kind else (node.args[1],)
                kept.difference_update(known)
        return kept

    def next(self, operand: int, *, strong: bool) -> int:
        """Return that `operand` holds one step later; if not `strong`, or the trace ends here."""
        if operand in (TRUE, FALSE) and (not self.finite or strong == (operand == FALSE)):
            return operand
        return self._intern(LtlNode(NEXT if strong or not self.finite else WEAK_NEXT, (operand,)))

    def prev(self, operand: int, *, strong: bool) -> int:
        """Return that `operand` held one step ago; if not `strong`, or the trace begins here."""
        if operand == (FALSE if strong else TRUE):
            return operand
        return self._intern(LtlNode(PREV if strong else WEAK_PREV, (operand,)))

    def until(self, kind: int, left: int, right: int, upper: int | None) -> int:
        """Return ``left until right`` (`UNTIL`, `SINCE`), or its dual (`RELEASE`, `TRIGGER`)."""
        one, zero = (TRUE, FALSE) if kind in STRONG else (FALSE, TRUE)
        if right in (TRUE, FALSE) or left in (zero, right) or upper == 0:
            return right
        inner = self.nodes[right]
        if upper is None and inner.kind == kind and inner.upper is None:
            if left == inner.args[0] or (left == one and inner.args[0] == one):
                return right  # a until (a until b)
            if left == one:  # eventually (a until b)
                return self.until(kind, one, inner.args[1], None)
        if upper is None and left == one and kind in AHEAD and inner.kind in AHEAD:
            simpler = self._always_eventually(kind, right)
            if simpler is not None:
                return simpler
        return self._intern(LtlNode(kind, (left, right), upper))

    def _always_eventually(self, kind: int, right: int) -> int | None:
        """Return ``eventually always eventually a`` as ``always eventually a``, and its dual."""
        other, left = (RELEASE, FALSE) if kind == UNTIL else (UNTIL, TRUE)
        outer = self.nodes[right]
        if outer.kind != other or outer.args[0] != left or outer.upper is not None:
            return None
        inner = self.nodes[outer.args[1]]
        if (
            inner.kind == kind
            and inner.upper is None
            and inner.args[0] == (TRUE if kind == UNTIL else FALSE)
        ):
            return right
        return None
