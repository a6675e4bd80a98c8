"""Does the next state depend on more than the present one? Tests on second-order counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

SIGNIFICANCE = 0.01
LEAST_EXPECTED = 5.0
Floats = NDArray[np.float64]


class MarkovTest(NamedTuple):
    """Result for one state.

    `state`: the state in the middle.
    `visits`: triples counted through it.
    `statistic`: likelihood ratio G of "the next state depends on the one before" against "it does
        not".
    `freedom`: degrees of freedom.
    `p_value`: probability of such a G, or a greater one, were the state Markov.
    `information`: bits that the state before tells about the next one: the size of the effect.
    `violated`: whether the state is not Markov, with Holm's correction for the number of states.
    """

    state: int
    visits: int
    statistic: float
    freedom: int
    p_value: float
    information: float
    violated: bool

    @property
    def advice(self) -> str:
        """What to do about it, empty if nothing."""
        if not self.violated:
            return ""
        return (
            "the next state depends on earlier ones: add a predicate that separates the "
            "cases, or set `history: 2`"
        )


def markov_tests(
    triples: Mapping[tuple[int, int, int], int], significance: float = SIGNIFICANCE
) -> list[MarkovTest]:
    """Test each state for dependence of its successor on its predecessor, least p-value first.

    For a state j, the table of (state before, state after) is tested for independence by the
    likelihood ratio (Anderson and Goodman 1957, order 1 against order 2). Rows and columns
    too rare for the chi-square approximation are pooled until every expected count is at least 5;
    states where nothing is left to compare are left out.

    `triples`: counts of (state before, state, state after).
    `significance`: probability to find any violation although all states are Markov.
    """
    tables: dict[int, Counter[tuple[int, int]]] = {}
    for (before, state, after), count in triples.items():
        tables.setdefault(state, Counter())[before, after] += count
    found = [result for state, table in tables.items() if (result := _test(state, table))]
    found.sort(key=lambda result: (result.p_value, -result.statistic, result.state))
    results: list[MarkovTest] = []
    rejecting = True
    for k, result in enumerate(found):
        rejecting = rejecting and result.p_value <= significance / (len(found) - k)
        results.append(result._replace(violated=rejecting))
    return results


def _test(state: int, table: Counter[tuple[int, int]]) -> MarkovTest | None:
    befores = sorted({before for before, _ in table})
    afters = sorted({after for _, after in table})
    cells: Floats = np.zeros((len(befores), len(afters)))
    for (before, after), count in table.items():
        cells[befores.index(before), afters.index(after)] += count
    cells = _pool(cells)
    if min(cells.shape) < 2:
        return None
    total = cells.sum()
    expected = cells.sum(axis=1)[:, None] * cells.sum(axis=0) / total
    statistic = 2.0 * float(special.xlogy(cells, cells / expected).sum())
    freedom = (cells.shape[0] - 1) * (cells.shape[1] - 1)
    return MarkovTest(
        state=state,
        visits=int(total),
        statistic=statistic,
        freedom=freedom,
        p_value=float(special.chdtrc(freedom, max(statistic, 0.0))),
        information=max(statistic, 0.0) / (2.0 * float(total) * float(np.log(2.0))),
        violated=False,
    )


def _pool(cells: Floats) -> Floats:
    """Join the rarest row or column with the next rarest until all expected counts suffice."""
    while min(cells.shape) >= 2:
        rows, columns = cells.sum(axis=1), cells.sum(axis=0)
        if rows.min() * columns.min() / cells.sum() >= LEAST_EXPECTED:
            break
        # Shorten the side whose rarest line is the rarer one.
        if rows.min() * cells.shape[0] <= columns.min() * cells.shape[1]:
            cells = _join(cells)
        else:
            cells = _join(cells.T).T
    return cells


def _join(cells: Floats) -> Floats:
    order = np.argsort(cells.sum(axis=1), kind="stable")
    rest = cells[order[2:]]
    return np.vstack([cells[order[0]] + cells[order[1]], rest])
