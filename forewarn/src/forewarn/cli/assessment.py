"""Is what was learned enough? Coverage of the states, the Markov test, the choice of estimator."""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from forewarn.checking.labels import label_states
from forewarn.checking.sensitivity import EstimatorRisk, estimator_sensitivity, reach_sensitivity
from forewarn.cli.common import probability
from forewarn.cli.output import Output
from forewarn.learning.coverage import DELTA, EPSILON, Coverage, coverage
from forewarn.learning.order_test import SIGNIFICANCE, MarkovTest, markov_tests
from forewarn.logic.specification import CompiledSpec
from forewarn.models import CountModel, estimate_chain
from forewarn.recordings.interface import plural
from forewarn.reports.figures import percent
from forewarn.reports.states import risk_text
from forewarn.signals.clock import horizon_ticks
from forewarn.signals.clock_kinds import clock_of

LISTED = 10


def add_requirement(parser: argparse.ArgumentParser) -> None:
    """Add ``--epsilon``, ``--delta`` and ``--per-transition``."""
    for name, default, text in (
        ("--epsilon", EPSILON, "error that is allowed to the risk"),
        ("--delta", DELTA, "probability with which that may be exceeded"),
    ):
        parser.add_argument(
            name,
            type=probability,
            metavar="P",
            help=f"coverage: {text} (default: {default:g})",
        )
    parser.add_argument(
        "--per-transition",
        action="store_true",
        help="coverage: allow the error to each transition probability, not to the risk",
    )


@dataclass(frozen=True)
class Requirement:
    """What is asked of the data.

    Attributes
    ----------
    epsilon, delta : float
        Error allowed, and the probability to exceed it.
    horizon : int or None
        Steps within which the error of the risk counts; None for ever.
    per_transition : bool
        The error is that of each transition probability instead.
    """

    epsilon: float
    delta: float
    horizon: int | None
    per_transition: bool

    @staticmethod
    def of(
        epsilon: float | None,
        delta: float | None,
        compiled: CompiledSpec | None,
        per_transition: bool,
    ) -> Requirement:
        """Return the requirement of a command's options, defaults filled in."""
        sections = () if compiled is None else tuple(_horizons(compiled))
        return Requirement(
            EPSILON if epsilon is None else epsilon,
            DELTA if delta is None else delta,
            None if None in sections else max((h for h in sections if h is not None), default=0),
            per_transition or compiled is None,
        )

    def judge(self, model: CountModel) -> Sufficiency:
        """Return how far `model` meets the requirement."""
        transitions = coverage(model, self.epsilon, self.delta)
        if self.per_transition:
            return Sufficiency(self, 1.0, transitions, transitions)
        factor = reach_sensitivity(model, estimate_chain(model), self.horizon)
        found = coverage(model, self.epsilon, self.delta, factor) if factor < math.inf else None
        return Sufficiency(self, factor, found, transitions)


class Sufficiency(NamedTuple):
    """How far the data meet a requirement.

    Attributes
    ----------
    factor : float
        Sensitivity B of the risk; 1 if it was left out.
    coverage : Coverage or None
        Visits and requirements; None where no number of visits is enough (B is infinite).
    transitions : Coverage
        The same with B left out.
    """

    requirement: Requirement
    factor: float
    coverage: Coverage | None
    transitions: Coverage

    @property
    def share(self) -> float:
        """Share of the required visits that were made; 1 only if every state is covered."""
        if self.coverage is None:
            return 0.0
        return 1.0 if self.coverage.complete else min(self.coverage.share, math.nextafter(1, 0))


def _horizons(compiled: CompiledSpec) -> Iterator[int | None]:
    clock = compiled.abstraction.clock
    for section in compiled.spec.properties.values():
        yield horizon_ticks(clock, section.horizon)


