"""How much risk changes with the transition probabilities, and with how they are estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.checking.numeric import risk_table
from forewarn.checking.sound import total_error
from forewarn.models.counts import Alpha, CountModel, Smoothing
from forewarn.models.estimation import estimate_chain

if TYPE_CHECKING:
    from forewarn.logic.automaton import Automaton
    from forewarn.models.chain import Chain, Floats


def reach_sensitivity(model: CountModel, chain: Chain, horizon: int | None) -> float:
    """Return B with ``|P_M(phi) - P_M^(phi)| <= B max |P - P^|`` for every property phi.

    Risk is the solution x of ``x = P x + b``, so that ``x - x^ = (I - Q^)^-1 (P - P^) x``. In a row
    of k successors, errors of at most e that sum to zero change the product with x in [0, 1] by at
    most ``floor(k / 2) e``. So ``B = max (I - Q^)^-1 floor(k / 2)`` over the states, with Q^ the
    estimate among states that are not terminal; within a horizon of H steps
    ``B = max sum_{h < H} Q^^h floor(k / 2)``. All successors never seen count as one. This
    bound plays the part that the conditioning number has in Bazille et al.; it is derived here, it
    is not their number, and it takes the worst case at every step.

    Returns B; infinite without a horizon if the chain does not surely end.
    """
    seen = np.bincount(model.weights.tocoo().row, minlength=model.size)
    spread = np.where(chain.live, (seen + 1) // 2, 0).astype(np.float64)
    if horizon is None:
        error = total_error(chain, spread)
        return float(error[~chain.unseen].max(initial=0.0))
    total: Floats = np.zeros(chain.size)
    for _ in range(horizon):
        following = spread + np.where(chain.live, chain.apply(total), 0.0)
        if np.array_equal(following, total):
            break
        total = following
    return float(total.max(initial=0.0))


class EstimatorRisk(NamedTuple):
    """Risk under one way to estimate the chain."""

    name: str  # ``alpha: sparse``, ``alpha: 1`` or ``maximum likelihood``
    mean: float  # risk with no obligation pending, mean over ticks as counted
    difference: float  # greatest difference to the model's own estimator over the visited states
    state: int  # index of the state where that is


def estimator_sensitivity(
    model: CountModel, automaton: Automaton, classes: NDArray[np.int64], horizon: int | None
) -> list[EstimatorRisk]:
    """Return the risk of a property under three estimators, the model's own first."""
    candidates = model.smoothing.candidates
    choices = [model.smoothing]
    alphas: tuple[Alpha, ...] = ("sparse", 1.0, "none")
    others = (Smoothing(alpha, candidates) for alpha in alphas)
    choices.extend(choice for choice in others if choice != model.smoothing)
    idle = automaton.initial
    tables = [
        risk_table(estimate_chain(model, choice), automaton, classes, horizon).values[:, idle]
        for choice in choices
    ]
    return [
        _compared(model, choice, values, tables[0])
        for choice, values in zip(choices, tables, strict=True)
    ]


def _compared(model: CountModel, choice: Smoothing, values: Floats, own: Floats) -> EstimatorRisk:
    known = (model.visits > 0) & ~np.isnan(values) & ~np.isnan(own)
    weight = choice.alpha if isinstance(choice.alpha, str) else f"{choice.alpha:g}"
    name = "maximum likelihood" if weight == "none" else f"alpha: {weight}"
    if not known.any():
        return EstimatorRisk(name, float("nan"), float("nan"), 0)
    away = np.where(known, np.abs(values - own), -1.0)
    mean = float(np.average(values[known], weights=model.visits[known]))
    return EstimatorRisk(name, mean, float(away.max()), int(away.argmax()))
