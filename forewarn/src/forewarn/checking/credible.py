"""Credible bounds: chains drawn from the posterior, all solved at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.checking.interface import ENDED
from forewarn.checking.numeric import mark_unseen, point_values, risk_table
from forewarn.checking.response.operators import TRIGGER, is_countdown
from forewarn.errors import CheckingError
from forewarn.models.chain import Chain, Floats
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import Successors, estimate_chain, missing_weights, valid_successors

if TYPE_CHECKING:
    from forewarn.checking.interface import RiskTable
    from forewarn.logic.automaton import Automaton

SAMPLES = 200
CONFIDENCE = 0.95
PRECISION = 1e-4
STICKS = 10
MAX_BLOCK_ENTRIES = 2_000_000
MAX_ENTRIES = 20_000_000
HEAVY = 2.0
MAX_TABLE_BYTES = 256 * 1024 * 1024


class RiskQuery(NamedTuple):
    """One property to ask of a chain."""

    automaton: Automaton
    classes: NDArray[np.int64]  # shape (n,): letter class of each chain state
    horizon: int | None  # steps; None is unbounded


def credible_tables(
    model: CountModel,
    questions: Sequence[RiskQuery],
    *,
    samples: int = SAMPLES,
    confidence: float = CONFIDENCE,
    complete: bool = False,
) -> list[RiskTable]:
    """Return risk tables with credible bounds, the same sampled chains serving all properties.

    Each row of a sampled chain is drawn from its Dirichlet posterior, ``count + alpha`` for each
    valid successor; with `alpha` 'none' the prior is the one of 'sparse', for a posterior needs
    one. A step may also lead to a state that the model does not have (`missing_weights`): every
    other sampled chain takes it for a violation, or for the surest way to one, and the rest for the
    end of the episode. Sampling is seeded from the model's counts: the same counts give the same
    bounds.

    `confidence`: posterior probability between the bounds, half of the rest on either side.
    `complete`: there are no other states than the model's.
    """
    chain = estimate_chain(model, model.smoothing)
    tables = [risk_table(chain, *question) for question in questions]
    drawn = _affordable(tables, samples)
    values = [np.empty((drawn, *table.values.shape), dtype=np.float32) for table in tables]
    missing = None if complete else missing_weights(model)
    sampler = PosteriorSampler(model, model.smoothing, missing)
    done = 0
    while done < drawn:
        count = min(drawn - done, sampler.affordable)
        block = sampler.draw(count)
        for question, kept in zip(questions, values, strict=True):
            automaton, classes = question.automaton, np.tile(question.classes, (count, 1))
            if sampler.width > model.size:
                automaton, hazard = _with_hazard(automaton)
                fates = np.where((done + np.arange(count)) % 2 == 0, hazard, ENDED)
                classes = np.column_stack([classes, fates])
            found, _ = point_values(
                block, automaton, classes.ravel(), question.horizon, PRECISION, count
            )
            kept[done : done + count] = found.reshape(count, sampler.width, -1)[:, : model.size]
        done += count
    return [
        _with_bounds(table, question, chain, kept, confidence)
        for table, question, kept in zip(tables, questions, values, strict=True)
    ]


def _with_hazard(automaton: Automaton) -> tuple[Automaton, int]:
    """Return an automaton, and the letter class of a state in which the worst goes on for ever.

    That is a trigger without response, or a letter that violates at once.
    """
    if automaton.violated is None:
        return automaton, ENDED
    if is_countdown(automaton):
        return automaton, TRIGGER
    worst = np.full((automaton.n_states, 1), automaton.violated, dtype=np.int32)
    if automaton.satisfied is not None:
        worst[automaton.satisfied] = automaton.satisfied
    transitions = np.hstack([automaton.transitions, worst])
    return replace(automaton, transitions=transitions), automaton.n_classes


def _affordable(tables: Sequence[RiskTable], samples: int) -> int:
    size = sum(table.values.size for table in tables) * 4
    return max(20, min(samples, MAX_TABLE_BYTES // max(size, 1)))


def _with_bounds(
    table: RiskTable,
    question: RiskQuery,
    chain: Chain,
    kept: NDArray[np.float32],
    confidence: float,
) -> RiskTable:
    tail = (1.0 - confidence) / 2.0
    kept.sort(axis=0)
    lower, upper = (_quantile(kept, share) for share in (tail, 1.0 - tail))
    # The estimate is not a draw of its own posterior: keep it within its bounds.
    known = ~np.isnan(table.values)
    lower[known] = np.minimum(lower[known], table.values[known])
    upper[known] = np.maximum(upper[known], table.values[known])
    if chain.unseen.any():
        unknown = np.isnan(mark_unseen(chain, question.automaton, table.values))
        lower[unknown], upper[unknown] = 0.0, 1.0
    notes = table.notes
    if len(kept) < SAMPLES:
        notes = (*notes, f"credible bounds come from {len(kept)} sampled chains")
    return replace(
        table, lower=lower, upper=upper, kind="credible", confidence=confidence, notes=notes
    )


def _quantile(ordered: NDArray[np.float32], share: float) -> Floats:
    """Return a quantile along the first axis of a sorted array, interpolated.

    The k-th of S draws stands for the share ``k / (S + 1)``: that a further draw lies between the
    first and the last is not certain.
    """
    at = min(max(share * (len(ordered) + 1) - 1.0, 0.0), len(ordered) - 1.0)
    low = int(at)
    part = at - low
    high = min(low + 1, len(ordered) - 1)
    return np.asarray(
        (1.0 - part) * ordered[low].astype(np.float64) + part * ordered[high].astype(np.float64)
    )


class PosteriorSampler:
    """Draws chains from the posterior of a count model.

    Successors that were seen have their own gamma variable each. The mass of those that were not
    is broken like a stick (Sethuraman 1994) among successors drawn at random, which is the same
    Dirichlet distribution and keeps a sampled row sparse; what is left after ten pieces, a
    thousandth on average, stays with the last one. Under a heavy prior (`alpha` 1, say), where that
    would be too coarse, every successor has its own variable.

    `smoothing`: the prior.
    `missing`, shape (n,): prior weight of a state that the model does not have; it comes last in
    each sampled chain, which never leaves it.
    """

    def __init__(
        self, model: CountModel, smoothing: Smoothing, missing: Floats | None = None
    ) -> None:
        if smoothing.alpha == "none":
            smoothing = Smoothing("sparse", smoothing.candidates)
        self._rng = np.random.default_rng(int(model.seed[:16], 16))
        self._size = model.size
        self._missing = np.zeros(model.size) if missing is None else missing
        self._new = np.flatnonzero(self._missing)
        self.width = model.size + bool(self._new.size)
        self._terminal = model.terminal
        successors = valid_successors(model, smoothing, with_terminals=True)
        weights = np.array([smoothing.weight(int(k)) for k in successors.numbers])
        weights[model.terminal] = 0.0
        seen = model.weights.copy()
        seen.eliminate_zeros()
        if (weights * successors.numbers > HEAVY).any():
            seen = _with_all(seen, successors, model.terminal)
        self._known = seen.tocoo()
        row, column = self._known.row, self._known.col
        valid = successors.masks[successors.group[row], column]
        self._shapes = self._known.data + weights[row] * valid
        free = successors.numbers - np.bincount(row, weights=valid, minlength=model.size)
        self._concentration = weights * free
        self._rows = np.flatnonzero(self._concentration > 0)
        self._others = [
            _others(seen, successors.masks[successors.group[i]], int(i)) for i in self._rows
        ]
        empty = np.asarray(model.weights.sum(axis=1)).ravel() == 0
        self._unseen = empty & (successors.numbers == 0) & ~model.terminal

    @property
    def affordable(self) -> int:
        """How many chains fit into one block-diagonal one."""
        entries = self._known.nnz + self._rows.size * STICKS
        return max(1, int(MAX_BLOCK_ENTRIES // max(entries, 1)))

    def draw(self, count: int) -> Chain:
        """Return `count` sampled chains side by side in one of ``count * width`` states."""
        n, rng, rows = self.width, self._rng, self._rows
        seen = rng.standard_gamma(self._shapes, size=(count, self._shapes.size))
        rest = rng.standard_gamma(self._concentration[rows], size=(count, rows.size))
        shift = n * np.arange(count)[:, None]
        where = (shift + self._known.row).ravel()
        summed = np.bincount(where, weights=seen.ravel(), minlength=count * n)
        total: Floats = summed.astype(np.float64).reshape(count, n)
        total[:, rows] += rest
        shares, left = self._break_sticks(count)
        shares[-1] += left
        targets = self._draw_targets(count)
        lost = rng.standard_gamma(self._missing[self._new], size=(count, self._new.size))
        total[:, self._new] += lost
        total[total == 0] = 1.0
        stays = np.arange(self._size, n)
        ends = np.flatnonzero(self._terminal)
        parts = [
            (self._known.row, self._known.col, seen / total[:, self._known.row]),
            (np.broadcast_to(rows, targets.shape), targets, shares * rest / total[:, rows]),
            (ends, ends, np.ones((count, ends.size))),
            (self._new, np.full_like(self._new, n - 1), lost / total[:, self._new]),
            (stays, stays, np.ones((count, stays.size))),
        ]
        matrix = sparse.csr_matrix(
            (
                np.concatenate([data.ravel() for _, _, data in parts]),
                (
                    np.concatenate([(shift + row).ravel() for row, _, _ in parts]),
                    np.concatenate([(shift + column).ravel() for _, column, _ in parts]),
                ),
            ),
            shape=(count * n, count * n),
        )
        return Chain(
            sparse=matrix,
            prior=np.zeros(count * n),
            group=np.zeros(count * n, dtype=np.int64),
            supports=sparse.csr_matrix((1, count * n), dtype=np.float64),
            absorbing=self._tiled(self._terminal, count),
            unseen=self._tiled(self._unseen, count),
        )

    def _tiled(self, mask: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
        return np.tile(np.append(mask, np.zeros(self.width - self._size, dtype=bool)), count)

    def _break_sticks(self, count: int) -> tuple[Floats, Floats]:
        """Return the pieces of each row's unseen mass, (sticks, count, rows), and what is left."""
        pieces = self._rng.beta(
            1.0, self._concentration[self._rows], size=(STICKS, count, self._rows.size)
        )
        left = np.ones(pieces.shape[1:])
        for piece in pieces:
            share = left * piece
            left = left - share
            piece[...] = share
        return pieces, left

    def _draw_targets(self, count: int) -> NDArray[np.int64]:
        """Return the successor that gets each piece, shape (sticks, count, rows)."""
        targets = np.empty((STICKS, count, self._rows.size), dtype=np.int64)
        for k, others in enumerate(self._others):
            targets[:, :, k] = others[self._rng.integers(0, others.size, size=(STICKS, count))]
        return targets


def _with_all(
    seen: sparse.csr_matrix, successors: Successors, terminal: NDArray[np.bool_]
) -> sparse.csr_matrix:
    """Return the counts with an entry, zero if need be, for every valid successor."""
    n = seen.shape[0]
    if n * n > MAX_ENTRIES:
        raise CheckingError(
            f"credible bounds under a heavy prior on {n} states need {n * n} random numbers a draw",
            accepted="alpha: sparse, or fewer states",
        )
    marks = successors.masks[successors.group] & ~terminal[:, None]
    rows, columns = np.nonzero(marks | (seen.toarray() > 0))
    data = np.asarray(seen[rows, columns]).ravel()
    # Explicit zeros: csr_matrix keeps them when built from sorted parts.
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    return sparse.csr_matrix((data, columns, indptr), shape=(n, n))


def _others(seen: sparse.csr_matrix, mask: NDArray[np.bool_], row: int) -> NDArray[np.int64]:
    """Return the valid successors of a row that were never seen."""
    free = mask.copy()
    free[seen.indices[seen.indptr[row] : seen.indptr[row + 1]]] = False
    return np.flatnonzero(free)
