"""Risk tables with numpy and scipy.

A bounded response has ways of its own. Any other deterministic automaton is solved on the product:
by backward induction, or without a horizon by a linear system.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.checking.interface import ENDED, RiskTable
from forewarn.checking.reachability import Certain, closed_classes, reach
from forewarn.checking.response import bounded as passage
from forewarn.checking.response import unbounded as idle
from forewarn.checking.response.operators import Countdown, countdown, is_countdown
from forewarn.errors import CheckingError, plural
from forewarn.logic.automaton import Automaton, horizon_notes

if TYPE_CHECKING:
    from forewarn.models.chain import Chain, Floats

PRECISION = 1e-10
MAX_PRODUCT = 400_000


def risk_table(
    chain: Chain,
    automaton: Automaton,
    classes: NDArray[np.int64],
    horizon: int | None,
    *,
    precision: float = PRECISION,
) -> RiskTable:
    """Return the probability of a violation for all states of the product.

    A terminal state is read once and then ends every pending obligation. An unseen state (no
    data, no smoothing) has no risk of its own: NaN. On the way of other states it counts as the
    end of what is known, without a violation: the point estimate leaves out what the model
    cannot tell, `notes` say how much probability that concerns, and bounds cover it.

    `chain`: the chain, n states.
    `automaton`: the property's monitor, m states.
    `classes`, shape (n,): letter class of each chain state (`label_states`).
    `horizon`: steps; None for the probability ever to violate.
    `precision`: relative error allowed where a bounded response is solved by iteration.
    Raises CheckingError if the arguments do not fit, or the accuracy of an unbounded risk cannot be
    assured.
    """
    check_arguments(chain, automaton, classes, horizon)
    values, notes = point_values(chain, automaton, classes, horizon, precision)
    notes += horizon_notes(automaton, horizon) or _never_seen(chain, automaton, classes, values)
    if chain.unseen.any():
        notes.append(_unseen_note(chain, horizon))
        values = mark_unseen(chain, automaton, values)
    return RiskTable(values=values, horizon=horizon, notes=tuple(notes))


def point_values(
    chain: Chain,
    automaton: Automaton,
    classes: NDArray[np.int64],
    horizon: int | None,
    precision: float = PRECISION,
    blocks: int = 1,
) -> tuple[Floats, list[str]]:
    """Return the table as numbers, shape (n, m), and notes on what the graph decides.

    `blocks` chains of equal size may stand side by side in one, without transitions between them.
    """
    if horizon is not None:
        if is_countdown(automaton):
            problem = _countdown(chain, automaton, classes, blocks)
            return passage.bounded(problem, horizon, precision), []
        return bounded_on_product(chain, automaton, classes, horizon, precision, blocks), []
    if is_countdown(automaton):
        try:
            problem = _countdown(chain, automaton, classes, blocks)
            values, sure = idle.unbounded(problem, precision)
            return values, _trivial_notes(chain, sure)
        except CheckingError:
            if chain.size * automaton.transitions.shape[0] > MAX_PRODUCT:
                raise
    values, sure = unbounded_on_product(chain, automaton, classes)
    first = automaton.initial
    return values, _trivial_notes(chain, Certain(sure.zero[:, first], sure.one[:, first]))


def _never_seen(
    chain: Chain, automaton: Automaton, classes: NDArray[np.int64], values: Floats
) -> list[str]:
    """Say if the estimate is 0 in every state, for want of a violation that was recorded."""
    if automaton.violated is None or not chain.live.any():
        return []
    entered = automaton.transitions[automaton.initial, np.maximum(classes, 0)]
    if values[np.flatnonzero(chain.live), entered[chain.live]].any():
        return []
    return [
        "the estimate is 0 because a violation, or a way to one, was never seen: only the bounds "
        "tell how likely it may be"
    ]


def _countdown(
    chain: Chain, automaton: Automaton, classes: NDArray[np.int64], blocks: int
) -> Countdown:
    return countdown(chain, classes, automaton.transitions.shape[0] - 2, blocks)


def mark_unseen(chain: Chain, automaton: Automaton, values: Floats) -> Floats:
    """Return `values` with NaN in unseen states, save where the verdict is already certain."""
    marked = values.copy()
    marked[chain.unseen] = np.nan
    if automaton.violated is not None:
        marked[:, automaton.violated] = 1.0
    if automaton.satisfied is not None:
        marked[:, automaton.satisfied] = 0.0
    return marked


def check_arguments(
    chain: Chain, automaton: Automaton, classes: NDArray[np.int64], horizon: int | None
) -> None:
    """Raise CheckingError unless the arguments of a checker fit together."""
    if classes.shape != (chain.size,) or classes.dtype.kind not in "iu":
        raise CheckingError(
            f"letter classes of shape {classes.shape} and type {classes.dtype}",
            accepted=f"whole numbers, shape ({chain.size},)",
        )
    if chain.size and not ENDED <= classes.min() <= classes.max() < automaton.transitions.shape[1]:
        raise CheckingError(
            f"letter classes from {classes.min()} to {classes.max()}",
            accepted=f"from {ENDED} to {automaton.transitions.shape[1] - 1}",
        )
    if horizon is not None and horizon < 0:
        raise CheckingError(f"a horizon of {horizon} steps", accepted="0 or more, or unbounded")


def _trivial_notes(chain: Chain, sure: Certain) -> list[str]:
    seen = ~(chain.unseen | chain.absorbing)
    if not seen.any():
        return []
    for mask, figure in ((sure.zero, 0), (sure.one, 1)):
        if mask[seen].all():
            closed = closed_classes(chain.augmented()).number
            classes = "closed class" if closed == 1 else "closed classes"
            return [
                f"without a horizon the risk is {figure} in every state (the chain has {closed} "
                f"{classes}), whatever the probabilities are; set a horizon"
            ]
    return []


def _unseen_note(chain: Chain, horizon: int | None) -> str:
    """Say how much probability leads to states that the model does not know."""
    reached = chain.unseen.astype(np.float64)
    fixed = ~chain.live
    steps = 1000 if horizon is None else min(horizon, 1000)
    for _ in range(steps):
        following = chain.apply(reached)
        following[fixed] = reached[fixed]
        if np.array_equal(following, reached):
            break
        reached = following
    known = chain.live
    worst = float(reached[known].max()) if known.any() else 0.0
    without = plural(int(chain.unseen.sum()), "state")
    return (
        f"{without} without data and smoothing: the risk is unknown, "
        f"and up to {worst:.3g} of the probability of other states leads there and is left out"
    )


#: Up to this horizon every step is taken; from then on they are looked at now and then.
LONG = 512
CHECK = 64


def entered_states(automaton: Automaton, classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the automaton state after reading each chain state, shape (n, m)."""
    return np.asarray(automaton.transitions.T[np.maximum(classes, 0)], dtype=np.int64)


