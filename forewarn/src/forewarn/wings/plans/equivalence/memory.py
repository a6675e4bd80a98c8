"""What looks back, as atoms that remember.

For each formula of which it matters whether it held one step ago there is one more atom. It is
false at first, and afterwards it says what held: ``not y and always(next y iff formula)``. Each
trace has exactly one such extension, so that a formula with past operators has a trace if the one
with these atoms in their place has one that satisfies all these demands (Lichtenstein, Pnueli and
Zuck, "The glory of the past", 1985).
"""

from __future__ import annotations

from forewarn.wings.plans.equivalence import nodes
from forewarn.wings.plans.equivalence.nodes import LtlArena
from forewarn.wings.plans.equivalence.words import parts


class Remembered:
    """The atom that stands for a formula one step ago."""


def without_past(arena: LtlArena, root: int) -> tuple[int, list[int]]:
    """Return a formula that looks ahead only, and what holds of the atoms that are new in it."""
    order = parts(arena, root)
    if not any(arena.nodes[number].kind in nodes.BACK for number in order):
        return root, []
    rewriting = _Rewriting(arena)
    for number in order:
        rewriting.done[number] = rewriting.rewritten(number)
    return rewriting.done[root], rewriting.demands


class _Rewriting:
    def __init__(self, arena: LtlArena) -> None:
        self.arena = arena
        self.done: dict[int, int] = {}
        self.demands: list[int] = []
        self._memory: dict[int, int] = {}

    def rewritten(self, number: int) -> int:
        node = self.arena.nodes[number]
        if node.kind in (nodes.LITERAL, nodes.CONSTANT):
            return number
        sides = [self.done[side] for side in node.args]
        if node.kind in (nodes.AND, nodes.OR):
            return self.arena.junction(node.kind, sides)
        if node.kind in (nodes.NEXT, nodes.WEAK_NEXT):
            return self.arena.next(sides[0], strong=node.kind == nodes.NEXT)
        if node.kind == nodes.PREV:
            return self._before(sides[0])
        if node.kind == nodes.SINCE:
            return self._since(sides[0], sides[1], node.upper)
        if node.kind not in (nodes.WEAK_PREV, nodes.TRIGGER):
            return self.arena.until(node.kind, sides[0], sides[1], node.upper)
        # The negation of what the strong operator says of the negated sides.
        sides = [self.arena.negation(side) for side in sides]
        strong = (
            self._before(sides[0])
            if node.kind == nodes.WEAK_PREV
            else self._since(sides[0], sides[1], node.upper)
        )
        return self.arena.negation(strong)

    def _before(self, formula: int) -> int:
        """Return the atom that says whether a formula held one step ago."""
        atom = self._memory.get(formula)
        if atom is None:
            atom = self._memory[formula] = self.arena.literal(Remembered(), True)
            self._demand(atom, formula)
        return atom

    def _since(self, left: int, right: int, upper: int | None) -> int:
        arena = self.arena
        if upper is not None:
            now = right
            for _ in range(upper):
                held = arena.junction(nodes.AND, [left, self._before(now)])
                now = arena.junction(nodes.OR, [right, held])
            return now
        atom = arena.literal(Remembered(), True)
        now = arena.junction(nodes.OR, [right, arena.junction(nodes.AND, [left, atom])])
        self._demand(atom, now)
        return now

    def _demand(self, atom: int, formula: int) -> None:
        arena = self.arena
        denied, opposite = arena.negation(atom), arena.negation(formula)
        held = arena.junction(nodes.AND, [arena.next(atom, strong=True), formula])
        failed = arena.junction(nodes.AND, [arena.next(denied, strong=True), opposite])
        over = arena.next(nodes.FALSE, strong=False)
        kept = arena.junction(nodes.OR, [held, failed, over])
        self.demands += [denied, arena.until(nodes.RELEASE, nodes.FALSE, kept, None)]
