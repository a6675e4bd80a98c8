"""All short traces at once: which is the shortest on which two formulas differ.

A trace over a atoms and n positions is a*n bits. The value of a formula at a position, on all
2**(a*n) traces, is one integer with a bit for each trace; operators are those of integers. An
infinite trace is a lasso: n positions, the last followed by one of them. Every formula that some
trace satisfies has such a one. Where nothing looks back, what holds at a position depends on what
follows alone, and n positions need n values. What looks back may differ each time that the loop is
gone round, but not for ever: so far the loop is unrolled
(Laroussinie, Markey and Schnoebelen, "Temporal logic with forgettable past", LICS 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import and_, or_
from random import Random
from typing import NamedTuple

from forewarn.wings.plans.equivalence import nodes
from forewarn.wings.plans.equivalence.nodes import LtlArena, LtlNode, TooLarge

Values = list[int]
_SAMPLES = 256
#: Bits that the values of all parts of two formulas may take: 128 MB.
MOST_VALUES = 1 << 30


class Trace(NamedTuple):
    """The atoms that hold at each position; `loop` follows the last one, None if the trace ends."""

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
    below 21. Raises TooLarge if the values take more than `MOST_VALUES`.
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
    arena: LtlArena, pair: tuple[int, int], columns: dict[int, Values], length: int, everything: int
) -> Found | None:
    order, atoms = parts(arena, *pair), arena.atoms
    for loop in [None] if arena.finite else range(length - 1, -1, -1):
        places = _places(arena, order, length, loop)
        if len(order) * len(places) * everything.bit_length() > MOST_VALUES:
            raise TooLarge(f"traces of {length} steps take too much memory")
        rolled = {atom: [column[i] for i in places] for atom, column in columns.items()}
        again = None if loop is None else len(places) - (length - loop)
        values: dict[int, Values] = {}
        for number in order:
            node = arena.nodes[number]
            values[number] = _evaluate(node, values, rolled, len(places), again, everything)
        first, second = (values[number][0] for number in pair)
        differ = first ^ second
        if differ:
            bit = (differ & -differ).bit_length() - 1
            letters = tuple(
                frozenset(
                    str(atoms[atom]) for atom, column in columns.items() if column[i] >> bit & 1
                )
                for i in range(length)
            )
            return Trace(letters, loop), bool(first >> bit & 1)
    return None


def _places(arena: LtlArena, order: Sequence[int], length: int, loop: int | None) -> Sequence[int]:
    """Return the positions of a trace whose loop is unrolled until all values stay as they are."""
    if loop is None or not any(arena.nodes[number].kind in nodes.BACK for number in order):
        return range(length)
    period = length - loop
    settled: dict[int, int] = {}
    for number in order:
        node = arena.nodes[number]
        sides = () if node.kind in (nodes.LITERAL, nodes.CONSTANT) else node.args
        since = max((settled[side] for side in sides), default=loop)
        if node.kind in (nodes.PREV, nodes.WEAK_PREV):
            since += 1
        elif node.kind in nodes.BACK:
            # Once round the loop `since` is as before, or what it will be from then on.
            since += max(period, node.upper or 0)
        settled[number] = since
    return [
        at if at < length else loop + (at - loop) % period
        for at in range(max(settled.values()) + period)
    ]


def atoms_in(arena: LtlArena, *roots: int) -> frozenset[int]:
    """Return the atoms that the nodes name."""
    found = (arena.nodes[n] for n in parts(arena, *roots))
    return frozenset(node.args[0] for node in found if node.kind == nodes.LITERAL)


def parts(arena: LtlArena, *roots: int) -> list[int]:
    """Return nodes and all their parts, operands first."""
    seen, pending = set(roots), list(roots)
    while pending:
        node = arena.nodes[pending.pop()]
        if node.kind not in (nodes.LITERAL, nodes.CONSTANT):
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
    if node.kind == nodes.CONSTANT:
        return [everything if node.args[0] else 0] * length
    if node.kind == nodes.LITERAL:
        column = columns[node.args[0]]
        return column if node.args[1] else [everything ^ value for value in column]
    sides = [values[arg] for arg in node.args]
    if node.kind in (nodes.AND, nodes.OR):
        join = and_ if node.kind == nodes.AND else or_
        result = sides[0]
        for side in sides[1:]:
            result = list(map(join, result, side))
        return result
    if node.kind in (nodes.NEXT, nodes.WEAK_NEXT):
        last = sides[0][loop] if loop is not None else everything * (node.kind == nodes.WEAK_NEXT)
        return [*sides[0][1:], last]
    if node.kind in (nodes.PREV, nodes.WEAK_PREV):
        return [everything * (node.kind == nodes.WEAK_PREV), *sides[0][:-1]]
    if node.kind in nodes.BACK:
        left, right = (side[::-1] for side in sides)
        return _fixpoint(node, left, right, None, everything)[::-1]
    return _fixpoint(node, sides[0], sides[1], loop, everything)


def _fixpoint(
    node: LtlNode, left: Values, right: Values, loop: int | None, everything: int
) -> Values:
    """Return ``left until right`` or its dual, at each position."""
    until, length = node.kind in nodes.STRONG, len(right)
    beyond = 0 if until else everything
    if node.upper is not None and node.upper < length:
        within = _window(or_ if until else and_, right, node.upper, loop, beyond)
        endless = _fixpoint(node._replace(upper=None), left, right, loop, everything)
        return list(map(and_ if until else or_, endless, within))
    result = list(right)
    for _ in range(1 if loop is None else 2):
        for i in range(length - 1, -1, -1):
            later = result[i + 1] if i + 1 < length else beyond
            result[i] = right[i] | left[i] & later if until else right[i] & (left[i] | later)
        if loop is not None:
            beyond = result[loop]
    return result


def _window(
    join: Callable[[int, int], int], values: Values, upper: int, loop: int | None, beyond: int
) -> Values:
    """Return whether some, or all, of the next `upper` positions and this one hold."""
    length, width, result = len(values), 1, values
    while width <= upper:
        by = min(width, upper + 1 - width)
        if loop is None:
            later = [*result[by:], *[beyond] * min(by, length)]
        else:
            period = length - loop
            later = [
                result[at if at < length else loop + (at - loop) % period]
                for at in range(by, by + length)
            ]
        result = list(map(join, result, later))
        width += by
    return result
