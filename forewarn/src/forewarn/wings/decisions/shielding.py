"""The shield of a monitor file: which action is safest in a state, computed before the first tick.

It recommends; what the policy asks for stays as it is. Nothing is recommended in a state that is
not known, or in which nothing was seen done, or that would be less than what is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from forewarn.config.actions import ACTIONS, NO_ACTION, SEVERITY
from forewarn.errors import CheckingError, InputError, located
from forewarn.monitoring.advice import Advice, Alternative
from forewarn.signals.clock import Clock, horizon_ticks, within
from forewarn.states.interface import StateSpace, is_terminal
from forewarn.wings.decisions.model_process import notes_of_origin
from forewarn.wings.decisions.process_query import state_mask
from forewarn.wings.decisions.shield import (
    EQUAL,
    ActionRisk,
    Figure,
    ShieldDecision,
    ShieldTable,
    shield_table,
)

if TYPE_CHECKING:
    from forewarn.logic.specification import CompiledSpec
    from forewarn.models.chain import Floats
    from forewarn.models.counts import CountModel
    from forewarn.models.process import Mask
    from forewarn.wings.decisions.process_bounds import CountedProcess

FIGURES = ActionRisk._fields[2:]


@dataclass(frozen=True, eq=False)
class Shield(ShieldTable):
    """The decisions for all states of a monitor's model."""

    def advise(self, state: int | None, name: str, clock: Clock, asked: str) -> Advice:
        """See `advise_action`."""
        return advise_action(self, state, name, clock, asked)

    def solved(self) -> dict[str, Floats]:
        """Return all that was solved, by name: states by code, actions by name."""
        return solved(self)

    def with_solved(self, arrays: Mapping[str, Floats]) -> Shield:
        """Return this shield with the arrays that `solved` returned for one of the same states."""
        return replace(self, decisions=decisions_of(self, arrays))


def build_shield(
    compiled: CompiledSpec, model: CountModel | None, process: Callable[[], CountedProcess]
) -> Shield | None:
    """Return the decisions for all states of a model; None without a section or a model.

    Raises CheckingError if the model counts no actions, a name is unknown, or a state is failure
    and success.
    """
    spec, abstraction = compiled.spec, compiled.abstraction
    section = spec.shield
    if section is None:
        return None
    space = abstraction.vocabulary if model is None else model.vocabulary
    with located(CheckingError, file=spec.file, key="shield"):
        bounds = None if model is None else process()
        states = () if bounds is None else bounds.counted.states
        failure = _mask(compiled, "failure", section.failure, space, states)
        success = _mask(compiled, "success", section.success, space, states)
        if bounds is None:
            return None
        both = np.flatnonzero(failure & success)
        if both.size:
            raise CheckingError(
                f"the state {space.name(states[both[0]])!r} is failure and success",
                accepted="formulas that never hold together",
            )
        steps = horizon_ticks(abstraction.clock, section.horizon)
        found = shield_table(bounds, failure, success, section.at_least, steps)
    return Shield(**{one.name: getattr(found, one.name) for one in fields(found)})


def _mask(
    compiled: CompiledSpec, key: str, text: str, space: StateSpace, states: tuple[int, ...]
) -> Mask:
    try:
        return state_mask(text, space, states)
    except InputError as error:
        raise CheckingError(
            error.problem, accepted=error.accepted, file=compiled.spec.file, key=f"shield.{key}"
        ) from error


def notes(
    compiled: CompiledSpec, model: CountModel | None, table: ShieldTable | None
) -> tuple[str, ...]:
    """Return what a user should know of a shield."""
    if compiled.spec.shield is None:
        return ()
    if model is None or table is None:
        return ("shield: without a model nothing is recommended",)
    if table.sound and model.state_source_recordings:
        return ()
    return tuple(f"shield: {note}" for note in notes_of_origin(model))


def advise_action(
    table: ShieldTable, state: int | None, name: str, clock: Clock, asked: str = NO_ACTION
) -> Advice:
    """Return what to do in a state, None if it is not known, while the policy asks for `asked`.

    `name` is the state for people. Nothing less than what is asked for is recommended.
    """
    if state is None:
        return Advice("", f"nothing is recommended: the state is not known for certain ({name})")
    decision = table.decide(state)
    if decision is None:
        why = "the episode is over" if is_terminal(state) else f"nothing was seen done in {name!r}"
        return Advice("", f"nothing is recommended: {why}")
    least = table.minimum_success
    found = tuple(_alternative(one, least) for one in decision.alternatives)
    suit = [one for one in found if not _weaker(one.action, asked)]
    # Where the best does not suit, another one may still reach success.
    best = next((one for one in suit if one.feasible), suit[0] if suit else None)
    if best is None:
        return Advice(
            "", f"nothing is recommended: nothing as strong as {asked} was seen in {name!r}", found
        )
    horizon = math.inf if table.horizon is None else clock.duration(table.horizon)
    span = within(clock, horizon)
    reason = (
        f"{best.action!r} was seen {best.visits} times in {name!r}: failure {span} "
        f"{_span(best.failure, best.failure_lower, best.failure_upper)}, success "
        f"{_span(best.success, best.success_lower, best.success_upper)}"
    )
    if not best.feasible:
        reason += f"; nothing reaches success with {least:g}, it is the safest"
    return Advice(best.action, reason, found)


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


def solved(table: ShieldTable) -> dict[str, Floats]:
    """Return all that was solved for a shield, by name: states by code, actions by name."""
    decided = [decision for _, decision in sorted(table.decisions.items())]
    rows = [
        (rank, risk)
        for decision in decided
        for rank, risk in sorted(enumerate(decision.alternatives), key=lambda one: one[1].action)
    ]
    return {
        "shield.order": np.array([float(rank) for rank, _ in rows]),
        "shield.figures": np.array(
            [[value for figure in risk[2:] for value in figure] for _, risk in rows]
        ).reshape(len(rows), 3 * len(FIGURES)),
        "shield.decisions": np.array(
            [(one.feasible, one.failure, one.success, one.exact) for one in decided], dtype=float
        ).reshape(len(decided), 4),
    }


def decisions_of(table: ShieldTable, arrays: Mapping[str, Floats]) -> dict[int, ShieldDecision]:
    """Return the decisions with what `solved` gave for a shield of the same states and actions."""
    figures, order = arrays["shield.figures"], arrays["shield.order"]
    decisions: dict[int, ShieldDecision] = {}
    row = 0
    for (state, before), kept in zip(
        sorted(table.decisions.items()), arrays["shield.decisions"].tolist(), strict=True
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
    return decisions
