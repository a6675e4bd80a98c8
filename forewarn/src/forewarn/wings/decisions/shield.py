"""The risk of every action in every state, and the safest one that still reaches success."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.errors import CheckingError
from forewarn.models.process import DecisionProcess, Mask
from forewarn.wings.decisions.choices import ChoiceGraph
from forewarn.wings.decisions.mdp import optimal
from forewarn.wings.decisions.process_bounds import BoundedValues, CountedProcess, Query

if TYPE_CHECKING:
    from forewarn.models.chain import Floats

EQUAL = 1e-9
MAX_VARIABLES = 20_000
MAX_PROGRAMMES = 2_000


class Figure(NamedTuple):
    """A probability with its bounds."""

    estimate: float
    lower: float
    upper: float


class ActionRisk(NamedTuple):
    """What an action that was seen so often leads to, if it is taken first.

    Probabilities of failure are those if the safest actions follow, the most dangerous ones, or the
    recorded mix; of success if the actions follow that are best for it, or the recorded mix.
    """

    action: str
    visits: int
    failure: Figure
    failure_worst: Figure
    failure_recorded: Figure
    success: Figure
    success_recorded: Figure


class ShieldDecision(NamedTuple):
    """The safest action of a state that still reaches success, and what else could be done.

    It is `feasible` if some way to go on after it reaches success with the probability asked for;
    else it is the safest of all. `failure` is the least among those ways, a lower bound of it
    unless `exact`, for want of a linear programme; `success` the greatest after the action. Of the
    alternatives the recommended one comes first, then the safer ones.
    """

    action: str
    feasible: bool
    failure: float
    success: float
    exact: bool
    alternatives: tuple[ActionRisk, ...]


@dataclass(frozen=True, eq=False)
class ShieldTable:
    """Decisions for all states in which something was seen done, by state code.

    Failure counts within `horizon` steps, or ever; success may take its time.
    """

    decisions: Mapping[int, ShieldDecision]
    minimum_success: float
    horizon: int | None
    confidence: float
    sound: bool

    def decide(self, state: int) -> ShieldDecision | None:
        """Return the decision for a state code; None if nothing is known of its actions."""
        return self.decisions.get(state)


def shield_table(
    counted: CountedProcess,
    failure: Mask,
    success: Mask,
    minimum_success: float,
    horizon: int | None = None,
) -> ShieldTable:
    """Return the safest action of every state that reaches success with a probability.

    The safest action is the one after which some way to go on has the least probability of failure,
    among the ways that reach success with `minimum_success` from the state on. Where the safest way
    of all does that, nothing has to be solved. Elsewhere, and without a horizon, the least is the
    optimum of a linear programme over how often each choice is taken (Etessami et al. 2008). The
    same is asked again in each state that follows. Raises CheckingError if a state is failure and
    success.
    """
    if not 0.0 <= minimum_success <= 1.0:
        raise CheckingError(
            f"a minimum probability of success of {minimum_success}", accepted="0 to 1"
        )
    both = np.flatnonzero(failure & success)
    if both.size:
        raise CheckingError(
            f"state {counted.counted.states[both[0]]} is failure and success",
            accepted="states that are one of them at most",
        )
    risks = _Risks(counted, failure, success, horizon)
    acted = counted.counted.acted & ~(failure | success)[counted.process.owner]
    programmes = [0]
    decisions = {
        counted.counted.states[s]: _decide(counted, risks, s, minimum_success, programmes)
        for s in np.unique(counted.process.owner[acted]).tolist()
    }
    sound = not counted.grown
    return ShieldTable(decisions, minimum_success, horizon, counted.confidence, sound)


class _Risks:
    """Values of all choices, computed once."""

    def __init__(
        self, counted: CountedProcess, failure: Mask, success: Mask, horizon: int | None
    ) -> None:
        self.failing, self.succeeding, self.horizon = failure, success, horizon

        def fails(choosing: str) -> BoundedValues:
            query = Query(failure, ~success, choosing, horizon)  # type: ignore[arg-type]
            return counted.value(query)

        def succeeds(choosing: str) -> BoundedValues:
            query = Query(success, ~failure, choosing, None)  # type: ignore[arg-type]
            return counted.value(query)

        self.figures = (
            fails("least"), fails("greatest"), fails("recorded"),
            succeeds("greatest"), succeeds("recorded"),
        )  # fmt: skip
        self.counts = np.asarray(counted.counted.counts.sum(axis=1)).ravel()
        process = counted.process
        self.least = np.nan_to_num(self.figures[0].choice_estimate)
        self.recorded = np.nan_to_num(self.figures[2].choice_estimate)
        self.most = np.nan_to_num(self.figures[3].choice_estimate)
        self.on_safest = _success_on_safest(process, failure, success, horizon, self.least)

    def of(self, counted: CountedProcess, choice: int) -> ActionRisk:
        return ActionRisk(
            counted.counted.actions[choice],
            int(self.counts[choice]),
            *(
                Figure(
                    float(found.choice_estimate[choice]),
                    float(found.choice_lower[choice]),
                    float(found.choice_upper[choice]),
                )
                for found in self.figures
            ),
        )


def _success_on_safest(
    process: DecisionProcess, failure: Mask, success: Mask, horizon: int | None, least: Floats
) -> Floats:
    """Return the success of a choice if safest choices follow, shape (c,); 0 where not known.

    Any way that takes only choices of least failure has the least failure itself, so that the
    greatest success among them is free.
    """
    if horizon is not None:
        return np.zeros(process.owner.size)
    best = np.minimum.reduceat(least, process.groups[:-1])
    kept = least <= best[process.owner] + EQUAL * 1e-3
    groups = np.concatenate([[0], np.cumsum(np.add.reduceat(kept, process.groups[:-1]))])
    safest = DecisionProcess(sparse.csr_matrix(process.matrix[kept]), groups.astype(np.int64))
    values = optimal(safest, success, ~failure, maximise=True).values
    return np.asarray(process.matrix @ values)


def _decide(
    counted: CountedProcess, risks: _Risks, state: int, minimum: float, programmes: list[int]
) -> ShieldDecision:
    groups = counted.process.groups
    choices = list(range(int(groups[state]), int(groups[state + 1])))
    # The safer first; among equals the one that succeeds more often, then the one that is safer if
    # later advice is not followed: an action that changes nothing only looks as safe as the next.
    choices.sort(
        key=lambda c: (
            round(float(risks.least[c]) / EQUAL),
            -round(float(risks.most[c]) / EQUAL),
            float(risks.recorded[c]),
            c,
        )
    )
    feasible = [c for c in choices if risks.most[c] >= minimum - EQUAL]
    found: list[tuple[float, bool, int]] = []
    for choice in feasible:
        if found and risks.least[choice] >= min(found)[0]:
            break
        exact = minimum <= 0.0 or risks.on_safest[choice] >= minimum - EQUAL
        value = float(risks.least[choice])
        size = counted.process.owner.size
        if not exact and risks.horizon is None and size <= MAX_VARIABLES:
            programmes[0] += 1
            if programmes[0] <= MAX_PROGRAMMES:
                start = counted.process.matrix[choice].toarray().ravel()
                value = constrained_failure(
                    counted.process, risks.failing, risks.succeeding, start, minimum
                )
                exact = True
        found.append((value, exact, choice))
    if found:
        value, exact, first = min(found, key=lambda entry: (entry[0], choices.index(entry[2])))
    else:
        value, exact, first = float(risks.least[choices[0]]), True, choices[0]
    order = [first, *(c for c in choices if c != first)]
    return ShieldDecision(
        counted.counted.actions[first],
        bool(found),
        value,
        float(risks.most[first]),
        exact,
        tuple(risks.of(counted, c) for c in order),
    )


def constrained_failure(
    process: DecisionProcess, failure: Mask, success: Mask, start: Floats, minimum: float
) -> float:
    """Return the least probability of failure of a policy that succeeds with a probability.

    `start`, shape (n,), is the probability to begin in each state. Infinity if no policy succeeds
    so often; raises CheckingError if the linear programme is not solved.
    """
    from scipy import optimize  # few ask for this, and it takes long to import

    moving = ~(failure | success)
    matrix = sparse.csr_matrix(process.matrix[moving[process.owner]])
    flow = _flow(process, matrix, moving)

    def into(states: Mask) -> Floats:
        """Return the probability to go there at once, by choice; 0 for resting."""
        found = np.zeros(flow.shape[1])
        found[: matrix.shape[0]] = np.asarray(matrix[:, states].sum(axis=1)).ravel()
        return found

    needed = minimum - float(start[success].sum())
    result = optimize.linprog(
        into(failure),
        A_ub=sparse.csr_matrix(-into(success)[None]),
        b_ub=[-needed + EQUAL],
        A_eq=flow,
        b_eq=start[moving],
        method="highs",
    )
    if result.status == 2:
        return float("inf")
    if result.status != 0:
        raise CheckingError(
            f"the linear programme is not solved: {result.message}", accepted="a smaller process"
        )
    return float(min(max(result.fun, 0.0) + start[failure].sum(), 1.0))


def _flow(process: DecisionProcess, matrix: sparse.csr_matrix, moving: Mask) -> sparse.csr_matrix:
    """Return how often each moving state is left, less how often it is entered.

    One row for each moving state. The columns are how often each of its choices is taken, whose
    rows of the process are `matrix`, and then how often a run rests.
    """
    states = np.flatnonzero(moving)
    place = np.full(process.size, -1)
    place[states] = np.arange(states.size)
    owner = place[process.owner[moving[process.owner]]]
    leaving = _marks(owner, states.size)
    # A run in an end component may stay there for ever, without success or failure.
    resting = np.flatnonzero(ChoiceGraph(process).end_components(moving)[states] >= 0)
    entering = matrix[:, moving].T
    return sparse.hstack([leaving - entering, _marks(resting, states.size)]).tocsr()


def _marks(rows: NDArray[np.int64], size: int) -> sparse.csr_matrix:
    """Return a matrix with a one in each column, in the row that is given for it."""
    columns = np.arange(rows.size)
    return sparse.csr_matrix((np.ones(rows.size), (rows, columns)), shape=(size, rows.size))
