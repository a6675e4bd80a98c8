"""In which states groups of recordings do not go on alike.

For each state, the transitions out of it are compared between groups by the likelihood ratio of
multinomial distributions. Recordings that change their groups at random show how large it may
become by chance, not ticks: those of one recording resemble each other, and a test that
takes them for independent finds differences between any two drives. The p-values are exact
whatever the transitions of one recording have to do with each other, if recordings of equal groups
are exchangeable (Phipson and Smyth 2010). Of the states that are named, at most `level` differ
by chance in the mean (Benjamini and Hochberg 1995).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from forewarn.assessment.modelling import FALSE_DISCOVERY_RATE
from forewarn.models.counts import CountModel
from forewarn.wings.fleet.group_counts import GroupTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST = 1999
"""Permutations at least, where groups may differ."""
ENOUGH = 20
"""No more permutations are drawn once so many differ as much as the data (Besag, Clifford 1991)."""
BATCH = 1 << 20
"""Labels of recordings that are drawn at a time, at most."""
FIRST = 64
"""Permutations in the first batch. Each next batch is twice as large: most states need few."""


class Moved(NamedTuple):
    """A state in which groups do not go on alike.

    `state`: its index in the model.
    `p`, `q`: the p-value, and the least false discovery rate at which the state is named.
    `recordings`: how many recordings left it.
    `group`: where the greatest part of the difference comes from, and
    `to`: the next state in which it shows.
    `share`, `elsewhere`: how often the state is followed by it there, and in all other groups
        together.
    """

    state: int
    p: float
    q: float
    recordings: int
    group: str
    to: int
    share: float
    elsewhere: float


class Differences(NamedTuple):
    """What the comparison says.

    `moved`: the states in which groups differ, the surest first.
    `tested`: states that could be compared.
    `untold`: states that two groups know, with too few recordings to tell any difference.
    `level`: false discovery rate.
    """

    moved: tuple[Moved, ...]
    tested: int
    untold: int
    level: float


class _Row(NamedTuple):
    """The transitions out of a state, of all recordings that left it."""

    state: int
    targets: Ints
    counts: Floats
    labels: Ints


def find_differences(
    table: GroupTable, model: CountModel, level: float = FALSE_DISCOVERY_RATE
) -> Differences:
    """Compare groups state by state."""
    rows, untold = list[_Row](), 0
    columns = table.counts.tocsc()
    states, begins = np.unique(table.row, return_index=True)  # kinds are sorted by their state
    for state, kinds in zip(
        states.tolist(), np.split(np.arange(len(table.row)), begins[1:]), strict=True
    ):
        counts = columns[:, kinds].tocsr()
        left = np.flatnonzero(np.diff(counts.indptr))
        labels = table.member[left]
        if len(kinds) < 2 or len(np.unique(labels)) < 2:
            continue
        if least_p(np.unique(labels, return_counts=True)[1]) > level:
            untold += 1
            continue
        row = counts[left].toarray().astype(np.float64)
        rows.append(_Row(state, table.column[kinds], row, labels))
    most = max(LEAST, 2 * math.ceil(len(rows) / level))
    seed = int(model.seed[:16], 16)
    found = [
        permutation_p(row.counts, row.labels, np.random.default_rng([seed, row.state]), most)
        for row in rows
    ]
    adjusted = discovery_rates(found)
    moved = [
        _moved(row, p, q, table.groups)
        for row, p, q in zip(rows, found, adjusted, strict=True)
        if q <= level
    ]
    moved.sort(key=lambda one: (one.q, one.p, one.state))
    return Differences(tuple(moved), len(rows), untold, level)


def least_p(sizes: NDArray[np.int64]) -> float:
    """Return the least p-value that groups of so many recordings can have.

    It is one over the number of ways to part them; groups of equal size may change places.
    """
    ways = math.lgamma(sizes.sum() + 1) - sum(math.lgamma(size + 1) for size in sizes)
    alike = sum(math.lgamma(times + 1) for times in np.unique(sizes, return_counts=True)[1])
    return math.exp(min(alike - ways, 0.0))


def permutation_p(
    counts: Floats, labels: Ints, rng: np.random.Generator, most: int, enough: int = ENOUGH
) -> float:
    """Return the p-value of a difference between groups.

    `counts` (shape (r, k)): how often each recording went on in each way.
    `labels` (shape (r,)): the group of each recording.
    `most`: permutations at most; fewer once `enough` of them differ as much as what was seen.
    """
    groups = np.unique(labels)
    seen = _ratio(counts, labels[None, :], groups)[0]
    limit = seen - 1e-9 * max(1.0, abs(seen))
    done, beyond = 0, 0
    size = FIRST
    while done < most:
        number = max(1, min(size, most - done, BATCH // len(labels)))
        size *= 2
        drawn = rng.permuted(np.tile(labels, (number, 1)), axis=1)
        reached = np.cumsum(_ratio(counts, drawn, groups) >= limit)
        if beyond + reached[-1] >= enough:
            last = int(np.searchsorted(reached, enough - beyond)) + 1
            return enough / (done + last)
        done, beyond = done + number, beyond + int(reached[-1])
    return (beyond + 1) / (done + 1)


def _ratio(counts: Floats, labels: Ints, groups: Ints) -> Floats:
    """Return half the likelihood ratio, but for what no labels change, for each row of labels."""
    found = np.zeros(len(labels))
    for group in groups:
        inside = (labels == group).astype(np.float64) @ counts
        found += xlogy(inside, inside).sum(axis=1)
        total = inside.sum(axis=1)
        found -= xlogy(total, total)
    return found


def discovery_rates(p_values: Sequence[float]) -> list[float]:
    """Return the least false discovery rate at which each is found (Benjamini and Hochberg)."""
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    ranks = np.arange(1, len(values) + 1)
    scaled = values[order] * len(values) / ranks
    rates = np.empty(len(values))
    rates[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return [float(rate) for rate in rates]


def _moved(row: _Row, p: float, q: float, groups: Sequence[str]) -> Moved:
    names = np.unique(row.labels)
    inside = np.array([row.counts[row.labels == name].sum(axis=0) for name in names])
    each, every = inside.sum(axis=1, keepdims=True), inside.sum(axis=0)
    expected = each * every / every.sum()
    part = (inside - expected) ** 2 / expected
    at, way = np.unravel_index(int(np.argmax(part)), part.shape)
    rest = every.sum() - each[at, 0]
    return Moved(
        row.state, p, q, len(row.labels), groups[names[at]], int(row.targets[way]),
        float(inside[at, way] / each[at, 0]), float((every[way] - inside[at, way]) / rest),
    )  # fmt: skip
