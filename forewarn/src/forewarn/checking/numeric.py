"""Risk tables with numpy and scipy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from forewarn.checking import product as general
from forewarn.checking.graph import Certain, closed_classes
from forewarn.checking.interface import RiskTable
from forewarn.checking.labels import ENDED
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

    Parameters
    ----------
    chain : Chain
        The chain, n states.
    automaton : Automaton
        The property's monitor, m states.
    classes : ndarray of int, shape (n,)
        Letter class of each chain state (`label_states`).
    horizon : int or None
        Steps; None for the probability ever to violate.
    precision : float
        Relative error allowed where a bounded response is solved by iteration.

    Raises
    ------
    CheckingError
        If the arguments do not fit, or the accuracy of an unbounded risk cannot be assured.
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
        return general.bounded(chain, automaton, classes, horizon, precision, blocks), []
    if is_countdown(automaton):
        try:
            problem = _countdown(chain, automaton, classes, blocks)
            values, sure = idle.unbounded(problem, precision)
            return values, _trivial_notes(chain, sure)
        except CheckingError:
            if chain.size * automaton.transitions.shape[0] > MAX_PRODUCT:
                raise
    values, sure = general.unbounded(chain, automaton, classes)
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
