"""The likeliest ways from ordinary behaviour to a violation, by what was counted.

Ways lead through the product of counted transitions and automaton. Repetitions of a product state
are left out of the probability of a step.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

import numpy as np

from forewarn.models.counts import CountModel
from forewarn.monitoring.tables import CompiledProperty

MAX_PRODUCT = 200_000

Product = tuple[int, int]
"""A row of the model, and a state of the automaton."""


class Stay(NamedTuple):
    """A stretch of the way: `ticks` product states in the model's state `row`."""

    row: int
    ticks: int


class Way(NamedTuple):
    """A way to a violation.

    Attributes
    ----------
    stays : tuple of Stay
        From the first state to the one in which the violation happens.
    probability : float
        Of this very way, repetitions of a product state not counted.
    """

    stays: tuple[Stay, ...]
    probability: float


def likeliest_way(compiled: CompiledProperty, model: CountModel) -> Way | None:
    """Return the most likely way from the most visited state to a violation.

    None if counts lead to no violation, or the product is too large to search.
    """
    before: dict[Product, Product] = {}
    for length, node in shortest(compiled, model, before):
        if violates(node, compiled):
            rows = groupby(row for row, _ in way_to(node, before))
            stays = tuple(Stay(row, sum(1 for _ in same)) for row, same in rows)
            return Way(stays, math.exp(-length))
    return None


def way_to(node: Product, before: dict[Product, Product]) -> list[Product]:
    """Return the way that `shortest` has found to a product state."""
    way = [node]
    while way[-1] in before:
        way.append(before[way[-1]])
    return way[::-1]


def violates(node: Product, compiled: CompiledProperty) -> bool:
    """Tell whether the property is violated in a product state."""
    return node[1] == compiled.live.violated


def moves(
    node: Product, compiled: CompiledProperty, model: CountModel
) -> Iterator[tuple[Product, int]]:
    """Yield the product states that counted transitions lead to, with their numbers."""
    row, q = node
    part = slice(model.counts.indptr[row], model.counts.indptr[row + 1])
    for target, number in zip(
        model.counts.indices[part].tolist(), model.counts.data[part].tolist(), strict=True
    ):
        if number:
            after = compiled.successors((q,), (int(compiled.row_classes[target]),))[0]
            yield (target, after), number


def shortest(
    compiled: CompiledProperty, model: CountModel, before: dict[Product, Product]
) -> Iterator[tuple[float, Product]]:
    """Yield product states from the most visited one on, the likeliest to be reached first.

    Each comes with -log of the probability of the likeliest way there, which `before` then has,
    step by step. Nothing comes if the property cannot be violated or the product is too large.
    """
    size = model.size * compiled.automaton.n_classes
    if compiled.live.violated < 0 or not 0 < size <= MAX_PRODUCT:
        return
    start = (int(np.argmax(model.visits)), compiled.automaton.initial)
    length = {start: 0.0}
    queue = [(0.0, start)]
    while queue:
        now, node = heapq.heappop(queue)
        if now > length[node]:
            continue
        yield now, node
        if violates(node, compiled):
            continue
        steps = [(after, number) for after, number in moves(node, compiled, model) if after != node]
        total = sum(number for _, number in steps)
        for after, number in steps:
            then = now - math.log(number / total)
            if then < length.get(after, math.inf):
                length[after] = then
                before[after] = node
                heapq.heappush(queue, (then, after))
