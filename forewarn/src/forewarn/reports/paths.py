"""The most likely way from ordinary behaviour to a violation, by what was counted."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from forewarn.models import CountModel
from forewarn.monitoring.tables import CompiledProperty

MAX_PRODUCT = 200_000


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

    The shortest path under ``-log p`` in the product of counted transitions and automaton, where
    p leaves out repetitions of a product state. None if counts lead to no violation, or the
    product is too large to search.
    """
    if (
        compiled.live.violated < 0
        or model.size * compiled.automaton.n_classes > MAX_PRODUCT
        or not model.size
    ):
        return None
    start = (int(np.argmax(model.visits)), compiled.automaton.initial)
    before: dict[tuple[int, int], tuple[int, int]] = {}
    best = {start: 0.0}
    queue = [(0.0, start)]
    while queue:
        length, node = heapq.heappop(queue)
        if node[1] == compiled.live.violated:
            return Way(_stays(node, before), math.exp(-length))
        if length > best[node]:
            continue
        for following, weight in _steps(node, compiled, model):
            total = length + weight
            if total < best.get(following, math.inf):
                best[following] = total
                before[following] = node
                heapq.heappush(queue, (total, following))
    return None


def _steps(
    node: tuple[int, int], compiled: CompiledProperty, model: CountModel
) -> Iterator[tuple[tuple[int, int], float]]:
    row, q = node
    indptr = model.counts.indptr
    part = slice(indptr[row], indptr[row + 1])
    counted = [
        ((target, compiled.successors((q,), (int(compiled.row_classes[target]),))[0]), number)
        for target, number in zip(
            model.counts.indices[part].tolist(), model.counts.data[part].tolist(), strict=True
        )
    ]
    moves = [(following, number) for following, number in counted if following != node]
    total = sum(number for _, number in moves)
    for following, number in moves:
        if number:
            yield following, -math.log(number / total)


def _stays(
    node: tuple[int, int], before: dict[tuple[int, int], tuple[int, int]]
) -> tuple[Stay, ...]:
    rows = [node[0]]
    while node in before:
        node = before[node]
        rows.append(node[0])
    found: list[Stay] = []
    for row in reversed(rows):
        if found and found[-1].row == row:
            found[-1] = Stay(row, found[-1].ticks + 1)
        else:
            found.append(Stay(row, 1))
    return tuple(found)