def bounded_on_product(
    chain: Chain,
    automaton: Automaton,
    classes: NDArray[np.int64],
    horizon: int,
    precision: float = PRECISION,
    blocks: int = 1,
) -> Floats:
    """Return the table for a horizon of `horizon` steps, shape (n, m).

    `blocks` chains of equal size may stand side by side in one.
    """
    if horizon > LONG:
        return first_violations(chain, automaton, classes, horizon, precision, blocks).risk
    *_, last = backward_induction(chain, automaton, classes, horizon)
    return last


def backward_induction(
    chain: Chain, automaton: Automaton, classes: NDArray[np.int64], horizon: int
) -> Iterator[Floats]:
    """Yield the tables for 0, 1, ... `horizon` steps, shape (n, m)."""
    step = _Step(chain, automaton, classes)
    values = step.start
    yield values
    for _ in range(horizon):
        following = step(values)
        values = values.copy()
        values[:, step.moving] = following
        yield values


class _Step:
    """One step back, from values of all product states to those that may still change."""

    def __init__(self, chain: Chain, automaton: Automaton, classes: NDArray[np.int64]) -> None:
        self.start: Floats = np.zeros((chain.size, automaton.n_states))
        if automaton.violated is not None:
            self.start[:, automaton.violated] = 1.0
        known = {automaton.violated, automaton.satisfied}
        self.moving = np.array(
            [q for q in range(automaton.n_states) if q not in known], dtype=np.int64
        )
        self._apply = chain.apply
        self._entered = entered_states(automaton, classes)[:, self.moving]
        self._ended = classes == ENDED
        # Where a terminal state has been read, only a violation counts.
        self._stopped = ~chain.live | self._ended

    def __call__(self, values: Floats) -> Floats:
        after = np.take_along_axis(values, self._entered, axis=1)
        after[self._ended] = 0.0
        following = self._apply(after)
        following[self._stopped] = 0.0
        return following

    def spread(self, values: Floats) -> Floats:
        """Return values of all product states from those that may still change, 0 elsewhere."""
        everything = np.zeros_like(self.start)
        everything[:, self.moving] = values
        return everything


class FirstViolations(NamedTuple):
    """When violations come, from all product states."""

    risk: Floats  # shape (n, m): probability of a violation within the horizon
    moment: Floats  # shape (n, m): sum of ``h P(T = h)`` over the steps h up to the horizon


def first_violations(
    chain: Chain,
    automaton: Automaton,
    classes: NDArray[np.int64],
    horizon: int,
    precision: float = PRECISION,
    blocks: int = 1,
) -> FirstViolations:
    """Return risk and times within a long horizon, in the time that the chain takes to mix.

    The probability ``f_h`` that the first violation comes at step h follows from ``f_{h-1}`` by a
    non-negative linear map. So bounds of the ratios of one step hold for all later ones (Collatz
    and Wielandt): as soon as they are close enough, the rest is a geometric series.
    """
    step = _Step(chain, automaton, classes)
    now = step(step.start)
    total, moment = now.copy(), now.copy()
    for done in range(2, horizon + 1):
        now = step(step.spread(now))
        total += now
        moment += done * now
        left = horizon - done
        if left and done % CHECK == 0:
            rest = _geometric_rest(step, now, (total, moment / done), left, precision, blocks)
            if rest is not None:
                total += rest[0]
                moment += done * rest[0] + rest[1]
                break
    risk = step.spread(np.minimum(total, 1.0)) + step.start
    return FirstViolations(risk, step.spread(moment))


