"""How violations come about: the likeliest ways from ordinary behaviour, as a tree.

Of a chain of hundreds of states only a part can be read. Shown are the commonest last steps before
a violation, and to each of them the likeliest way from the state that is most common. These ways
share their beginnings, so together they are a tree, whose every box says only what changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from forewarn.models.counts import CountModel
from forewarn.monitoring.tables import CompiledProperty
from forewarn.reports.paths import Product, moves, shortest, violates, way_to
from forewarn.reports.states import reachable

WAYS = 5


class Step(NamedTuple):
    """A box of the tree: a stretch of product states in one state of the model.

    Attributes
    ----------
    parent : int
        Position of the box before; -1 for the first.
    row : int
        State of the model.
    ticks : int
        Product states: more than 1 while an obligation counts down.
    probability : float
        Of coming here from the box before, once that is entered; 1 for the first. A tick that
        changes nothing at all is not counted.
    risk : float
        Of a violation within the property's horizon, when the stay begins.
    stay : float
        Probability that the stay lasts for its ticks.
    """

    parent: int
    row: int
    ticks: int
    probability: float
    risk: float
    stay: float = 1.0


class Ending(NamedTuple):
    """A violation that follows a box.

    Attributes
    ----------
    step : int
        The box.
    number : int
        Transitions counted from there into a violation.
    probability : float
        Of the violation coming next, once the box is entered.
    """

    step: int
    number: int
    probability: float


@dataclass(frozen=True)
class Tree:
    """The likeliest ways to a violation.

    Attributes
    ----------
    steps : tuple of Step
        Every box after its parent.
    endings : tuple of Ending
        The last boxes, the commonest first.
    total : int
        All transitions into a violation that were counted.
    exact : bool
        These are the violations that happened. Else whether one of them did depended on how long an
        obligation had been pending, which counts do not tell.
    """

    steps: tuple[Step, ...]
    endings: tuple[Ending, ...]
    total: int
    exact: bool


def violation_tree(compiled: CompiledProperty, model: CountModel, ways: int = WAYS) -> Tree | None:
    """Return how violations come about; None if counts lead to none, or are too many to search.

    Parameters
    ----------
    compiled : CompiledProperty
        The property, with its risk table if there is one.
    model : CountModel
        The counts.
    ways : int
        How many last steps to show.
    """
    before: dict[Product, Product] = {}
    length = {node: far for far, node in shortest(compiled, model, before)}
    if not length:
        return None
    found: dict[int, tuple[float, Product, int]] = {}
    pairs = [node for node in reachable(compiled, model) if not _lasts(node[0], compiled)]
    for node in pairs:
        if node in length:
            number = sum(
                n for after, n in moves(node, compiled, model) if violates(after, compiled)
            )
            if number and (node[0] not in found or length[node] < found[node[0]][0]):
                found[node[0]] = (length[node], node, number)
    if not found:
        return None
    exact = len({row for row, _ in pairs}) == len(pairs)
    order = sorted(
        found.values(), key=lambda ending: -ending[2] * (1.0 if exact else math.exp(-ending[0]))
    )
    ends = [(node, number) for _, node, number in order[:ways]]
    total = sum(number for _, _, number in order)
    return _tree(compiled, model, ends, before, total, exact)


def _lasts(row: int, compiled: CompiledProperty) -> bool:
    """Tell whether a violation lasts in a state, so that going on in it is no other one."""
    initial = compiled.automaton.initial
    after = compiled.successors((initial,), (int(compiled.row_classes[row]),))[0]
    return after == compiled.live.violated


def _tree(
    compiled: CompiledProperty,
    model: CountModel,
    ends: list[tuple[Product, int]],
    before: dict[Product, Product],
    total: int,
    exact: bool,
) -> Tree:
    steps: list[Step] = []
    place: dict[Product, int] = {}
    branching = _branching([end for end, _ in ends], before)
    for end, _ in ends:
        parent = -1
        for node in way_to(end, before):
            if node in place:
                parent = place[node]
                continue
            above = steps[parent] if parent >= 0 else None
            single = parent >= 0 and before[node] not in branching
            if above is not None and above.row == node[0] and single:
                # The same state while an obligation counts down: one box.
                chance = _chance(node, before, compiled, model)
                steps[parent] = above._replace(ticks=above.ticks + 1, stay=above.stay * chance)
            else:
                chance = _chance(node, before, compiled, model)
                chance *= 1.0 if above is None else above.stay
                steps.append(Step(parent, node[0], 1, chance, _risk(node, compiled)))
                parent = len(steps) - 1
            place[node] = parent
    endings = tuple(
        Ending(i, number, steps[i].stay * _share(end, number, compiled, model))
        for i, end, number in ((place[end], end, number) for end, number in ends)
    )
    return Tree(tuple(steps), endings, total, exact)


def _branching(ends: list[Product], before: dict[Product, Product]) -> set[Product]:
    """Return the product states after which ways part, or one of them ends."""
    following: dict[Product, set[Product]] = {}
    for end in ends:
        node = end
        while node in before:
            following.setdefault(before[node], set()).add(node)
            node = before[node]
    return {node for node, targets in following.items() if len(targets) > 1} | set(ends)


def _chance(
    node: Product,
    before: dict[Product, Product],
    compiled: CompiledProperty,
    model: CountModel,
) -> float:
    if node not in before:
        return 1.0
    number = dict(moves(before[node], compiled, model))[node]
    return _share(before[node], number, compiled, model)


def _share(node: Product, number: int, compiled: CompiledProperty, model: CountModel) -> float:
    left = sum(n for after, n in moves(node, compiled, model) if after != node)
    return number / left


def _risk(node: Product, compiled: CompiledProperty) -> float:
    return float("nan") if compiled.table is None else float(compiled.table.values[node])
