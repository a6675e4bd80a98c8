"""How much groups borrow from each other: as much as predicts recordings that were left out best.

Each recording is left out of its group in turn, and its transitions are predicted by what is left
of the group and by all other groups (`models.hierarchical_prior`). One strength serves all groups.
It says how much groups differ; it hardly matters to those with many visits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.models.counts import CountModel
from forewarn.models.estimation import valid_successors
from forewarn.models.hierarchical_prior import HierarchicalPrior
from forewarn.wings.fleet.group_counts import GroupTable

Floats = NDArray[np.float64]


class Strength(NamedTuple):
    """How much is borrowed.

    `visits`: visits that a row of the others is worth at most.
    `loss`, `alone`, `together`: mean of ``-log P`` over transitions of recordings left out: at this
        strength, with nothing borrowed, and where all that others have counts as if it were the
        group's own. Infinite where a transition had no probability.
    `transitions`: over how many transitions the means are.
    """

    visits: float
    loss: float
    alone: float
    together: float
    transitions: int


def choose_strength(table: GroupTable, fleet: CountModel) -> Strength:
    """Return how much groups borrow.

    `fleet`: the model of all groups, and maybe of recordings of no group.
    """
    grid = strengths(float(fleet.visits.max(initial=0)))
    losses, number = held_out_losses(table, fleet, grid)
    best = int(np.argmin(losses))
    loss, alone, together = losses[[best, 0, -1]].tolist()
    return Strength(float(grid[best]), loss, alone, together, number)


def strengths(most: float) -> Floats:
    """Return 0, powers of 2, and last what no row of the others exceeds."""
    powers = 2.0 ** np.arange(0, np.ceil(np.log2(max(most, 2.0))))
    return np.concatenate([[0.0], powers, [max(most, 2.0)]])


def held_out_losses(table: GroupTable, fleet: CountModel, grid: Floats) -> tuple[Floats, int]:
    """Return the loss at each strength, as in `Strength`, and over how many transitions it is.

    Transitions that nothing else has seen, where nothing is smoothed, are impossible at every
    strength and left out.
    """
    seen = table.counts.tocoo()
    own_group, kind = table.member[seen.row], seen.col
    state = table.row[kind]
    rows = np.zeros((len(table.groups), fleet.size), dtype=np.int64)
    np.add.at(rows.T, table.row, table.by_group.T)
    pair, back = np.unique(seen.row.astype(np.int64) * fleet.size + state, return_inverse=True)
    visits = np.bincount(back, weights=seen.data, minlength=len(pair))[back]
    group_counts = table.by_group[own_group, kind]
    own, own_row = group_counts - seen.data, rows[own_group, state] - visits
    counted = np.asarray(fleet.counts[table.row, table.column]).ravel()
    others = counted[kind] - group_counts
    others_row = fleet.visits[state] - rows[own_group, state]
    number = valid_successors(fleet, fleet.smoothing).numbers[state]
    weigh = {int(k): fleet.smoothing.weight(int(k)) for k in np.unique(number)}
    prior = np.array([weigh[int(k)] for k in number])
    possible = own + others + prior > 0
    total = int(seen.data[possible].sum())
    losses = np.zeros(len(grid))
    for at, strength in enumerate(grid):
        scale = np.minimum(strength, others_row) / np.maximum(others_row, 1)
        weight = own + scale * others + prior
        whole = own_row + scale * others_row + prior * number
        with np.errstate(divide="ignore"):
            surprise = np.log(whole[possible]) - np.log(weight[possible])
        losses[at] = float((seen.data[possible] * surprise).sum()) / max(total, 1)
    return losses, total


def borrowing(group: str, own: CountModel, fleet: CountModel, strength: float) -> CountModel:
    """Return the model of a group with what it borrows from all others."""
    rest = len(fleet.provenance) - len(own.provenance)
    spent = sum(source.duration for source in fleet.provenance)
    spent -= sum(source.duration for source in own.provenance)
    others = (fleet.counts - own.counts).tocsr()
    others.eliminate_zeros()
    return replace(
        own, hierarchical_prior=HierarchicalPrior(others, strength, group, rest, max(spent, 0.0))
    )
