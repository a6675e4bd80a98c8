"""Is what was learned enough? Coverage of the states, the Markov test, the choice of estimator."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from forewarn.checking.labels import label_states
from forewarn.checking.sensitivity import EstimatorRisk, estimator_sensitivity
from forewarn.cli.output import Output
from forewarn.learning.coverage import Coverage
from forewarn.learning.markov import MarkovTest, markov_tests
from forewarn.models import CountModel
from forewarn.properties.specification import CompiledSpec
from forewarn.signals.grid import Grid

LISTED = 5


def print_coverage(model: CountModel, found: Coverage, output: Output) -> None:
    """Say how many states have been visited often enough, and what the others still need."""
    live = ~model.terminal
    covered = int((found.covered & live).sum())
    output.say(
        f"coverage: {covered} of {int(live.sum())} states have the visits that errors of at most "
        f"{found.epsilon:g} need with probability {1 - found.delta:g}; "
        f"{100 * found.share:.0f} % of all required visits made"
    )
    waiting = np.flatnonzero(found.missing > 0)
    often = waiting[np.argsort(-model.visits[waiting], kind="stable")][:LISTED]
    rows = [
        [model.name(i), str(int(found.visits[i])), str(int(found.required[i])),
         str(int(found.missing[i]))]
        for i in often.tolist()
    ]  # fmt: skip
    title = "the most visited states that need more" if len(waiting) > LISTED else ""
    output.table(("state", ">visits", ">required", ">missing"), rows, title)


def not_markov(model: CountModel, triples: Counter[tuple[int, int, int]]) -> list[MarkovTest]:
    """Return the states whose successor depends on more than they tell, greatest effect first."""
    found = [test for test in markov_tests(triples) if test.violated]
    return sorted(found, key=lambda test: -test.information * test.visits)


def print_not_markov(model: CountModel, found: list[MarkovTest], output: Output) -> None:
    """Say which states are not Markov, and what to do."""
    if not found:
        return
    output.say(f"{len(found)} states are not Markov: {found[0].advice}")
    rows = [
        [model.vocabulary.name(test.state), str(test.visits), f"{test.information:.3f}",
         f"{test.p_value:.1e}"]
        for test in found[:LISTED]
    ]  # fmt: skip
    output.table(("state", ">visits", ">bits told by the state before", ">p"), rows)


def estimators(compiled: CompiledSpec, model: CountModel) -> dict[str, list[EstimatorRisk]]:
    """Return how the risk of each property depends on the estimator."""
    grid = Grid(compiled.spec.rate)
    found = {}
    for (name, section), automaton in zip(
        compiled.spec.properties.items(), compiled.automata, strict=True
    ):
        classes = label_states(automaton, model.vocabulary, model.states)
        horizon = None if math.isinf(section.horizon) else grid.ticks(section.horizon)
        found[name] = estimator_sensitivity(model, automaton, classes, horizon)
    return found


def print_estimators(
    model: CountModel, found: dict[str, list[EstimatorRisk]], output: Output
) -> None:
    """Say how much the risk depends on the choice of estimator."""
    rows = [
        [name, each.name + (" (chosen)" if at == 0 else ""), f"{each.mean:.4f}",
         "" if at == 0 else f"{each.difference:.3f}",
         "" if at == 0 or not each.difference > 0 else model.name(each.state)]
        for name, choices in found.items()
        for at, each in enumerate(choices)
    ]  # fmt: skip
    columns = ("property", "estimator", ">mean risk", ">differs by up to", "in state")
    output.table(columns, rows)


def coverage_record(model: CountModel, found: Coverage) -> dict[str, Any]:
    """Return the coverage of every state as plain values."""
    return {
        "epsilon": found.epsilon,
        "delta": found.delta,
        "share": found.share,
        "complete": found.complete,
        "states": {
            model.vocabulary.key(code): {
                "visits": int(found.visits[i]),
                "required": int(found.required[i]),
                "missing": int(found.missing[i]),
            }
            for i, code in enumerate(model.states)
        },
    }
