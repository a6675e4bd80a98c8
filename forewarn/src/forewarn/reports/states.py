"""Which states of a model matter for a property: reachable ones, ordered by risk."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from forewarn.models.counts import CountModel
from forewarn.monitoring.tables import CompiledProperty
from forewarn.reports.page import escape

PREDICATE = re.compile(r"[A-Za-z]\w*(@-1)?(<-?[\d.e+-]+)?\Z")
COMPARED = re.compile(r"(<)(?=[-\d.])")


class RiskyState(NamedTuple):
    """A state of the model with the worst automaton state that it is reached in.

    Attributes
    ----------
    row : int
        Position in the model.
    state, name : str
        Key and readable name.
    automaton_state : int
        Its number.
    risk, lower, upper : float
        Risk and its bounds; NaN without bounds.
    visits : int
        Transitions counted out of the state.
    """

    row: int
    state: str
    name: str
    automaton: str
    automaton_state: int
    risk: float
    lower: float
    upper: float
    visits: int


def riskiest(compiled: CompiledProperty, model: CountModel, limit: int) -> list[RiskyState]:
    """Return the states with the greatest risk above 0, before any violation."""
    table = compiled.table
    assert table is not None
    found = sorted(
        (-float(table.values[row, q]), row, q)
        for row, q in reachable(compiled, model)
        if q != compiled.live.violated and model.states[row] >= 0 and table.values[row, q] > 0
    )
    best: dict[int, RiskyState] = {}
    for negative, row, q in found:
        if row not in best:
            best[row] = RiskyState(
                row=row,
                state=model.vocabulary.key(model.states[row]),
                name=model.name(row),
                automaton=compiled.automaton.names[q],
                automaton_state=q,
                risk=-negative,
                lower=float("nan") if table.lower is None else float(table.lower[row, q]),
                upper=float("nan") if table.upper is None else float(table.upper[row, q]),
                visits=int(model.visits[row]),
            )
        if len(best) == limit:
            break
    return list(best.values())


def reachable(compiled: CompiledProperty, model: CountModel) -> set[tuple[int, int]]:
    """Return the product states (row, automaton state) that counted transitions lead to."""
    initial = compiled.automaton.initial
    classes = compiled.row_classes

    def enter(row: int, q: int) -> tuple[int, int]:
        after = compiled.successors((q,), (int(classes[row]),))[0]
        return row, initial if after == compiled.live.violated else after

    waiting = [enter(int(row), initial) for row in np.flatnonzero(model.observed)]
    found = set(waiting)
    indptr, indices = model.weights.indptr, model.weights.indices
    while waiting:
        row, q = waiting.pop()
        for target in indices[indptr[row] : indptr[row + 1]].tolist():
            pair = enter(target, q)
            if pair not in found:
                found.add(pair)
                waiting.append(pair)
    return found


def successors(model: CountModel, index: int) -> list[tuple[int, int]]:
    """Return (successor, count) of a state, the most frequent first."""
    row = model.counts[index]
    pairs = zip(row.indices.tolist(), row.data.tolist(), strict=True)
    return sorted(((int(j), int(n)) for j, n in pairs if n), key=lambda pair: (-pair[1], pair[0]))


def risk_text(risk: float) -> str:
    """Return a risk in four digits; 0 only where the estimate is 0."""
    if risk == 0:
        return "0"
    return f"{risk:.4f}" if risk >= 0.00005 else "<0.0001"


def no_risk_text(compiled: CompiledProperty) -> str:
    """Say why no state has a risk above 0, and how sure that is."""
    text = "no state has a risk above 0: a violation, or a way to one, was never seen"
    upper = None if compiled.table is None else compiled.table.upper
    if upper is None or not upper.size:
        return text
    return f"{text}; the upper bounds reach {risk_text(upper[:, compiled.automaton.initial].max())}"


def in_words(name: str) -> str:
    """Return the name of a state as people read it: ``must_brake & gap<2`` is must brake, gap < 2.

    Names with other characters than those of predicates (agents' states) stay as they are.
    """
    if name == "(none)":
        return "none of the predicates"
    parts = name.split(" & ")
    if not all(map(PREDICATE.match, parts)):
        return name
    return ", ".join(COMPARED.sub(r" \1 ", part.replace("_", " ")) for part in parts)


def state_cell(name: str) -> str:
    """Return a state in words, as HTML; its exact name shows under the mouse."""
    return f'<span title="{escape(name)}">{escape(in_words(name))}</span>'


def by_visits(model: CountModel) -> list[int]:
    """Return all rows, the most visited states first."""
    entered = np.asarray(model.counts.sum(axis=0)).ravel()
    return [int(i) for i in np.lexsort((-entered, -model.visits))]
