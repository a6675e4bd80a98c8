"""What a set of formulas asks of this step, and what it leaves for the next one.

The tableau of Gastin and Oddoux ("Fast LTL to Buchi automata translation", 2001) and Couvreur ("On-
the-fly verification of linear temporal logic", 1999): a state is a conjunction of formulas that are
owed, an edge a cube of literals and the next state. Edges that ask for more than another one and
promise no more are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from forewarn.wings.plans.equivalence import nodes
from forewarn.wings.plans.equivalence.nodes import LtlArena, LtlNode, TooLarge

#: How much work a comparison may cause, in edges compared; some seconds (about a microsecond each).
MAX_EFFORT = 3_000_000
MAX_EDGES = 3_000
#: Formulas in a set that are joined with another set in about a microsecond.
_OWED_AT_ONCE = 16
_LEAVES = (nodes.LITERAL, nodes.CONSTANT, nodes.NEXT, nodes.WEAK_NEXT)
State = frozenset[int]


class Edge(NamedTuple):
    """One way to satisfy a state at this step.

    `true` and `false` are masks of the atoms that must hold, and must not; `owed` is what must hold
    from the next step on; `postponed` are the endless untils that are not met at this step;
    `may_end` tells whether a finite trace may end after it.
    """

    true: int
    false: int
    owed: State
    postponed: State
    may_end: bool


_NOTHING = Edge(0, 0, frozenset(), frozenset(), True)


class Tableau:
    """The edges of states, computed once each, within a budget."""

    def __init__(self, arena: LtlArena, effort: int = MAX_EFFORT) -> None:
        self.arena = arena
        self.effort = effort
        self._ways: dict[int, list[Edge]] = {nodes.TRUE: [_NOTHING], nodes.FALSE: []}
        self._edges: dict[State, list[Edge]] = {}

    def edges(self, state: State) -> list[Edge]:
        """Return the edges that leave a state; raises TooLarge."""
        found = self._edges.get(state)
        if found is None:
            found = [_NOTHING]
            for number in sorted(state, key=self._literals_first):
                found = self._both(found, self._ways_of(number))
            self._edges[state] = found
        return found

    def _literals_first(self, number: int) -> tuple[bool, int]:
        return self.arena.nodes[number].kind != nodes.LITERAL, number

    def spend(self, effort: int) -> None:
        """Take from the budget."""
        self.effort -= effort
        if self.effort < 0:
            raise TooLarge("the comparison takes more steps than its budget allows")

    def _ways_of(self, number: int) -> list[Edge]:
        pending = [number]
        while pending:
            node = self.arena.nodes[pending[-1]]
            now = () if node.kind in _LEAVES else node.args
            missing = [arg for arg in now if arg not in self._ways]
            if missing:
                pending += missing
                continue
            last = pending.pop()
            if last not in self._ways:
                self._ways[last] = self._expand(last, node)
        return self._ways[number]

    def _expand(self, number: int, node: LtlNode) -> list[Edge]:
        if node.kind == nodes.LITERAL:
            bit = 1 << node.args[0]
            true, false = (bit, 0) if node.args[1] else (0, bit)
            return [Edge(true, false, frozenset(), frozenset(), True)]
        if node.kind in (nodes.NEXT, nodes.WEAK_NEXT):
            return self._later(node.args[0], strong=node.kind == nodes.NEXT)
        if node.kind == nodes.AND:
            ways = [_NOTHING]
            for arg in node.args:
                ways = self._both(ways, self._ways[arg])
            return ways
        if node.kind == nodes.OR:
            return self._fewest(way for arg in node.args for way in self._ways[arg])
        left, right = (self._ways[arg] for arg in node.args)
        rest = number
        if node.upper is not None:
            rest = self.arena.until(node.kind, node.args[0], node.args[1], node.upper - 1)
        if node.kind == nodes.UNTIL:
            marks = frozenset([number]) if node.upper is None else frozenset()
            waiting = self._both(left, self._later(rest, strong=True, postponed=marks))
            return self._fewest([*right, *waiting])
        return self._both(right, self._fewest([*left, *self._later(rest, strong=False)]))

    def _later(self, number: int, *, strong: bool, postponed: State = frozenset()) -> list[Edge]:
        """Return the edge that owes a formula."""
        may_end = not strong
        if number == nodes.FALSE:  # after a weak next: the trace ends here
            return [Edge(0, 0, frozenset([nodes.FALSE]), frozenset(), True)] if may_end else []
        node = self.arena.nodes[number]
        parts = node.args if node.kind == nodes.AND else () if number == nodes.TRUE else (number,)
        return [Edge(0, 0, frozenset(parts), postponed, may_end)]

    def _both(self, first: list[Edge], second: list[Edge]) -> list[Edge]:
        if len(second) == 1 and second[0] is _NOTHING:
            return first
        owed = max((len(edge.owed) for edge in (*first[:1], *second[:1])), default=0)
        self.spend(len(first) * len(second) * (1 + owed // _OWED_AT_ONCE))
        joined = []
        for x in first:
            for y in second:
                true, false = x.true | y.true, x.false | y.false
                if true & false:
                    continue
                joined.append(
                    Edge(true, false, x.owed | y.owed, x.postponed | y.postponed,
                         x.may_end and y.may_end)
                )  # fmt: skip
        return self._fewest(joined)

    def _fewest(self, edges: Iterable[Edge]) -> list[Edge]:
        """Drop the edges that another one covers."""
        kept: list[Edge] = []
        unique = list(set(edges))
        if len(unique) <= 1:
            return unique
        unique.sort(key=_demands)
        self.spend(len(unique))
        for edge in unique:
            self.spend(len(kept))
            if not any(_covers(other, edge) for other in kept):
                kept.append(edge)
            if len(kept) > MAX_EDGES:
                raise TooLarge(f"more than {MAX_EDGES} ways to satisfy one step")
        return kept


def _demands(edge: Edge) -> tuple[int, ...]:
    """Return what orders edges: whatever covers an edge comes before it."""
    bits = bin(edge.true).count("1") + bin(edge.false).count("1")
    return (
        len(edge.owed) + len(edge.postponed) + bits + (not edge.may_end),
        edge.true, edge.false, *sorted(edge.owed), -1, *sorted(edge.postponed),
    )  # fmt: skip


def _covers(weak: Edge, strict: Edge) -> bool:
    return (
        not weak.true & ~strict.true
        and not weak.false & ~strict.false
        and weak.may_end >= strict.may_end
        and weak.owed <= strict.owed
        and weak.postponed <= strict.postponed
    )