def _geometric_rest(
    step: _Step,
    now: Floats,
    before: tuple[Floats, Floats],
    left: int,
    precision: float,
    blocks: int,
) -> tuple[Floats, Floats] | None:
    """Return what all later steps bring, with its first moment; None if that is not certain.

    What is too small to matter, whatever becomes of it, may decay as it likes: it is left out of
    the vector whose lower bound counts.
    """
    shape = blocks, now.size // max(blocks, 1)
    seen = now.reshape(shape)
    high = _ratios(step, now).reshape(shape).max(axis=1, initial=0.0)[:, None]
    if not np.isfinite(high).all():
        return None
    most = geometric_sums(high, left)
    main = np.where(most[0] * seen <= precision * before[0].reshape(shape), 0.0, seen)
    ratios = _ratios(step, main.reshape(now.shape)).reshape(shape)
    low = np.where(main > 0, ratios, high).min(axis=1, initial=np.inf)[:, None]
    least = geometric_sums(low, left)
    for upper, lower, known in zip(most, least, before, strict=True):
        known_and_rest = known.reshape(shape) + upper * main
        if not ((upper - lower) * main <= precision * known_and_rest).all():
            return None
    total, moment = (0.5 * (u + v) * main for u, v in zip(most, least, strict=True))
    return total.reshape(now.shape), moment.reshape(now.shape)


def _ratios(step: _Step, values: Floats) -> Floats:
    """Return the ratio of one step for each product state, infinite where 0 grows."""
    after = step(step.spread(values))
    found = np.where(after > 0, np.inf, 0.0)
    np.divide(after, values, out=found, where=values > 0)
    return found


def geometric_sums(ratio: Floats, terms: int) -> tuple[Floats, Floats]:
    """Return ``sum_i r^i`` and ``sum_i i r^i`` for i = 1..terms, by doubling: nothing cancels."""
    total, moment = np.zeros_like(ratio), np.zeros_like(ratio)
    power, count = np.ones_like(ratio), 0
    for digit in f"{terms:b}":
        moment = moment + power * (moment + count * total)
        total = total + power * total
        power, count = power * power, 2 * count
        if digit == "1":
            power, count = power * ratio, count + 1
            total, moment = total + power, moment + count * power
    return total, moment


def product_graph(
    chain: Chain, automaton: Automaton, classes: NDArray[np.int64]
) -> tuple[sparse.csr_matrix, NDArray[np.bool_]]:
    """Return the product as one sparse chain and the mask of its violated nodes.

    Nodes are ``s * m + q`` for the product states, then ``(n + k) * m + q`` for the choice of a
    successor by prior k with the automaton in q (it takes no time), and one last node where all
    obligations end. Rows of nodes where nothing happens any more are empty.
    """
    n, m = chain.size, automaton.transitions.shape[0]
    g = chain.supports.shape[0]
    entered = entered_states(automaton, classes)
    states = np.arange(m)
    size = (n + g) * m + 1
    after = np.arange(n)[:, None] * m + entered
    after[classes == ENDED] = size - 1
    moves = chain.sparse.tocoo()
    live = chain.live & (classes != ENDED)
    keep = live[moves.row]
    rows = [(moves.row[keep, None] * m + states).ravel()]
    columns = [after[moves.col[keep]].ravel()]
    data = [np.repeat(moves.data[keep], m)]
    users = np.flatnonzero(live & (chain.prior > 0))
    rows.append((users[:, None] * m + states).ravel())
    columns.append(((n + chain.group[users][:, None]) * m + states).ravel())
    data.append(np.repeat(chain.prior[users], m))
    drawn = chain.supports.tocoo()
    rows.append(((n + drawn.row[:, None]) * m + states).ravel())
    columns.append(after[drawn.col].ravel())
    data.append(np.repeat(drawn.data, m))
    violated = np.zeros(size, dtype=bool)
    if automaton.violated is not None:
        violated[: n * m].reshape(n, m)[:, automaton.violated] = True
    row, column, value = np.concatenate(rows), np.concatenate(columns), np.concatenate(data)
    inner = ~violated[row]
    graph = sparse.csr_matrix((value[inner], (row[inner], column[inner])), shape=(size, size))
    return graph, violated


def unbounded_on_product(
    chain: Chain, automaton: Automaton, classes: NDArray[np.int64]
) -> tuple[Floats, Certain]:
    """Return the table without horizon, shape (n, m), and what the graph alone decides."""
    n, m = chain.size, automaton.transitions.shape[0]
    graph, violated = product_graph(chain, automaton, classes)
    values, sure = reach(graph, violated)
    values = values[: n * m].reshape(n, m)
    return values, Certain(sure.zero[: n * m].reshape(n, m), sure.one[: n * m].reshape(n, m))
