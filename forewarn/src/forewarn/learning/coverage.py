"""Enough data? The PAC requirement on the visits of each state.

ProbGuard (arXiv 2508.00500), Algorithm 1 and its appendix, after Bazille, Genest, Jegourel and Sun,
"Global PAC Bounds for Learning Discrete Time Markov Chains", CAV 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import ModelError
from forewarn.models.counts import CountModel

Floats = NDArray[np.float64]

EPSILON = 0.05
DELTA = 0.05
MARGIN = 11.0 / 10.0


@dataclass(frozen=True, eq=False)
class Coverage:
    """How far each state is from the visits it needs.

    `visits` (shape (n,)): transitions counted out of each state.
    `required` (shape (n,)): visits it needs; 0 for terminal states.
    `epsilon`, `delta`: error allowed, and the probability to exceed it.
    `factor`: sensitivity B of the risk to errors of the transition probabilities; 1 leaves it out.
    """

    visits: NDArray[np.int64]
    required: NDArray[np.int64]
    epsilon: float
    delta: float
    factor: float

    @property
    def missing(self) -> NDArray[np.int64]:
        """Visits that each state still needs, shape (n,)."""
        return np.asarray(np.maximum(self.required - self.visits, 0))

    @property
    def covered(self) -> NDArray[np.bool_]:
        """Mask of the states that need no more visits, shape (n,)."""
        return np.asarray(self.visits >= self.required)

    @property
    def share(self) -> float:
        """Share of the required visits that have been made; 1 when learning may stop."""
        total = float(self.required.sum())
        return float(np.minimum(self.visits, self.required).sum()) / total if total else 1.0

    @property
    def complete(self) -> bool:
        """Whether every state is covered."""
        return bool(self.covered.all())


def coverage(
    model: CountModel, epsilon: float = EPSILON, delta: float = DELTA, factor: float = 1.0
) -> Coverage:
    """Return which states have been visited often enough.

    A state p needs ``n_p >= (11/10 B)^2 max_q H(n_p, n_pq, epsilon, delta / |S|)`` visits. The
    paper's line 13 has the maximum inside the square, which would ask for the least of the
    requirements; here the largest counts. The published code leaves out B.

    `epsilon`: error allowed to the risk, in (0, 1).
    `delta`: probability with which it may be exceeded, in (0, 1).
    `factor`: b, at least 0 and finite: how much an error of the transition probabilities can change
        the risk (`forewarn.checking.sensitivity.reach_sensitivity`). With 1, `epsilon` is the error
        of each transition probability instead.

    Raises ModelError if a number is out of its range.
    """
    for name, value, high in (("epsilon", epsilon, 1.0), ("delta", delta, 1.0)):
        if not 0.0 < value < high:
            raise ModelError(f"{name} is {value}", accepted="a number between 0 and 1", key=name)
    if not 0.0 <= factor < float("inf"):
        raise ModelError(
            f"the sensitivity is {factor}",
            accepted="a finite number >= 0; set a horizon where it is infinite",
            key="factor",
        )
    states = max(int((~model.terminal).sum()), 1)
    visits = model.visits.astype(np.float64)
    coo = model.counts.tocoo()
    share = coo.data / np.maximum(visits[coo.row], 1.0)
    # A successor never seen asks for as much as one always seen; an unvisited state does not
    # say which its successors are: the largest requirement there is.
    nearest: Floats = np.full(model.size, 0.5)
    np.minimum.at(nearest, coo.row, np.abs(0.5 - share))
    nearest[model.visits == 0] = 0.0
    needed = requirement(nearest, epsilon, delta / states) * (MARGIN * factor) ** 2
    required = np.ceil(np.minimum(needed, 2.0**62)).astype(np.int64)
    required[model.terminal] = 0
    return Coverage(model.visits, required, epsilon, delta, factor)


def requirement(distance: Floats, epsilon: float, delta: float) -> Floats:
    """Return ``H``, the visits that one transition needs, as a function of ``|1/2 - n_pq / n_p|``.

    ``H = (2 / epsilon^2) ln(2 / delta) (1/4 - (|1/2 - n_pq / n_p| - 2 epsilon / 3)^2)``, at least 0
    (Chen 2015, used by Bazille et al.). Where the estimate is within ``2 epsilon / 3`` of 1/2 the
    variance is taken at 1/2.

    `distance`: distance of the estimate from 1/2, in [0, 1/2].
    `epsilon`, `delta`: error allowed to the probability, and the probability to exceed it.
    """
    inner = np.maximum(distance - 2.0 * epsilon / 3.0, 0.0)
    bracket = np.maximum(0.25 - inner**2, 0.0)
    return np.asarray(2.0 / epsilon**2 * np.log(2.0 / delta) * bracket)
