"""When: expected time to the violation, given that there is one within the horizon."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from forewarn.checking.numeric import check_arguments
from forewarn.checking.product import first_violations
from forewarn.checking.response.bounded import MAX_HISTORY, first_passage, layers_after_answers
from forewarn.checking.response.operators import (
    Countdown,
    as_layers,
    countdown,
    is_countdown,
    waiting_powers,
)

if TYPE_CHECKING:
    from forewarn.logic.automaton import Automaton
    from forewarn.models.chain import Chain, Floats

#: A countdown takes every step. Where there are more of them, a small product is looked at as it
#: is: it may stop as soon as its chain has mixed.
MANY_STEPS = 10_000
SMALL_PRODUCT = 20_000


def expected_steps(
    chain: Chain, automaton: Automaton, classes: NDArray[np.int64], horizon: int
) -> Floats:
    """Return ``E[T | T <= H]``, T the steps to the violation, for all product states, (n, m).

    0 where the property is violated already, NaN where it
    cannot be within the horizon.

    Parameters
    ----------
    horizon : int
        Steps H.
    """
    check_arguments(chain, automaton, classes, horizon)
    layers = automaton.transitions.shape[0] - 2
    taken = max(horizon - layers, 1)
    long = taken > MANY_STEPS and chain.size * automaton.n_states <= SMALL_PRODUCT
    if is_countdown(automaton) and taken * chain.size <= MAX_HISTORY and not long:
        risk, summed = _countdown_sums(countdown(chain, classes, layers), horizon)
        later = np.maximum(horizon * risk - summed, 0.0)
    else:
        risk, later = first_violations(chain, automaton, classes, horizon)
    result = np.divide(later, risk, out=np.full(risk.shape, np.nan), where=risk > 0)
    result[chain.unseen] = np.nan
    if automaton.violated is not None:
        result[:, automaton.violated] = 0.0
    return np.asarray(result)


def _countdown_sums(problem: Countdown, horizon: int) -> tuple[Floats, Floats]:
    """Return the risk within the horizon, and the sum of the risks within less, (n, L + 2)."""
    n, layers = problem.size, problem.layers
    powers = waiting_powers(problem, layers)
    waits = np.arange(1, layers + 1)[:, None]
    alone = np.where(waits <= horizon, powers[1:], 0.0)
    alone_sum = np.maximum(horizon - waits, 0) * powers[1:]
    violated = np.ones(n)
    if horizon <= layers:
        none = np.zeros(n)
        return (
            as_layers(none, alone, violated),
            as_layers(none, alone_sum, horizon * violated),
        )
    # Every step is needed, so no geometric rest: a precision of less than nothing.
    first = first_passage(problem, powers[-1], horizon - layers - 1, -1.0).first
    total = np.cumsum(first, axis=0)
    before = np.concatenate([np.zeros((1, n)), total[:-1]])
    risk = as_layers(total[-1], alone + layers_after_answers(problem, first), violated)
    later = alone_sum + layers_after_answers(problem, before)
    return risk, as_layers(total[:-1].sum(axis=0), later, horizon * violated)
