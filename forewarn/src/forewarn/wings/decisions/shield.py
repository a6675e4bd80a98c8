"""The risk of every action in every state, and the safest one that still reaches success."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.config.actions import ACTIONS, NO_ACTION, SEVERITY
from forewarn.errors import CheckingError
from forewarn.models.process import DecisionProcess, Mask
from forewarn.monitoring.advice import Advice, Alternative
from forewarn.signals.clock import Clock, within
from forewarn.states.interface import is_terminal
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


FIGURES = ActionRisk._fields[2:]


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

    def advise(self, state: int | None, name: str, clock: Clock, asked: str = NO_ACTION) -> Advice:
        """Return what to do in a state, None if not known, while the policy asks for `asked`.

        `name` is the state for people. Nothing less than what is asked for is recommended.
        """
        if state is None:
            return Advice(
                "", f"nothing is recommended: the state is not known for certain ({name})"
            )
        decision = self.decisions.get(state)
        if decision is None:
            why = (
                "the episode is over"
                if is_terminal(state)
                else f"nothing was seen done in {name!r}"
            )
            return Advice("", f"nothing is recommended: {why}")
        least = self.minimum_success
        found = tuple(_alternative(one, least) for one in decision.alternatives)
        suit = [one for one in found if not _weaker(one.action, asked)]
        # Where the best does not suit, another one may still reach success.
        best = next((one for one in suit if one.feasible), suit[0] if suit else None)
        if best is None:
            return Advice(
                "",
                f"nothing is recommended: nothing as strong as {asked} was seen in {name!r}",
                found,
            )
        horizon = math.inf if self.horizon is None else clock.duration(self.horizon)
        span = within(clock, horizon)
        reason = (
            f"{best.action!r} was seen {best.visits} times in {name!r}: failure {span} "
            f"{_span(best.failure, best.failure_lower, best.failure_upper)}, success "
            f"{_span(best.success, best.success_lower, best.success_upper)}"
        )
        if not best.feasible:
            reason += f"; nothing reaches success with {least:g}, it is the safest"
        return Advice(best.action, reason, found)

    def solved(self) -> dict[str, Floats]:
        """Return all that was solved for a shield, by name: states by code, actions by name."""
        decided = [decision for _, decision in sorted(self.decisions.items())]
        rows = [
            (rank, risk)
            for decision in decided
            for rank, risk in sorted(
                enumerate(decision.alternatives), key=lambda one: one[1].action
            )
        ]
        return {
            "shield.order": np.array([float(rank) for rank, _ in rows]),
            "shield.figures": np.array(
                [[value for figure in risk[2:] for value in figure] for _, risk in rows]
            ).reshape(len(rows), 3 * len(FIGURES)),
            "shield.decisions": np.array(
                [(one.feasible, one.failure, one.success, one.exact) for one in decided],
                dtype=float,
            ).reshape(len(decided), 4),
        }

    def with_solved(self, arrays: Mapping[str, Floats]) -> ShieldTable:
        """Return this shield with what `solved` gave for one of the same states."""
        figures, order = arrays["shield.figures"], arrays["shield.order"]
        decisions: dict[int, ShieldDecision] = {}
        row = 0
        for (state, before), kept in zip(
            sorted(self.decisions.items()), arrays["shield.decisions"].tolist(), strict=True
        ):
            ranked = []
            for risk in sorted(before.alternatives, key=lambda one: one.action):
                values = iter(figures[row].tolist())
                of = [Figure(*three) for three in zip(values, values, values, strict=True)]
                ranked.append((int(order[row]), ActionRisk(risk.action, risk.visits, *of)))
                row += 1
            alternatives = tuple(risk for _, risk in sorted(ranked, key=lambda one: one[0]))
            decisions[state] = ShieldDecision(
                alternatives[0].action, bool(kept[0]), kept[1], kept[2], bool(kept[3]), alternatives
            )
        return replace(self, decisions=decisions)


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


def _alternative(risk: ActionRisk, least: float) -> Alternative:
    feasible = risk.success.estimate >= least - EQUAL
    return Alternative(risk.action, risk.visits, *risk.failure, *risk.success, feasible)


def _span(value: float, lower: float, upper: float) -> str:
    return f"{value:.3g} ({lower:.3g} to {upper:.3g})"


def _weaker(action: str, asked: str) -> bool:
    """Tell whether an action is, or may be, less than what the policy asks for."""
    if action in ACTIONS:
        return SEVERITY.index(action) < SEVERITY.index(asked)
    # What a planner calls its own actions says nothing about limits and stops.
    return ACTIONS[asked].moves
