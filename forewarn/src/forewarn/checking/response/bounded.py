"""Risk of a bounded response within a horizon, by the times of the first violation.

``f_h`` is the probability that the first violation comes at exactly step h, with no obligation
pending now; ``g_h`` the same with an obligation just raised. Nothing fails before step L + 1,
where ``f_{L+1} = P_A P_N^L 1``; from then on

    f_{h+1} = P_I f_h + P_A g_h
    g_{h+1} = P_B f_h + P_N g_h - P_N^L P_B f_{h-L}

so that a step costs two products with the chain, not L of them. Once all ratios ``f_{h+1} / f_h``
of the last L steps lie within ``[low, high]``, so do all later ones, for the step is a
non-negative linear map (Collatz and Wielandt): the rest is a geometric series whose error is
known, and long horizons cost no more than the time the chain takes to mix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.checking.response.operators import Countdown, as_table, waiting_powers

if TYPE_CHECKING:
    from forewarn.models.chain import Floats

BLOCK = 64
MAX_HISTORY = 1 << 24
PRECISION = 1e-10
POWER_PRECISION = 1e-13


class Passage(NamedTuple):
    """First violations after an idle state, step by step, and the geometric rest.

    `ratio`, shape (blocks,): factor from one step to the next for all later steps; None if `first`
    is complete.
    """

    first: Floats  # shape (k + 1, n): ``f_h`` for h = L + 1 .. L + 1 + k.
    ratio: Floats | None


def bounded(problem: Countdown, horizon: int, precision: float = PRECISION) -> Floats:
    """Return the table for a horizon of `horizon` steps, shape (n, L + 2).

    `precision`: relative error allowed to the geometric rest.
    """
    n, layers = problem.size, problem.layers
    if horizon <= layers:
        waits = np.zeros((layers, n))
        waits[:horizon] = waiting_powers(problem, horizon)[1:]
        return as_table(np.zeros(n), waits)
    if (horizon - layers) * n > MAX_HISTORY:
        return _by_layers(problem, horizon)
    powers = waiting_powers(problem, layers)
    steps = horizon - layers - 1
    passage = first_passage(problem, powers[-1], steps, precision)
    total = passage.first.sum(axis=0)
    if passage.ratio is None:
        return as_table(total, powers[1:] + layers_after_answers(problem, passage.first))
    known = passage.first.shape[0] - 1
    idle = total + _spread(problem, geometric(passage.ratio, steps - known)) * passage.first[-1]
    rest = _geometric_layers(problem, passage.first[-1], passage.ratio, total, steps - known)
    return as_table(idle, powers[1:] + rest)


def first_passage(problem: Countdown, expired: Floats, steps: int, precision: float) -> Passage:
    """Return the first violations of `steps` steps after the earliest one.

    `expired`, shape (n,): ``P_N^L 1``.
    `steps`: steps after step L + 1.
    """
    n, layers = problem.size, problem.layers
    first = np.empty((steps + 1, n))
    first[0] = problem.raised(expired)
    ratios = np.empty((steps, 2, problem.blocks))
    raised: Floats = np.zeros(n)
    total = first[0].copy()
    done = 0
    while done < steps:
        # Obligations raised in this block expire after it, so their share is known before it.
        until = layers if done < layers else done + max(layers, 1)
        count = min(BLOCK, steps - done, until - done)
        expiring = None
        if layers and done >= layers:
            expiring = _expire(problem, first[done - layers : done - layers + count])
        raised = _advance(problem, first[done : done + count + 1], raised, expiring)
        ratios[done : done + count] = _ratios(first[done : done + count + 1], problem.blocks)
        total += first[done + 1 : done + count + 1].sum(axis=0)
        done += count
        if layers < done < steps:
            window = ratios[done - layers - 1 : done]
            ratio = _settled(problem, window, first[done], total, steps - done, precision)
            if ratio is not None:
                return Passage(first[: done + 1], ratio)
    return Passage(first, None)


def _advance(problem: Countdown, rows: Floats, raised: Floats, expiring: Floats | None) -> Floats:
    """Fill ``rows[1:]`` with the steps that follow ``rows[0]``; return the last ``g``."""
    if not problem.layers:
        for k in range(len(rows) - 1):
            rows[k + 1] = problem.idle(rows[k])
        return raised
    n = problem.size
    state: Floats = np.concatenate([rows[0], raised])
    step = problem.step
    for k in range(len(rows) - 1):
        state = step(state)
        if expiring is not None:
            rest = state[n:]
            rest -= expiring[k]
            np.maximum(rest, 0.0, out=rest)
        rows[k + 1] = state[:n]
    return np.asarray(state[n:])


def _expire(problem: Countdown, first: Floats) -> Floats:
    """Return ``P_N^L P_B f`` for each row f, shape (k, n)."""
    answered = problem.answered(np.ascontiguousarray(first.T))
    power = problem.expiry
    if power is None:
        return np.ascontiguousarray(wait(problem, answered, problem.layers).T)
    columns = answered.reshape(problem.blocks, -1, answered.shape[1])
    return np.ascontiguousarray((power @ columns).reshape(answered.shape).T)


def _ratios(rows: Floats, blocks: int = 1) -> Floats:
    """Return the least and greatest ratio of each row to the one before, shape (k, 2, blocks)."""
    before, after = rows[:-1], rows[1:]
    low = np.full(before.shape, np.inf)
    with np.errstate(over="ignore"):  # beside next to nothing, anything is infinitely much
        np.divide(after, before, out=low, where=before > 0)
    high = low
    if not np.isfinite(low).all():
        high = np.where((before > 0) | (after > 0), low, 0.0)
    shape = (len(before), blocks, -1)
    return np.stack([low.reshape(shape).min(axis=2), high.reshape(shape).max(axis=2)], axis=1)


def _settled(
    problem: Countdown, window: Floats, last: Floats, total: Floats, left: int, precision: float
) -> Floats | None:
    """Return the ratio of all later steps, shape (blocks,), if its error does not matter."""
    low, high = window[:, 0].min(axis=0), window[:, 1].max(axis=0)
    # Blocks that never violate have neither bound.
    low = np.where(high == 0.0, 0.0, low)
    most = geometric(np.where(np.isfinite(high), high, 2.0), left)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and np.isfinite(most).all()):
        return None
    spread = _spread(problem, most - geometric(low, left))
    good = (spread * last <= precision * total).all()
    return np.asarray(0.5 * (low + high)) if good else None


def _spread(problem: Countdown, values: Floats) -> Floats:
    """Return one value for each state from one for each block, along the last axis."""
    return np.repeat(values, problem.size // problem.blocks, axis=-1)


def geometric(ratio: Floats, terms: int | NDArray[np.int64]) -> Floats:
    """Return ``sum_{i = 1..terms} ratio^i``; for negative `terms`, minus the terms undone.

    An array of terms, none of them negative, is broadcast against the ratios.

    ``geometric(r, -t)`` is ``-sum_{i = 0..t-1} r^-i``, so that the value at a time k of a series
    known at time k0 is ``total[k0] + geometric(r, k - k0) * last`` on both sides of k0.
    """
    positive = np.where(ratio > 0, ratio, 1.0)
    if isinstance(terms, int) and terms < 0:
        powers = positive[..., None] ** -np.arange(-terms, dtype=np.float64)
        return np.where(ratio > 0, -powers.sum(axis=-1), 0.0)
    gap = 1.0 - positive
    safe = np.where(gap == 0.0, 1.0, gap)
    with np.errstate(over="ignore"):
        grown = -positive * np.expm1(terms * np.log(positive)) / safe
    closed = np.where(gap == 0.0, terms, grown)
    return np.where(ratio > 0, closed, 0.0)


def _sums(ratio: Floats, terms: NDArray[np.int64]) -> Floats:
    """Return `geometric` for each of some falling terms, shape (k, blocks)."""
    undone = [geometric(ratio, term)[None] for term in terms[terms < 0].tolist()]
    return np.concatenate([geometric(ratio, terms[terms >= 0][:, None]), *undone])


def wait(problem: Countdown, values: Floats, ticks: int) -> Floats:
    """Return ``P_N^ticks values`` for `values` of shape (n, k).

    Stops early where the product has become a multiple of the one before: non-negative maps
    keep the bounds of the ratio.
    """
    for done in range(1, ticks + 1):
        following = problem.waiting(values)
        left = ticks - done
        if left and done % 8 == 0:
            pair = np.array([values.ravel(), following.ravel()])
            low, high = (float(bound) for bound in _ratios(pair).ravel())
            if high == 0.0:
                return following
            if low > 0 and left * (high - low) <= POWER_PRECISION * low:
                return np.asarray(following * (0.5 * (low + high)) ** left)
        values = following
    return values


def layers_after_answers(problem: Countdown, first: Floats) -> Floats:
    """Return what the waiting layers bring after an answer, shape (L, n).

    For layer r this is ``sum_{j < r} P_N^j P_B X(H - 1 - j)`` with X the violations up to a
    time, of which `first` has the increments.
    """
    layers = problem.layers
    if not layers:
        return np.empty((0, problem.size))
    total = np.zeros((layers, problem.size))
    known = np.cumsum(first[:-1], axis=0)[::-1][:layers]
    total[: len(known)] = known
    later = problem.answered(np.ascontiguousarray(total.T))
    if problem.dense_waiting is not None:
        return _prefix_sums(problem.dense_waiting, later, problem.blocks).T
    # A Horner scheme for all layers at once: column j joins at term j.
    columns = np.zeros((problem.size, layers))
    for j in range(len(known) - 1, -1, -1):
        part = columns[:, j:]
        if j < len(known) - 1:
            part[:, 1:] = problem.waiting(np.ascontiguousarray(part[:, 1:]))
        part += later[:, j, None]
    return columns.T


def _prefix_sums(matrix: Floats, terms: Floats, blocks: int) -> Floats:
    """Return ``sum_{j <= r} matrix^j terms[:, j]`` for all r, shape (n, L), by doubling."""
    length = terms.shape[1]
    padded = 1 << (length - 1).bit_length()
    sums = np.zeros((blocks, terms.shape[0] // blocks, padded))
    sums[:, :, :length] = terms.reshape(blocks, -1, length)
    power, size = matrix, 1
    while size < padded:
        pairs = sums.reshape(blocks, sums.shape[1], -1, 2, size)
        right = np.ascontiguousarray(pairs[:, :, :, 1])
        moved = (power @ right.reshape(blocks, sums.shape[1], -1)).reshape(right.shape)
        pairs[:, :, :, 1] = moved + pairs[:, :, :, 0, -1:]
        size *= 2
        if size < padded:
            power = power @ power
    return sums[:, :, :length].reshape(terms.shape)


def _geometric_layers(
    problem: Countdown, last: Floats, ratio: Floats, total: Floats, left: int
) -> Floats:
    """Do what `layers_after_answers` does where violations are a geometric series, (L, n).

    `last`, `total`, shape (n,): first violations at the last step that is known, and up to it.
    `ratio`, shape (blocks,): factor from step to step.
    `left`: steps from the last known one to the horizon.
    """
    pair: Floats = problem.answered(np.column_stack([total, last]))
    result = _spread(problem, _sums(ratio, left - 1 - np.arange(problem.layers)))
    running: Floats = np.zeros(problem.size)
    for j in range(problem.layers):
        running = running + pair[:, 0] + result[j] * pair[:, 1]
        result[j] = running
        if j + 1 < problem.layers:
            pair = problem.waiting(pair)
    return result


def _by_layers(problem: Countdown, horizon: int) -> Floats:
    """Return the table by plain backward induction over all layers, in little memory."""
    n, layers = problem.size, problem.layers
    idle: Floats = np.zeros(n)
    waits: Floats = np.zeros((n, layers))
    for _ in range(horizon):
        last = waits[:, -1] if layers else np.ones(n)
        following: Floats = problem.idle(idle) + problem.raised(last)
        if layers:
            below = np.concatenate([np.ones((n, 1)), waits[:, :-1]], axis=1)
            waits = problem.answered(idle)[:, None] + problem.waiting(below)
        idle = following
    return as_table(idle, waits.T)
