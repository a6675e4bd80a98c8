"""Formula progression: what is left to be shown after each letter.

The state after some letters is a positive Boolean formula over *obligations* (leaves and future
operators that must hold from the next tick on), in the minimal disjunctive form that is unique up
to the known implications between obligations, together with what each live past operator
remembers. Both are canonical, so the reachable states are few and finite
(Bacchus and Kabanza, "Planning for temporally extended goals", 1998; the subsumption between
obligations is that of antichain constructions).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

from forewarn.errors import FormulaError
from forewarn.logic.nodes import FALSE, PAST, TRUE, Arena, InternedFormula

#: A conjunction of obligations, and a disjunction of such.
Clause = frozenset[int]
Clauses = frozenset[Clause]
#: What a past operator remembers: future ticks at which it is known to hold, as a mask or, if
#: its operands look ahead, as one residual formula for each tick.
Memory = int | tuple[Clauses, ...]

YES: Clauses = frozenset([frozenset()])
NO: Clauses = frozenset()
#: How much work a formula may cause, in comparisons of clauses; some ten seconds.
MAX_EFFORT = 6_000_000
MAX_IMPLIED = 200_000
_EFFORT_PER_STEP = 20
_EFFORT_PER_EXPANSION = 5


class State(NamedTuple):
    """What is left to be shown, and the memory of each live past operator, by its node."""

    owed: Clauses
    memory: tuple[tuple[int, Memory], ...] = ()


class Progression:
    """The transition function over the states of one formula."""

    def __init__(self, arena: Arena, letters: list[int]) -> None:
        """Take one representative letter of each class."""
        self.arena = arena
        self.letters = letters
        self._effort = 0
        self._holds: dict[tuple[int, int], Clauses] = {}
        self._owed: dict[int, Clauses] = {}
        self._joined: dict[tuple[Clauses, Clauses], Clauses] = {}
        self._chosen: dict[tuple[Clauses, Clauses], Clauses] = {}
        self._implied: dict[tuple[Clause, Clause], bool] = {}

    def start(self, root: int) -> State:
        """Return the state before the first letter."""
        owed = self._obligation(root)
        return State(owed, tuple((past, self._fresh(past)) for past in self._live(owed)))

    def step(self, state: State, letter_class: int) -> State:
        """Return the state after one more letter."""
        self._spend(_EFFORT_PER_STEP)
        now: dict[int, Clauses] = {}
        kept: dict[int, Memory] = {}
        for past, memory in state.memory:  # in order of nesting: inner ones have lower numbers
            now[past], kept[past] = self._remember(past, memory, letter_class, now)
        owed = self._progress(state.owed, letter_class, now)
        return State(owed, tuple((past, kept[past]) for past in self._live(owed)))

    def _spend(self, effort: int) -> None:
        self._effort += effort
        if self._effort > MAX_EFFORT:
            raise FormulaError(
                "the formula needs too many states to be compiled in reasonable time",
                accepted="shorter bounds, a lower rate, or fewer nested operators: what is pending"
                " must not depend on when each of many overlapping obligations began",
            )

    def _live(self, owed: Clauses) -> list[int]:
        parts = self.arena.past_parts
        return sorted(frozenset().union(*(parts[node] for clause in owed for node in clause)))

    def _fresh(self, past: int) -> Memory:
        node = self.arena.nodes[past]
        length, holds = _memory_length(node), node.kind == "trigger"
        if self._looks_ahead(node):
            return (YES if holds else NO,) * length
        return (1 << length) - 1 if holds else 0

    def _looks_ahead(self, node: InternedFormula) -> bool:
        return any(self.arena.has_future[arg] for arg in node.args)

    def _remember(
        self, past: int, memory: Memory, letter_class: int, now: dict[int, Clauses]
    ) -> tuple[Clauses, Memory]:
        """Return the value of a past operator at this tick, and what it remembers after it."""
        node = self.arena.nodes[past]
        left, right = (self._value(arg, letter_class, now) for arg in node.args)
        if isinstance(memory, int):
            value, after = _shift_mask(node, memory, left == YES, right == YES)
            return (YES if value else NO), after
        progressed = [self._progress(owed, letter_class, now) for owed in memory]
        return self._shift_formulas(node, progressed, left, right)

    def _shift_formulas(
        self, node: InternedFormula, memory: list[Clauses], left: Clauses, right: Clauses
    ) -> tuple[Clauses, Memory]:
        """Do as `_shift_mask` does, with formulas for bits."""
        dual = node.kind == "trigger"
        bridge, meet = (self._or, self._and) if dual else (self._and, self._or)
        lower, upper = node.steps
        values = []
        for k in range(len(memory) + (upper is not None)):
            value = memory[k] if k < len(memory) else (YES if dual else NO)
            value = bridge(value, left)
            values.append(meet(value, right) if k >= lower else value)
        if upper is None:
            return values[0], (*values[1:], values[lower])
        return values[0], tuple(values[1:])

    def _progress(self, owed: Clauses, letter_class: int, now: dict[int, Clauses]) -> Clauses:
        result = NO
        for clause in sorted(owed, key=sorted):
            left = YES
            for node in sorted(clause):
                left = self._and(left, self._value(node, letter_class, now))
                if left == NO:
                    break
            result = self._or(result, left)
        return result

    def _value(self, number: int, letter_class: int, now: dict[int, Clauses]) -> Clauses:
        """Return what must hold from the next tick on for `number` to hold at this one."""
        if self.arena.past_parts[number]:
            return self._expand(number, letter_class, now)
        key = (number, letter_class)
        found = self._holds.get(key)
        if found is None:
            found = self._holds[key] = self._expand(number, letter_class, now)
        return found

    def _expand(self, number: int, letter_class: int, now: dict[int, Clauses]) -> Clauses:
        self._spend(_EFFORT_PER_EXPANSION)
        node = self.arena.nodes[number]
        if node.kind == "prop":
            return YES if self.arena.tables[node.table][self.letters[letter_class]] else NO
        if node.kind in PAST:
            return now[number]
        if node.kind in ("and", "or"):
            values = [self._value(arg, letter_class, now) for arg in node.args]
            return reduce(self._and if node.kind == "and" else self._or, values)
        return self._expand_future(node, letter_class, now)

    def _expand_future(
        self, node: InternedFormula, letter_class: int, now: dict[int, Clauses]
    ) -> Clauses:
        dual = node.kind == "release"
        bridge, meet = (self._or, self._and) if dual else (self._and, self._or)
        lower, upper = node.steps
        left, right = node.args
        later = None
        if upper != 0:
            steps = type(node.steps)(max(lower - 1, 0), None if upper is None else upper - 1)
            rest = self._obligation(self.arena.temporal(node.kind, left, right, steps))
            later = bridge(self._value(left, letter_class, now), rest)
        if lower and later is not None:
            return later
        value = self._value(right, letter_class, now)
        return value if later is None else meet(value, later)

    def _obligation(self, number: int) -> Clauses:
        """Return `number`, owed from the next tick on, as clauses."""
        found = self._owed.get(number)
        if found is None:
            node = self.arena.nodes[number]
            if number in (TRUE, FALSE):
                found = YES if number == TRUE else NO
            elif node.kind in ("and", "or"):
                parts = [self._obligation(arg) for arg in node.args]
                found = reduce(self._and if node.kind == "and" else self._or, parts)
            else:
                found = frozenset([frozenset([number])])
            self._owed[number] = found
        return found

    def _and(self, first: Clauses, second: Clauses) -> Clauses:
        if first == YES or second == NO:
            return second
        if second == YES or first == NO:
            return first
        found = self._joined.get((first, second))
        if found is None:
            clauses = {self._strongest(a | b) for a in first for b in second}
            found = self._joined[first, second] = self._weakest(clauses)
        return found

    def _or(self, first: Clauses, second: Clauses) -> Clauses:
        if first == NO or second == YES:
            return second
        if second == NO or first == YES:
            return first
        found = self._chosen.get((first, second))
        if found is None:
            found = self._chosen[first, second] = self._weakest(first | second)
        return found

    def _strongest(self, clause: Clause) -> Clause:
        """Drop the obligations that others of the clause imply."""
        if len(clause) < 2:
            return clause
        implies, kept = self.arena.implies, sorted(clause)
        for node in sorted(clause):
            if any(other != node and implies(other, node) for other in kept):
                kept.remove(node)
        return frozenset(kept)

    def _weakest(self, clauses: Iterable[Clause]) -> Clauses:
        """Drop the clauses that imply others."""
        kept = sorted(clauses, key=sorted)
        self._spend(2 * len(kept) ** 2)
        for clause in list(kept):
            if any(other != clause and self._clause_implies(clause, other) for other in kept):
                kept.remove(clause)
        return frozenset(kept)

    def _clause_implies(self, first: Clause, second: Clause) -> bool:
        known = self._implied.get((first, second))
        if known is None:
            implies = self.arena.implies
            known = all(any(implies(x, y) for x in first) for y in second)
            if len(self._implied) >= MAX_IMPLIED:
                self._implied.clear()
            self._implied[first, second] = known
        return known


def _memory_length(node: InternedFormula) -> int:
    lower, upper = node.steps
    return lower + 1 if upper is None else upper


def _shift_mask(node: InternedFormula, memory: int, left: bool, right: bool) -> tuple[bool, int]:
    """Advance the memory of ``left since[l:u] right`` (or its dual) by one tick.

    Bit k of the memory says that the operator will hold k ticks from now because of the past,
    if `left` holds until then. Without an upper end, bit l stands for all later ticks.
    """
    lower, upper = node.steps
    dual = node.kind == "trigger"
    size = (lower if upper is None else upper) + 1
    if dual:  # not (not left since not right), computed on the complement
        left, right = not left, not right
        memory = ~memory & ((1 << _memory_length(node)) - 1)
    reached = memory if left else 0
    if right:
        reached |= (1 << size) - (1 << lower)
    after = reached >> 1
    if upper is None:
        after |= reached & 1 << lower
    if dual:
        return not reached & 1, ~after & ((1 << _memory_length(node)) - 1)
    return bool(reached & 1), after