def verdict(
    model: CountModel,
    found: Sufficiency,
    tests: Sequence[MarkovTest],
    choices: Mapping[str, Sequence[EstimatorRisk]],
) -> str:
    """Return in one line what the data are good for, and what speaks against more."""
    reasons = []
    if never := [name for name, risks in choices.items() if risks[0].mean == 0]:
        reasons.append(f"nothing that leads to a violation of {', '.join(never)} was seen")
    live = ~model.terminal
    enough, all_states = int((found.transitions.covered & live).sum()), int(live.sum())
    if found.share < 1:
        has = "has" if enough == 1 else "have"
        reasons.append(f"{enough} of {plural(all_states, 'state')} {has} enough visits")
    if failed := sum(test.violated for test in tests):
        reasons.append(f"{plural(failed, 'state')} {'is' if failed == 1 else 'are'} not Markov")
    if not reasons:
        return "enough: every state has the visits that were asked for"
    return f"enough to try, not to trust: {'; '.join(reasons)} (--assess)"


def print_coverage(model: CountModel, found: Sufficiency, limit: int, output: Output) -> None:
    """Say how many states have been visited often enough, and what up to `limit` others need."""
    asked = found.requirement
    within = f"to within {asked.epsilon:g} with probability {1 - asked.delta:g}"
    shown = found.coverage or found.transitions
    if found.coverage is None:
        output.say(
            "coverage: without a horizon no number of visits tells the risk, for not every run of "
            "this chain ends: set a horizon, or ask for --per-transition"
        )
    elif not asked.per_transition:
        clock = clock_of(model.rate)
        span = ""
        if asked.horizon is not None:
            span = f" within {clock.say(clock.duration(asked.horizon))}"
        output.say(
            f"coverage: the risk{span} {within} {_met(model, found.coverage)} (it can change by "
            f"{found.factor:,.4g} times the error of a transition)"
        )
    output.say(f"coverage: each transition probability {within} {_met(model, found.transitions)}")
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
        f"{len(rows)} of {plural(len(waiting), 'state')} that lack visits, most first"
        if rows
        else ""
    )
    output.table(("?state", "name", ">visits", ">required", ">missing"), rows, title)


def _met(model: CountModel, found: Coverage) -> str:
    live = ~model.terminal
    return (
        f"needs {float(found.required.sum()):,.4g} visits, {percent(found.share)} made; "
        f"enough for {int((found.covered & live).sum())} of {plural(int(live.sum()), 'state')}"
    )


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


def dependence(triples: Counter[tuple[int, int, int]]) -> list[MarkovTest]:
    """Return the tests of all states, violations first and the greatest effect foremost."""
    return sorted(
        markov_tests(triples),
        key=lambda test: (not test.violated, -test.information * test.visits, test.state),
    )


def advice(compiled: CompiledSpec) -> str:
    """Return what to do about states that are not Markov."""
    if compiled.abstraction.remembers:
        return "add a predicate that tells the cases apart (`history: 2` is set already)"
    return "add a predicate that tells the cases apart, or set `history: 2`"


def print_dependence(
    compiled: CompiledSpec, model: CountModel, tests: list[MarkovTest], limit: int, output: Output
) -> None:
    """Say which states are not Markov, and what to do."""
    failed = [test for test in tests if test.violated]
    if not failed:
        output.say(
            f"Markov test: nothing against it in {plural(len(tests), 'state')} with enough "
            f"visits to tell"
            if tests
            else "Markov test: no state has the visits that a test needs"
        )
        return
    worst = failed[0]
    output.say(
        f"Markov test: {len(failed)} of {len(tests)} states are not Markov (one of them wrongly "
        f"called so with probability {SIGNIFICANCE:g} at most); most of all "
        f"{model.vocabulary.name(worst.state)}, where the state before tells "
        f"{worst.information:.2g} bits: {advice(compiled)}"
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


def estimators(compiled: CompiledSpec, model: CountModel) -> dict[str, list[EstimatorRisk]]:
    """Return how the risk of each property depends on the estimator."""
    names = compiled.spec.properties
    found = {}
    for name, automaton, horizon in zip(names, compiled.automata, _horizons(compiled), strict=True):
        classes = label_states(automaton, model.vocabulary, model.states)
        found[name] = estimator_sensitivity(model, automaton, classes, horizon)
    return found


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
