"""An additive model of the logit over predicates and the automaton's state.

States that were hardly visited borrow from those that share a predicate with them. The model is a
ridge logistic regression over product states, fitted by Newton's method (Hoerl and Kennard, 1970;
le Cessie and van Houwelingen, 1992), alone or with all pairs of predicates.
"""

from __future__ import annotations

import numpy as np

from forewarn.learning.estimates.problem import Floats, Problem, Sample, Setting
from forewarn.learning.logistic import least_logistic

RIDGES = (300.0, 100.0, 30.0, 10.0, 3.0, 1.0)
MAX_PAIRED = 16
"""Predicates with which pairs are tried: a fit takes the cube of the number of terms."""
STEPS = 60
CLOSE = 1e-10


class Logistic:
    """The additive model; a setting is a ridge, and how many predicates a term has at most."""

    name = "logistic"

    def settings(self, problem: Problem) -> tuple[Setting, ...]:
        """Return the ridges, first without and then with pairs."""
        orders = (1.0, 2.0) if 2 <= problem.atoms.shape[1] <= MAX_PAIRED else (1.0,)
        return tuple((ridge, order) for order in orders for ridge in RIDGES)

    def table(self, sample: Sample, setting: Setting) -> Floats:
        """Fit, and return the model's probabilities of all product states."""
        ridge, order = setting
        followed, visits = sample.followed, sample.visits
        if not 0 < followed.sum() < visits.sum():
            return np.full(visits.shape, sample.share)
        terms = design(sample.problem.atoms, int(order))
        state, automaton = np.nonzero(visits)
        columns = np.eye(visits.shape[1])
        rows = np.hstack([np.ones((len(state), 1)), terms[state], columns[automaton]])
        weights = fit_logit(rows, followed[state, automaton], visits[state, automaton], ridge)
        width = terms.shape[1]
        logit = weights[0] + (terms @ weights[1 : 1 + width])[:, None] + weights[1 + width :]
        return np.asarray(1 / (1 + np.exp(-np.clip(logit, -700, 700))), dtype=np.float64)

    def words(self, setting: Setting) -> str:
        """Say what was chosen."""
        return f"ridge {setting[0]:g}" + (", with pairs of predicates" if setting[1] > 1 else "")


def design(atoms: Floats, order: int) -> Floats:
    """Return the terms of each state: predicates, and with order 2 their products."""
    if order < 2:
        return atoms
    one, other = np.triu_indices(atoms.shape[1], 1)
    return np.hstack([atoms, atoms[:, one] * atoms[:, other]])


def fit_logit(rows: Floats, followed: Floats, visits: Floats, ridge: float) -> Floats:
    """Return the weights of a logistic regression; the first column's are not shrunk.

    `rows` (shape (k, d)): the first column is 1.
    `followed`, `visits` (shape (k,)): how often what is predicted came, of how many times.
    `ridge`: the loss, summed over visits, has half of it times the sum of squares added.
    """
    penalty = np.full(rows.shape[1], ridge)
    penalty[0] = 0.0
    weights = np.zeros(rows.shape[1])
    weights[0] = np.log(followed.sum() / (visits.sum() - followed.sum()))

    def loss(at: Floats, odds: Floats) -> float:
        fit = np.sum(visits * np.logaddexp(0, odds) - followed * odds)
        return float(fit + 0.5 * np.sum(penalty * at * at))

    def slopes(at: Floats, share: Floats) -> tuple[Floats, Floats]:
        gradient = rows.T @ (visits * share - followed) + penalty * at
        return gradient, (rows.T * (visits * share * (1 - share))) @ rows + np.diag(penalty + 1e-12)

    return least_logistic(rows, weights, loss, slopes, STEPS, CLOSE)
