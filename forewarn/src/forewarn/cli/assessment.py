"""What ``learn`` and ``inspect`` say of coverage, Markov test and choice of estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forewarn.assessment.sufficiency import Requirement, Sufficiency
from forewarn.checking.sensitivity import EstimatorRisk
from forewarn.cli.common import probability
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.errors import plural
from forewarn.learning.coverage import DELTA, EPSILON, Coverage
from forewarn.learning.markov_order import SIGNIFICANCE, MarkovTest
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import CountModel
from forewarn.reports.states import risk_text
from forewarn.signals.clock_kinds import clock_of

LISTED = 10


@dataclass(frozen=True, kw_only=True)
class RequirementOptions:
    """How much error of how probable a kind makes a state covered."""

    epsilon: float | None = option(
        f"coverage: error that is allowed to the risk (default: {EPSILON:g})", "P", of=probability
    )
    delta: float | None = option(
        f"coverage: probability with which that may be exceeded (default: {DELTA:g})",
        "P",
        of=probability,
    )
    per_transition: bool = option(
        "coverage: allow the error to each transition probability, not to the risk"
    )


def print_coverage(model: CountModel, found: Sufficiency, limit: int, output: Output) -> None:
    """Say how many states have been visited often enough, and what up to `limit` others need."""
    asked = found.requirement
    within = f"to ±{asked.epsilon:g} ({100 * (1 - asked.delta):g} % sure)"
    shown = found.coverage or found.transitions
    if found.coverage is None:
        output.say(
            "coverage: no number of visits is enough, because some runs of this chain never end: "
            "set a horizon, or ask for --per-transition"
        )
    elif not asked.per_transition:
        clock = clock_of(model.rate)
        span = ""
        if asked.horizon is not None:
            span = f" within {clock.say(clock.duration(asked.horizon))}"
        output.say(
            f"coverage: {_met(model, found.coverage, f'the risk{span} {within}')}; an error in a "
            f"transition changes the risk by up to {found.factor:,.4g} times as much"
        )
    each = _met(model, found.transitions, f"each transition probability {within}")
    output.say(f"coverage: {each}")
    waiting = most_missing(shown)
    rows = [
        [
            model.vocabulary.key(model.states[i]),
            model.name(i),
            f"{shown.visits[i]:,}",
            f"{shown.required[i]:,}",
            f"{shown.missing[i]:,}",
        ]
        for i in waiting[:limit]
    ]
    title = (
        f"{len(rows)} of {plural(len(waiting), 'state')} with too few visits, most lacking first"
        if rows
        else ""
    )
    output.table(("?state", "name", ">visits", ">required", ">missing"), rows, title)


def _met(model: CountModel, found: Coverage, guarantee: str) -> str:
    """Say what `guarantee` needs, and what there is: visits are the ticks spent in states."""
    live = ~model.terminal
    noun = clock_of(model.rate).noun
    return (
        f"{int((found.covered & live).sum())} of {plural(int(live.sum()), 'state')} have enough "
        f"visits; to know {guarantee} takes {_amount(found.required.sum())} {noun}s, and there are "
        f"{_amount(found.visits.sum())}"
    )


def _amount(number: float) -> str:
    return f"{number / 1e6:,.3g} million" if number >= 1e6 else f"{number:,.0f}"


def most_missing(found: Coverage) -> list[int]:
    """Return the states that need more visits, those that lack most first."""
    waiting = np.flatnonzero(found.missing > 0)
    order = np.lexsort((-found.visits[waiting], -found.missing[waiting]))
    return [int(i) for i in waiting[order]]


def _horizon(asked: Requirement, model: CountModel) -> float | None:
    return None if asked.horizon is None else clock_of(model.rate).duration(asked.horizon)


def coverage_record(model: CountModel, found: Sufficiency) -> dict[str, Any]:
    """Return the coverage of every state as plain values."""
    asked = found.requirement
    shown = found.coverage or found.transitions
    return {
        "epsilon": asked.epsilon,
        "delta": asked.delta,
        "per_transition": asked.per_transition,
        "horizon": _horizon(asked, model),
        "factor": found.factor,
        "share": found.share,
        "complete": found.share >= 1.0,
        "transition_share": found.transitions.share,
        "states": {
            model.vocabulary.key(code): {
                "visits": int(shown.visits[i]),
                "required": None if found.coverage is None else int(shown.required[i]),
                "missing": None if found.coverage is None else int(shown.missing[i]),
            }
            for i, code in enumerate(model.states)
        },
    }


def advice(compiled: CompiledSpec) -> str:
    """Return what to do about states that are not Markov."""
    if compiled.abstraction.remembers:
        return "add a predicate that separates the cases (`history: 2` is set already)"
    return "add a predicate that separates the cases, or set `history: 2`"


def print_dependence(
    compiled: CompiledSpec, model: CountModel, tests: list[MarkovTest], limit: int, output: Output
) -> None:
    """Say which states are not Markov, and what to do."""
    failed = [test for test in tests if test.violated]
    if not failed:
        output.say(
            f"Markov test: passed in all {plural(len(tests), 'state')} with enough visits to test"
            if tests
            else "Markov test: no state has enough visits to test"
        )
        return
    worst = failed[0]
    output.say(
        f"Markov test: in {len(failed)} of {len(tests)} states the next state depends on the one "
        f"before, most in {model.vocabulary.name(worst.state)} ({worst.information:.2g} bits): "
        f"{advice(compiled)}. A false finding has probability {SIGNIFICANCE:g} at most"
    )
    rows = [
        [
            model.vocabulary.key(test.state),
            model.vocabulary.name(test.state),
            str(test.visits),
            f"{test.information:.3f}",
            f"{test.statistic:.1f}",
            str(test.freedom),
            f"{test.p_value:.1e}",
        ]
        for test in failed[:limit]
    ]
    columns = ("?state", "name", ">visits", ">bits from before", ">G", ">freedom", ">p")
    output.table(columns, rows)


def dependence_record(
    compiled: CompiledSpec, model: CountModel, tests: list[MarkovTest]
) -> dict[str, Any]:
    """Return the Markov tests as plain values."""
    return {
        "significance": SIGNIFICANCE,
        "advice": advice(compiled) if any(test.violated for test in tests) else "",
        "states": [
            {
                **test._asdict(),
                "state": model.vocabulary.key(test.state),
                "name": model.vocabulary.name(test.state),
            }
            for test in tests
        ],
    }


def print_estimators(
    model: CountModel, found: dict[str, list[EstimatorRisk]], output: Output
) -> None:
    """Say how much the risk depends on the choice of estimator."""
    rows = [
        [
            name,
            choice.name + (" (chosen)" if at == 0 else ""),
            _mean_text(choice.mean),
            "" if at == 0 else f"{choice.difference:.3f}",
            model.name(choice.state) if choice.difference > 0 else "",
        ]
        for name, choices in found.items()
        for at, choice in enumerate(choices)
    ]
    columns = ("property", "estimator", ">mean risk", ">differs by up to", "in state")
    output.table(columns, rows)


def _mean_text(mean: float) -> str:
    return "0 (never seen)" if mean == 0 else risk_text(mean)


def estimator_record(
    model: CountModel, found: dict[str, list[EstimatorRisk]]
) -> dict[str, list[dict[str, Any]]]:
    """Return the risks under the estimators as plain values, the model's own estimator first."""
    return {
        name: [
            {**choice._asdict(), "state": model.vocabulary.key(model.states[choice.state])}
            for choice in choices
        ]
        for name, choices in found.items()
    }
