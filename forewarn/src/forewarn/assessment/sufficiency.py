"""Is what was learned enough? Coverage of the states, the Markov test, the choice of estimator."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from forewarn.checking.interface import label_states
from forewarn.checking.sensitivity import EstimatorRisk, estimator_sensitivity, reach_sensitivity
from forewarn.errors import plural
from forewarn.learning.coverage import DELTA, EPSILON, Coverage, coverage
from forewarn.learning.markov_order import MarkovTest, markov_tests
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import CountModel
from forewarn.models.estimation import estimate_chain
from forewarn.signals.clock import horizon_ticks


@dataclass(frozen=True)
class Requirement:
    """What is asked of the data.

    `epsilon`, `delta`: error allowed, and the probability to exceed it.
    `horizon`: steps within which the error of the risk counts; None for ever.
    `per_transition`: the error is that of each transition probability instead.
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
        sections = () if compiled is None else tuple(horizons(compiled))
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

    `factor`: sensitivity B of the risk; 1 if it was left out.
    `coverage`: visits and requirements; None where no number of visits is enough (B is infinite).
    `transitions`: the same with B left out.
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


def horizons(compiled: CompiledSpec) -> Iterator[int | None]:
    """Yield the horizon of each property in moments; None where it has no end."""
    clock = compiled.abstraction.clock
    for section in compiled.spec.properties.values():
        yield horizon_ticks(clock, section.horizon)


def verdict(
    model: CountModel,
    found: Sufficiency,
    tests: Sequence[MarkovTest],
    choices: Mapping[str, Sequence[EstimatorRisk]],
) -> str:
    """Return in one line whether the data are enough for a guarantee, and what is missing."""
    reasons = list(filter(None, [never_led_to(choices)]))
    live = ~model.terminal
    enough, all_states = int((found.transitions.covered & live).sum()), int(live.sum())
    if found.share < 1:
        has = "has" if enough == 1 else "have"
        reasons.append(f"{enough} of {plural(all_states, 'state')} {has} enough visits")
    if failed := sum(test.violated for test in tests):
        reasons.append(f"{plural(failed, 'state')} {'is' if failed == 1 else 'are'} not Markov")
    if not reasons:
        return "enough for the guarantee: every state has the visits that were asked for"
    return f"too few data for the guarantee: {'; '.join(reasons)}"


def never_led_to(choices: Mapping[str, Sequence[EstimatorRisk]]) -> str:
    """Return which properties have no risk in any state; empty if all have."""
    never = [name for name, risks in choices.items() if risks[0].mean == 0]
    return f"nothing that leads to a violation of {', '.join(never)} was seen" if never else ""


def dependence(triples: Counter[tuple[int, int, int]]) -> list[MarkovTest]:
    """Return the tests of all states, violations first and the greatest effect foremost."""
    return sorted(
        markov_tests(triples),
        key=lambda test: (not test.violated, -test.information * test.visits, test.state),
    )


def estimators(compiled: CompiledSpec, model: CountModel) -> dict[str, list[EstimatorRisk]]:
    """Return how the risk of each property depends on the estimator."""
    names = compiled.spec.properties
    found = {}
    for name, automaton, horizon in zip(names, compiled.automata, horizons(compiled), strict=True):
        classes = label_states(automaton, model.vocabulary, model.states)
        found[name] = estimator_sensitivity(model, automaton, classes, horizon)
    return found
