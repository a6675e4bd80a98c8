"""Which product states are looked at: the best known ones over the range of predicted risk."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from forewarn.models import CountModel
from forewarn.monitoring.step import Monitor

EDGES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
VISITS = 100  # at the least, in the recordings that the model was learned from
OPEN = 0.1, 0.9  # predicted risks between which the model leaves open what happens


class Prediction(NamedTuple):
    """What the monitor says in a state, with its bounds; ticks of its horizon."""

    risk: float
    lower: float
    upper: float
    horizon: int


def predictions_of(monitor: Monitor, row: int) -> dict[str, Prediction]:
    """Return what an invariant's table says of a state in which it is not violated."""
    found = {}
    for compiled in monitor.properties:
        table = compiled.table
        if table is None or table.lower is None or table.upper is None or table.horizon is None:
            continue
        at = row, compiled.automaton.initial
        found[compiled.name] = Prediction(
            float(table.values[at]), float(table.lower[at]), float(table.upper[at]), table.horizon
        )
    return found


def choose(
    monitor: Monitor, model: CountModel, properties: tuple[str, ...], avoid: tuple[str, ...]
) -> dict[int, tuple[str, ...]]:
    """Return state codes: for each property and band of risk the one visited most often.

    Each comes with the properties that it was chosen for.

    `properties` are invariants: their automata have one state that is not violated, so that a
    state of the model is a product state. States in which an atom of `avoid` holds, a violation,
    are not looked at.
    """
    visits = np.asarray(model.counts.sum(axis=1)).ravel()
    allowed = [
        code >= 0 and not any(model.vocabulary.holds(atom, code) for atom in avoid)
        for code in model.states
    ]
    usable = np.array(allowed) & (visits >= VISITS)
    chosen: dict[int, tuple[str, ...]] = {}
    for compiled in monitor.properties:
        if compiled.name not in properties or compiled.table is None:
            continue
        risk = compiled.table.values[:, compiled.automaton.initial]
        band = np.minimum(np.digitize(risk, EDGES) - 1, len(EDGES) - 2)
        for item in range(len(EDGES) - 1):
            rows = np.flatnonzero(usable & (band == item))
            if rows.size:
                code = model.states[rows[np.argmax(visits[rows])]]
                chosen[code] = (*chosen.get(code, ()), compiled.name)
    return chosen


def open_states(
    monitor: Monitor,
    model: CountModel,
    chosen: Mapping[int, tuple[str, ...]],
    properties: Iterable[str],
    number: int,
) -> frozenset[int]:
    """Return for each property the `number` most visited of its states whose outcome is open.

    `chosen` has state codes, each with the properties that it was chosen for.
    """
    visits = np.asarray(model.counts.sum(axis=1)).ravel()
    found: set[int] = set()
    for name in properties:
        candidates = [
            code
            for code, names in chosen.items()
            if name in names
            and OPEN[0] <= predictions_of(monitor, model.index[code])[name].risk <= OPEN[1]
        ]
        candidates.sort(key=lambda code: -int(visits[model.index[code]]))
        found.update(candidates[:number])
    return frozenset(found)


def chances(
    model: CountModel, states: Collection[int], ticks: float, moments: int
) -> dict[int, float]:
    """Return with which probability a tick in each state is to be taken.

    Of each state so many `moments` are wanted, on average, of all `ticks` that are going to be
    simulated: every tick is as likely as any other.
    """
    visits = np.asarray(model.counts.sum(axis=1)).ravel()
    share = visits / visits.sum()
    return {code: min(1.0, moments / (share[model.index[code]] * ticks)) for code in states}
