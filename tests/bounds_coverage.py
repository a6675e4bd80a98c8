"""Do clustered bounds hold the share of moments that a violation follows, in known worlds?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from hidden_worlds import Floats, World, problem_of

from forewarn.checking.credible import credible_tables
from forewarn.learning.estimates.choice import mixture_table
from forewarn.learning.estimates.clustered import clustered_bounds
from forewarn.learning.estimates.problem import Problem
from forewarn.models.estimates import PLAIN, Mixture, Part

RECORDINGS = (10, 30, 100)
WORLDS = {  # drivers, memory
    "all alike, Markov": (0.0, 0.0),
    "drivers differ": (1.5, 0.0),
    "hidden mode": (0.0, 2.0),
    "both": (1.0, 2.0),
}
ESTIMATES = {
    "chain": Mixture(0.0, (Part("chain", (), 1.0),)),
    "bayes": Mixture(0.0, (Part("bayes", (30.0,), 1.0),)),
    "logistic": Mixture(0.0, (Part("logistic", (3.0, 1.0), 1.0),)),
}


class Held(NamedTuple):
    """Over the states of one model: how many there are, are within bounds, and widths added up."""

    states: int
    held: int
    width: float

    def __add__(self, other: object) -> Held:
        """Add up two."""
        assert isinstance(other, Held)
        return Held(*(a + b for a, b in zip(self, other, strict=True)))


def held(lower: Floats, upper: Floats, truth: Floats) -> Held:
    """Compare bounds with the truth; states that nobody gets to have none."""
    known = ~np.isnan(truth)
    within = (lower <= truth) & (truth <= upper) & known
    return Held(int(known.sum()), int(within.sum()), float((upper - lower)[known].sum()))


def bounds_in(
    problem: Problem, estimates: tuple[str, ...], samples: int
) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield name, lower and upper bounds of the states that were seen, without the crash."""
    initial = problem.question.automaton.initial
    model, plain = problem.model, slice(0, problem.model.size - 1)
    chain = credible_tables(model, [problem.question], samples=4 * samples, complete=True)[0]
    assert chain.lower is not None
    assert chain.upper is not None
    yield "chain, credible", chain.lower[plain, initial], chain.upper[plain, initial]
    mixtures = [ESTIMATES[name] for name in estimates]
    whole = problem.sample(np.ones(problem.recordings, dtype=np.int64))
    tables = tuple(mixture_table(whole, mixture) for mixture in mixtures)
    pairs = tuple((mixture, PLAIN) for mixture in mixtures)
    found = clustered_bounds(problem, pairs, tables, samples=samples, confidence=0.95)
    for name, (lower, upper) in zip(estimates, found, strict=True):
        yield f"{name}, clustered", lower[plain, initial], upper[plain, initial]


def coverage(
    kind: str, recordings: int, worlds: int, samples: int = 50, first: int = 0
) -> dict[str, Held]:
    """Return what the bounds of each name held, over all states of so many worlds."""
    total: dict[str, Held] = {}
    for seed in range(first, first + worlds):
        world = World.draw(seed, *WORLDS[kind])
        problem = problem_of(world.record(recordings, seed))
        truth = world.truth()[[state for state in problem.model.states if state >= 0]]
        for name, lower, upper in bounds_in(problem, tuple(ESTIMATES), samples):
            total[name] = total.get(name, Held(0, 0, 0.0)) + held(lower, upper, truth)
    return total
