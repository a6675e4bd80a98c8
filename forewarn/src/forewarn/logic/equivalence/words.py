"""All short traces at once: which is the shortest on which two formulas differ.

A trace over a atoms and n positions is a*n bits. The value of a formula at a position, on all
2**(a*n) traces, is one integer with a bit for each trace; operators are those of integers. An
infinite trace is a lasso: n positions, the last followed by one of them. Every formula that some
trace satisfies has such a one, and what holds at a position depends on what follows alone, so that
n positions need n values.
"""

from __future__ import annotations

from functools import lru_cache
from operator import and_, or_
from random import Random
from typing import NamedTuple

from forewarn.logic.equivalence.nodes import (
    AND,
    CONSTANT,
    LITERAL,
    NEXT,
    OR,
    UNTIL,
    WEAK_NEXT,
    LtlArena,
    LtlNode,
)

Values = list[int]
_SAMPLES = 256


class Trace(NamedTuple):
    """A trace: the atoms that hold at each position.

    Attributes
    ----------
    letters : tuple of frozenset of str
        What holds at each position.
    loop : int or None
        The position that follows the last one; None where the trace ends.
    """

    letters: tuple[frozenset[str], ...]
    loop: int | None

    def __str__(self) -> str:
        texts = ["{" + ", ".join(sorted(letter)) + "}" for letter in self.letters]
        if self.loop is None:
            return " ".join(texts)
        stem, loop = texts[: self.loop], texts[self.loop :]
        return " ".join([*stem, f"({' '.join(loop)}) for ever"])


#: A trace, and whether the first formula holds on it.
Found = tuple[Trace, bool]


@lru_cache(maxsize=256)
def _variable(index: int, count: int) -> int:
    """Return the traces, of 2**count, in which bit `index` is set."""
    block = ((1 << (1 << index)) - 1) << (1 << index)
    width = 2 << index
    while width < 1 << count:
        block |= block << width
        width *= 2
    return block


def first_difference(arena: LtlArena, first: int, second: int, length: int) -> Found | None:
    """Return a trace of exactly `length` positions on which two formulas differ, if there is one.

    Also whether the first formula holds on it. The number of atoms times the length should stay
    below 21.
    """
    used = sorted(atoms_in(arena, first, second))
    count = len(used) * length
    columns = {
        atom: [_variable(at * length + i, count) for i in range(length)]
        for at, atom in enumerate(used)
    }
    return _difference(arena, (first, second), columns, length, (1 << (1 << count)) - 1)


def sampled_difference(arena: LtlArena, first: int, second: int, length: int) -> Found | None:
    """Do as `first_difference` does on a few traces of many atoms, always the same ones.

    Each atom holds at half of the positions of a trace, or at an eighth, or at all but an eighth;
    or all atoms hold always, or none ever.
    """
    drawn = Random(length)

    def column() -> int:
        half = drawn.getrandbits(_SAMPLES)
        rare = half & drawn.getrandbits(_SAMPLES) & drawn.getrandbits(_SAMPLES)
        often = half | drawn.getrandbits(_SAMPLES) | drawn.getrandbits(_SAMPLES)
        return half | rare << _SAMPLES | often << 2 * _SAMPLES | 1 << 3 * _SAMPLES

    columns = {
        atom: [column() for _ in range(length)] for atom in sorted(atoms_in(arena, first, second))
    }
    return _difference(arena, (first, second), columns, length, (1 << 3 * _SAMPLES + 2) - 1)


def _difference(
    arena: LtlArena,
    pair: tuple[int, int],
    columns: dict[int, Values],
    length: int,
    everything: int,
) -> Found | None:
    order, atoms = parts(arena, *pair), arena.atoms
    for loop in [None] if arena.finite else range(length - 1, -1, -1):
        values: dict[int, Values] = {}
        for number in order:
            node = arena.nodes[number]
            values[number] = _evaluate(node, values, columns, length, loop, everything)
        first, second = (values[number][0] for number in pair)
        differ = first ^ second
        if differ:
            bit = (differ & -differ).bit_length() - 1
            letters = tuple(
                frozenset(atoms[atom] for atom, column in columns.items() if column[i] >> bit & 1)
                for i in range(length)
            )
            return Trace(letters, loop), bool(first >> bit & 1)
    return None


def atoms_in(arena: LtlArena, *roots: int) -> frozenset[int]:
    """Return the atoms that the nodes name."""
    nodes = (arena.nodes[n] for n in parts(arena, *roots))
    return frozenset(node.args[0] for node in nodes if node.kind == LITERAL)


def parts(arena: LtlArena, *roots: int) -> list[int]:
    """Return nodes and all their parts, operands first."""
    seen, pending = set(roots), list(roots)
    while pending:
        node = arena.nodes[pending.pop()]
        if node.kind not in (LITERAL, CONSTANT):
            pending += [arg for arg in node.args if arg not in seen]
            seen.update(node.args)
    return sorted(seen)


def _evaluate(
    node: LtlNode,
    values: dict[int, Values],
    columns: dict[int, Values],
    length: int,
    loop: int | None,
    everything: int,
) -> Values:
    """Return the traces on which a node holds, for each position."""
    if node.kind == CONSTANT:
        return [everything if node.args[0] else 0] * length
    if node.kind == LITERAL:
        column = columns[node.args[0]]
        return column if node.args[1] else [everything ^ value for value in column]
    sides = [values[arg] for arg in node.args]
    if node.kind in (AND, OR):
        join = and_ if node.kind == AND else or_
        result = sides[0]
        for side in sides[1:]:
            result = list(map(join, result, side))
        return result
    if node.kind in (NEXT, WEAK_NEXT):
        last = sides[0][loop] if loop is not None else everything * (node.kind == WEAK_NEXT)
        return [*sides[0][1:], last]
    return _fixpoint(node, sides[0], sides[1], loop, everything)


def _fixpoint(
    node: LtlNode, left: Values, right: Values, loop: int | None, everything: int
) -> Values:
    """Return ``left until right`` or its dual, at each position."""
    until, length = node.kind == UNTIL, len(right)
    beyond = 0 if until else everything
    if node.upper is not None and node.upper < length:
        return _windowed(until, node.upper, left, right, loop, beyond)
    result = list(right)
    for _ in range(1 if loop is None else 2):
        for i in range(length - 1, -1, -1):
            later = result[i + 1] if i + 1 < length else beyond
            result[i] = right[i] | left[i] & later if until else right[i] & (left[i] | later)
        if loop is not None:
            beyond = result[loop]
    return result


def _windowed(
    until: bool, upper: int, left: Values, right: Values, loop: int | None, beyond: int
) -> Values:
    """Return the value of an operator whose window is shorter than the trace."""
    result = right
    for _ in range(upper):
        later = [*result[1:], beyond if loop is None else result[loop]]
        parts = zip(left, right, later, strict=True)
        result = [(r | x & y) if until else (r & (x | y)) for x, r, y in parts]
    return result
