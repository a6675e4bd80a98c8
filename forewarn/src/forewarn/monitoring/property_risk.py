"""The risk of one property at one moment: a look-up, or the worst case of what is possible."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forewarn.monitoring.branches import BEGINS, LASTS, NOTHING, Step
from forewarn.monitoring.tables import Compatible, CompiledProperty, LoadedModel
from forewarn.monitoring.verdict import LeastFigure, PropertyStatus

if TYPE_CHECKING:
    from forewarn.checking.interface import ProcessRisk, RiskOfActions, RiskTable
    from forewarn.models.chain import Floats
    from forewarn.monitoring.scored import Scored
    from forewarn.states.interface import Observed

NAN = math.nan


class Risk(NamedTuple):
    """Risk of one property at one tick, before any policy."""

    probability: float
    lower: float
    upper: float
    in_model: bool


OVER = Risk(0.0, 0.0, 0.0, True)
CERTAIN = Risk(1.0, 1.0, 1.0, True)
NO_RISK = Risk(NAN, NAN, NAN, True)
UNSEEN = Risk(NAN, 0.0, 1.0, False)
NOT_JUDGED = Risk(NAN, 0.0, 1.0, True)


def look_up(compiled: CompiledProperty, row: int, automaton: int) -> Risk:
    """Return the risk of a product state that is known for certain."""
    assert compiled.values is not None and compiled.table is not None
    index = row * compiled.table.values.shape[1] + automaton
    value = compiled.values[index]
    if value != value:
        return UNSEEN
    if compiled.lower is None or compiled.upper is None:
        return Risk(value, NAN, NAN, True)
    return Risk(value, compiled.lower[index], compiled.upper[index], True)


def scored_risk(scored: Scored, row: int, automaton: int, odds: float) -> Risk:
    """Return the risk of a product state whose odds scores multiply; what is certain stays so."""
    values, lowest, highest, width = scored.views
    index = row * width + automaton
    value: float = values[index]
    if value != value:
        return UNSEEN
    calibration = scored.calibration
    value = value * odds / (1.0 - value + value * odds)
    if calibration is not None:
        value = calibration.at(value)
    if lowest is None or highest is None:
        return Risk(value, NAN, NAN, True)
    lower: float = lowest[index]
    upper: float = highest[index]
    lower = lower * odds / (1.0 - lower + lower * odds)
    upper = upper * odds / (1.0 - upper + upper * odds)
    if calibration is not None:
        lower, upper = calibration.at(lower), calibration.at(upper)
    return Risk(value, lower, upper, True)


def by_scores(scored: Scored, values: Sequence[Any] | Mapping[int, Any]) -> Risk:
    """Return the risk in a state that the model does not know: what the scores say, if known."""
    odds = scored.odds(values)
    return UNSEEN if odds is None else UNSEEN._replace(probability=scored.alone(odds))


def pushed(scored: Scored, values: Floats, odds: float) -> Floats:
    """Return risks whose odds scores multiply, of any shape."""
    values = values * odds / (1.0 - values + values * odds)
    return values if scored.calibration is None else scored.calibration(values)


def risk_of_action(table: RiskOfActions, row: int, automaton: int, action: str | None) -> Risk:
    """Return the risk of what is being done; of the recorded mix where that is not known."""
    if action:
        done = table.done.get((row, action))
        if done is None:
            return UNSEEN
        at, columns = (done, automaton), (table.done_values, table.done_lower, table.done_upper)
    else:
        at, columns = (row, automaton), (table.values, table.lower, table.upper)
    value, lower, upper = (float(column[at]) for column in columns)
    return UNSEEN if value != value else Risk(value, lower, upper, True)


def uncertain_risk(
    model: LoadedModel,
    compiled: CompiledProperty,
    branches: tuple[int, ...],
    observation: Observed,
    row: int | None,
    table: RiskTable | ProcessRisk,
    odds: float | None = None,
) -> Risk:
    """Return the worst risk over all product states that agree with what is known.

    `row`: the state's row in the tables, where it is known and the model has it.
    `odds`: what the scores multiply odds by; `table` is then the property's scored one.
    """
    if observation.state is None or observation.ended:
        found = model.compatible(observation)
    elif row is None:
        return UNSEEN
    else:
        found = Compatible(np.array([row]), np.array([-1]), True)
    if not found.rows.size:
        return UNSEEN
    live = compiled.live
    rows, complete = found.rows, found.complete
    at = np.ix_(np.array(branches), compiled.letters_in(found))
    outcome = live.outcome[at]
    certain = (outcome == BEGINS) | (outcome == LASTS)
    columns = np.where(outcome == NOTHING, live.following[at], live.initial)

    def looked_up(cells: Floats) -> Floats:
        found = cells[rows, columns]
        if odds is not None and compiled.scored is not None:
            found = pushed(compiled.scored, found, odds)
        return np.where(outcome == NOTHING, found, certain)

    values = looked_up(table.values)
    # That a label may have ended all is no knowledge of a state that was never seen.
    foreign = not complete and found.labels[0] >= 0 and not values.any()
    if foreign or np.isnan(values).all():
        return UNSEEN
    lower, upper = NAN, NAN
    if table.lower is not None and table.upper is not None:
        lower = float(looked_up(table.lower).min()) if complete else 0.0
        upper = float(looked_up(table.upper).max()) if complete else 1.0
    return Risk(float(np.nanmax(values)), lower, upper, True)


def min_risk_of(
    model: LoadedModel | None,
    compiled: CompiledProperty,
    branches: tuple[int, ...],
    observation: Observed,
    row: int | None,
    step: Step,
    risk: Risk,
) -> LeastFigure:
    """Return the least risk over all ways to choose, where there is a risk at all."""
    table = compiled.least
    assert table is not None
    if risk is CERTAIN or risk is OVER or risk is NO_RISK or risk is NOT_JUDGED:
        return LeastFigure(*risk[:3])
    if row is not None and len(step.branches) == 1 and step.status is not PropertyStatus.UNKNOWN:
        at = row, step.branches[0]
        found = (table.values[at], table.lower[at], table.upper[at])
        return LeastFigure(*map(float, found))
    assert model is not None
    return LeastFigure(*uncertain_risk(model, compiled, branches, observation, row, table)[:3])
