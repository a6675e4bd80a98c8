"""From counts to probabilities: a chain, smoothed over valid transitions, and exact bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from forewarn.errors import ModelError
from forewarn.models.chain import Chain
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.process import DecisionProcess, count_actions, process_of

if TYPE_CHECKING:
    from forewarn.models.chain import Floats

MAX_PRIOR = 20_000_000


class Successors(NamedTuple):
    """The valid successors of every state, grouped by equal sets.

    `group` (shape (n,)): row of `masks` that applies to a state.
    `masks` (shape (g, n)): candidate successors that no rule forbids.
    `numbers` (shape (n,)): how many valid successors each state has (``k[i]``); 0 for terminal
        states.
    """

    group: NDArray[np.int64]
    masks: NDArray[np.bool_]
    numbers: NDArray[np.int64]


def valid_successors(
    model: CountModel, smoothing: Smoothing, with_terminals: bool = False
) -> Successors:
    """Return which states may follow which, by the candidates' choice and declared rules.

    `with_terminals`: take terminal states for candidates even if no recording ended in them.
    """
    candidates: NDArray[np.bool_] = np.ones(model.size, dtype=bool)
    if smoothing.candidates == "observed":
        candidates = model.observed | model.terminal if with_terminals else model.observed
    forbidden = model.forbidden
    group = np.zeros(model.size, dtype=np.int64)
    patterns: dict[bytes, int] = {b"": 0}
    masks = [candidates]
    for i in np.flatnonzero(np.diff(forbidden.indptr)):
        part = slice(forbidden.indptr[i], forbidden.indptr[i + 1])
        banned = np.sort(forbidden.indices[part][forbidden.data[part]])
        key = banned.tobytes()
        if key not in patterns:
            patterns[key] = len(masks)
            mask = candidates.copy()
            mask[banned] = False
            masks.append(mask)
        group[i] = patterns[key]
    stacked = np.array(masks)
    numbers = stacked.sum(axis=1).astype(np.int64)[group]
    numbers[model.terminal] = 0
    return Successors(group, stacked, numbers)


def estimate_chain(model: CountModel, smoothing: Smoothing | None = None) -> Chain:
    """Return the chain ``P[i, j] = (n[i, j] + alpha) / (n[i] + k[i] * alpha)`` (ProbGuard eq. 1).

    The sum of the denominator and the prior run over the ``k[i]`` valid successors of i only;
    a forbidden transition has probability 0, a terminal state stays where it is. A state with
    neither counts nor prior is unseen: its row is zero. What is borrowed counts like visits.

    `smoothing`: used instead of the model's own choice.
    """
    choice = model.smoothing if smoothing is None else smoothing
    successors = valid_successors(model, choice)
    weights = np.array([choice.weight(int(k)) for k in successors.numbers])
    prior = weights * successors.numbers
    prior[model.terminal] = 0.0
    total = np.asarray(model.weights.sum(axis=1)).ravel() + prior
    unseen = (total == 0) & ~model.terminal
    scale = np.divide(1.0, total, out=np.zeros(model.size), where=total > 0)
    counted = sparse.diags(scale) @ model.weights
    stay = sparse.diags(model.terminal.astype(np.float64))
    matrix = sparse.csr_matrix(counted + stay)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    sizes = successors.masks.sum(axis=1)
    shares = np.divide(1.0, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
    return Chain(
        sparse=matrix,
        prior=prior * scale,
        group=successors.group,
        supports=sparse.csr_matrix(successors.masks * shares[:, None]),
        absorbing=model.terminal,
        unseen=unseen,
    )


def smoothed_process(model: CountModel, smoothing: Smoothing | None = None) -> DecisionProcess:
    """Return the process ``P[s, a, t] = (C(s, a, t) + alpha) / (C(s, a) + k[s] * alpha)``.

    The valid successors of a state are those of the chain, and all that followed an imposed
    action. An action that was never seen in a state is no choice there, whatever the smoothing.

    `smoothing`: used instead of the model's own choice.

    Raises ModelError if the prior would fill more than 20 million transitions.
    """
    choice = model.smoothing if smoothing is None else smoothing
    counted = count_actions(model.steps, model.states)
    if choice.alpha in {"none", 0}:
        return process_of(counted)
    more = len(counted.states) - model.size
    followed = np.asarray(counted.counts.sum(axis=0)).ravel() > 0
    # Codes that the chain does not have come last; no rule is known about them.
    valid = valid_successors(model, Smoothing(choice.alpha, "admissible"))
    masks = np.pad(valid.masks, ((0, 0), (0, more)), constant_values=True)
    if choice.candidates == "observed":
        masks &= np.pad(model.observed, (0, more), constant_values=True) | followed
    group = np.pad(valid.group, (0, more))[counted.owner]
    numbers = masks.sum(axis=1)
    acted = counted.acted
    filled = int(numbers[group[acted]].sum())
    if filled > MAX_PRIOR:
        raise ModelError(
            f"smoothing fills {filled:,} transitions of the decision process",
            accepted=f"at most {MAX_PRIOR:,}; leave smoothing out (alpha: none)",
            key="smoothing.alpha",
        )
    weight = np.array([choice.weight(int(k)) for k in numbers])
    prior = (
        sparse.diags(np.where(acted, weight[group], 0.0))
        @ sparse.csr_matrix(masks.astype(np.float64))[group]
    )
    return process_of(counted, sparse.csr_matrix(prior))


def missing_weights(model: CountModel) -> NDArray[np.float64]:
    """Return the prior weight, for each state, of a next state that the model does not have.

    A row meets a successor that is new to it every so often; at times the state is new to the
    model as well. Good's estimate of how often (1953) leaves one out: of all distinct transitions,
    the share of those without which a state would not be known. A row is expected to meet another
    successor once, and once more for each that it has met once only. One is added on both sides of
    the share, so that what was never seen is never ruled out. Summed over all visits this is the
    Good-Turing rate of new states; rows with many visits carry little of it.

    Returns weights in units of visits, like the weights of `Smoothing`; 0 in terminal states, and
    everywhere if the candidates are all admissible states or no other combination of predicates is
    left (shape (n,)).
    """
    plain = int((model.observed & ~model.terminal).sum())
    if model.smoothing.candidates == "admissible" or plain >= model.vocabulary.cardinality:
        return np.zeros(model.size)
    seen = model.counts.tocoo()
    kept = (seen.data > 0) & ~model.terminal[seen.col]
    row, column, data = seen.row[kept], seen.col[kept], seen.data[kept]
    arrives = row != column
    ways = np.bincount(column[arrives], minlength=model.size)
    share = (int((ways == 1).sum()) + 1.0) / (len(data) + 1.0)
    once = np.bincount(row[arrives & (data == 1)], minlength=model.size)
    return np.where(model.terminal, 0.0, min(share, 1.0) * (1.0 + once))


def clopper_pearson(seen: Any, trials: Any, tail: Any) -> tuple[Floats, Floats]:
    """Return the exact bounds of proportions (Clopper and Pearson, 1934).

    `seen`, `trials`: how many of how many, ``0 <= seen <= trials``.
    `tail`: probability with which each of the two bounds may fail.

    `lower, upper`: 0 and 1 of no trials.
    """
    k, n = (np.asarray(part, dtype=np.float64) for part in np.broadcast_arrays(seen, trials))
    none, full = k <= 0, k >= n
    lower = np.where(none, 0.0, special.betaincinv(np.where(none, 1.0, k), n - k + 1.0, tail))
    missed = np.where(full, 1.0, n - k)
    upper = np.where(full, 1.0, special.betaincinv(k + 1.0, missed, 1.0 - tail))
    return lower, upper
