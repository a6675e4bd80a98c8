"""Sound bounds: what every chain that the counts allow at a confidence level agrees on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special
from scipy.sparse import linalg

from forewarn.checking.interface import ENDED
from forewarn.checking.numeric import entered_states, mark_unseen, risk_table
from forewarn.checking.reachability import backward_reachable
from forewarn.errors import CheckingError
from forewarn.models.estimation import clopper_pearson, estimate_chain

if TYPE_CHECKING:
    from forewarn.checking.interface import RiskTable
    from forewarn.logic.automaton import Automaton
    from forewarn.models.chain import Chain, Floats
    from forewarn.models.counts import CountModel, Smoothing

CONFIDENCE = 0.95
VACUOUS_WIDTH = 0.9
MAX_UNIVERSE = 1 << 40


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals for the transition probabilities of a chain, all valid at once.

    `rows`, `columns`, shape (k,): transitions that were seen, row by row.
    `lower`, `upper`, shape (k,): Clopper-Pearson bounds of each.
    `elsewhere`, shape (n,): upper bound of the probability to go where a state was never seen to
    go.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    lower: Floats
    upper: Floats
    elsewhere: Floats
    size: int  # number of states n

    @cached_property
    def padded(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, Floats]:
        """Seen transitions as one line of equal length for each state with data.

        Returns the states (r,), and successors, lower bounds and spare probability, all (r, d).
        """
        number = np.bincount(self.rows, minlength=self.size)
        states = np.flatnonzero(number)
        line = np.full(self.size, -1)
        line[states] = np.arange(states.size)
        place = np.arange(self.rows.size) - np.repeat(np.cumsum(number) - number, number)
        shape = (states.size, int(number.max(initial=0)))
        successors = np.zeros(shape, dtype=np.int64)
        lower, spare = np.zeros(shape), np.zeros(shape)
        at = (line[self.rows], place)
        successors[at] = self.columns
        lower[at] = self.lower
        spare[at] = self.upper - self.lower
        return states, successors, lower, spare


def transition_intervals(
    model: CountModel, confidence: float = CONFIDENCE, universe: int | None = None
) -> Intervals:
    """Return intervals that hold for all transitions at once, with probability `confidence`.

    Half of the error goes to the transitions seen, by Clopper-Pearson intervals and a union over
    all that might have been seen; half to what was never seen: of all sets S of D successors that
    a row of n visits may have been confined to, one whose true probability is below ``1 - e`` was
    hit n times with probability at most ``C(k, D) (1 - e)^n``, so that
    ``e = 1 - (delta / (k C(k, D)))^(1 / n)`` bounds the unseen mass by a union over D and S.
    The numbers of visits are taken as given, as in the PAC literature.

    `confidence`: probability that all intervals hold.
    `universe`: number k of states there can be at all; by default all vectors of predicates and all
    terminal labels, or the states of the model if its candidates are the admissible ones.
    """
    states = universe_of(model) if universe is None else universe
    found = row_intervals(model.counts, confidence, states)
    found.elsewhere[model.terminal] = 0.0
    return found


def row_intervals(counts: sparse.csr_matrix, confidence: float, universe: int) -> Intervals:
    """Return `transition_intervals` for rows of counts: those of states, or of choices.

    `counts`, shape (n, m): what followed; a row without counts may go anywhere.
    `confidence`, `universe`: as in `transition_intervals`.
    """
    if not 0.0 < confidence < 1.0:
        raise CheckingError(f"a confidence of {confidence}", accepted="between 0 and 1")
    counts = counts.tocsr()
    counts.eliminate_zeros()
    counts.sort_indices()
    coo = counts.tocoo()
    visits = np.asarray(counts.sum(axis=1)).ravel()
    seen, n = coo.data, visits[coo.row]
    known = np.maximum(np.diff(counts.indptr), 1)
    active = visits > 0
    states = np.maximum(universe, known)
    delta = 1.0 - confidence
    tail = 0.25 * delta / max(int(active.sum()), 1)
    # Which successors are seen is random, so lower bounds need a union over all that there can be.
    # A probability above its upper bound exceeds 1 / n, and fewer than n of a row can do that.
    lower, _ = clopper_pearson(seen, n, (tail / states)[coo.row])
    _, upper = clopper_pearson(seen, n, (tail / np.minimum(states, np.maximum(visits, 1)))[coo.row])
    share = np.log(0.5 * delta / max(int(active.sum()), 1))
    ways = (
        special.gammaln(states + 1)
        - special.gammaln(known + 1)
        - special.gammaln(states - known + 1)
    )
    missing = -np.expm1((share - np.log(states) - ways) / np.maximum(visits, 1))
    # A row that has been everywhere has nowhere else to go.
    missing = np.where(states == known, 0.0, missing)
    elsewhere = np.where(active, missing, 1.0)
    rows, columns = coo.row.astype(np.int64), coo.col.astype(np.int64)
    return Intervals(rows, columns, lower, upper, elsewhere, counts.shape[0])


def universe_of(model: CountModel) -> int:
    """Return how many states there can be at all."""
    if model.smoothing.candidates == "admissible":
        return model.size
    vocabulary = model.vocabulary
    return min(vocabulary.cardinality + len(vocabulary.terminals), MAX_UNIVERSE)


def sound_table(
    model: CountModel,
    automaton: Automaton,
    classes: NDArray[np.int64],
    horizon: int | None,
    *,
    confidence: float = CONFIDENCE,
    smoothing: Smoothing | None = None,
    universe: int | None = None,
) -> RiskTable:
    """Return a risk table with bounds that hold for the true chain at a confidence level.

    Within a horizon, robust backward induction takes the worst (and the best) chain that the
    intervals allow, again at each step, with a successor *elsewhere* whose value is 1 (0). Without
    one, the bound is ``|x - x^| <= (I - Q^)^-1 w`` with w the total variation that each row
    allows. An estimate that smoothing leads out of these bounds widens them.

    `confidence`: probability that the bounds hold, for all states at once.
    `smoothing`: of the point estimate, instead of the model's own choice.
    `universe`: see `transition_intervals`.
    """
    chain = estimate_chain(model, smoothing)
    table = risk_table(chain, automaton, classes, horizon)
    intervals = transition_intervals(model, confidence, universe)
    if horizon is None:
        lower, upper = _unbounded(chain, intervals, automaton, table.values)
    else:
        arguments = (chain, intervals, automaton, classes, horizon)
        lower, upper = _robust(*arguments, worst=False), _robust(*arguments, worst=True)
    if chain.unseen.any():
        unknown = np.isnan(mark_unseen(chain, automaton, table.values))
        lower[unknown], upper[unknown] = 0.0, 1.0
    notes = table.notes + _vacuous_note(chain, automaton, lower, upper)
    notes += _outside_note(table.values, lower, upper)
    lower, upper = np.fmin(lower, table.values), np.fmax(upper, table.values)
    return replace(
        table, lower=lower, upper=upper, kind="sound", confidence=confidence, notes=notes
    )


def _robust(
    chain: Chain,
    intervals: Intervals,
    automaton: Automaton,
    classes: NDArray[np.int64],
    horizon: int,
    worst: bool,
) -> Floats:
    """Return the greatest (or least) risk that any chain within the intervals has, (n, m)."""
    n, m = chain.size, automaton.transitions.shape[0]
    values: Floats = np.zeros((n, m))
    if automaton.violated is None:
        return values
    values[:, automaton.violated] = 1.0
    entered = entered_states(automaton, classes)
    ended = classes == ENDED
    stopped = chain.absorbing | ended
    blank = ~stopped & (intervals.elsewhere >= 1.0)
    states, successors, _, _ = intervals.padded
    for _ in range(horizon):
        after = np.take_along_axis(values, entered, axis=1)
        after[ended] = 0.0
        following: Floats = np.zeros((n, m))
        following[states] = _extreme(intervals, after[successors], worst)
        following[blank] = float(worst)
        following[stopped] = 0.0
        following[:, automaton.violated] = 1.0
        if automaton.satisfied is not None:
            following[:, automaton.satisfied] = 0.0
        if np.array_equal(following, values):
            break
        values = following
    return values


def _extreme(intervals: Intervals, values: Floats, worst: bool) -> Floats:
    """Return the extreme expectation of `values` (r, d, m) over the intervals, shape (r, m).

    All lower bounds are given out first; what is left of the probability goes elsewhere and then
    to the most (least) valuable successors, as far as their upper bounds allow.
    """
    states, _, lower, spare = intervals.padded
    # Successors last: they are what is sorted and summed.
    values = np.ascontiguousarray(values.transpose(0, 2, 1))
    base = np.einsum("rd,rmd->rm", lower, values)
    left = (1.0 - lower.sum(axis=1))[:, None]
    # Elsewhere counts as 1 at worst and 0 at best; only what must go to known states is bound.
    away = np.minimum(intervals.elsewhere[states][:, None], left)
    budget = np.broadcast_to(left - away, base.shape)
    order = np.argsort(-values if worst else values, axis=2)
    ordered = np.take_along_axis(values, order, axis=2)
    room = spare[np.arange(len(spare))[:, None, None], order]
    before = np.cumsum(room, axis=2) - room
    given = np.clip(budget[:, :, None] - before, 0.0, room)
    found = base + np.einsum("rmd,rmd->rm", given, ordered)
    # What the upper bounds do not take can only be elsewhere.
    lost = np.maximum(budget - room.sum(axis=2), 0.0)
    return np.asarray(found + (away + lost if worst else 0.0))


def _unbounded(
    chain: Chain, intervals: Intervals, automaton: Automaton, values: Floats
) -> tuple[Floats, Floats]:
    radius = row_radii(chain, intervals)
    error = total_error(chain, radius)[:, None]
    point = np.where(np.isnan(values), 0.5, values)
    lower, upper = np.maximum(point - error, 0.0), np.minimum(point + error, 1.0)
    for state, value in ((automaton.violated, 1.0), (automaton.satisfied, 0.0)):
        if state is not None:
            lower[:, state] = upper[:, state] = value
    return lower, upper


def row_radii(chain: Chain, intervals: Intervals) -> Floats:
    """Return how far each row of any chain within the intervals can be from the estimate.

    The distance is total variation, half the sum of absolute differences, shape (n,).
    """
    n = intervals.size
    drawn = chain.supports[chain.group[intervals.rows], intervals.columns]
    counted = chain.sparse[intervals.rows, intervals.columns]
    estimate = np.asarray(counted).ravel()
    estimate = estimate + chain.prior[intervals.rows] * np.asarray(drawn).ravel()
    known = np.bincount(intervals.rows, weights=estimate, minlength=n)
    up = np.bincount(
        intervals.rows, weights=np.maximum(intervals.upper - estimate, 0.0), minlength=n
    )
    down = np.bincount(
        intervals.rows, weights=np.maximum(estimate - intervals.lower, 0.0), minlength=n
    )
    unknown = np.where(chain.live, 1.0 - known, 0.0)
    radius = np.minimum(up + intervals.elsewhere, down + np.maximum(unknown, 0.0))
    radius[chain.absorbing] = 0.0
    return np.asarray(np.clip(np.where(chain.unseen, 1.0, radius), 0.0, 1.0))


def total_error(chain: Chain, radius: Floats) -> Floats:
    """Return ``(I - Q)^-1 radius``, Q the estimate among states that are not terminal, (n,).

    A state from which the estimate does not surely reach a terminal state gets infinity.
    """
    n = chain.size
    matrix = chain.augmented()
    number = matrix.shape[0] - n
    live = np.append(chain.live, np.ones(number, dtype=bool))
    inner = sparse.csr_matrix(matrix.multiply(live[:, None]).multiply(live))
    leaves = np.asarray(matrix[:, ~live].sum(axis=1)).ravel() > 0
    # A state that can reach one which never leaves has no bound.
    stuck = live & ~backward_reachable(inner, live & leaves)
    finite = live & ~backward_reachable(inner, stuck)
    error = np.full(n + number, np.inf)
    error[~live] = 0.0
    if finite.any():
        system = sparse.identity(int(finite.sum())) - inner[finite][:, finite]
        right = np.append(radius, np.zeros(number))[finite]
        solved = np.atleast_1d(linalg.spsolve(sparse.csc_matrix(system), right))
        error[finite] = np.where(np.isfinite(solved) & (solved >= 0), solved, np.inf)
    error[:n][chain.unseen] = np.inf
    return error[:n]


def _outside_note(values: Floats, lower: Floats, upper: Floats) -> tuple[str, ...]:
    """Say where smoothing leads the estimate out of what the counts allow."""
    beyond = np.maximum(lower - values, values - upper)
    outside = beyond > 0.0
    if not outside.any():
        return ()
    return (
        f"smoothing puts the estimate outside of what the counts allow, by up to "
        f"{np.nanmax(beyond):.3g} ({int(outside.sum())} product states): the bounds are widened to "
        "it; alpha: sparse or none stays closer to the counts",
    )


def _vacuous_note(
    chain: Chain, automaton: Automaton, lower: Floats, upper: Floats
) -> tuple[str, ...]:
    """Say in how many states the bounds tell next to nothing."""
    start = automaton.initial
    width = (upper - lower)[chain.live, start]
    if not width.size or not (width >= VACUOUS_WIDTH).any():
        return ()
    share = float((width >= VACUOUS_WIDTH).mean())
    return (
        f"the sound bounds are vacuous (wider than {VACUOUS_WIDTH}) in {share:.0%} of the states: "
        "take a shorter horizon, more data, or credible bounds",
    )
