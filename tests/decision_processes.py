"""Decision processes made at random, and their values by definition."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.checking.reachability import reach
from forewarn.config.actions import ACTIONS
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.counts import CountModel
from forewarn.models.process import DecisionProcess

Chances = Mapping[int, Mapping[str, Mapping[int, float]]]
"""By state and action, how probable some states are; the rest goes on in state 0."""


def random_process(
    rng: np.random.Generator, n: int, most_choices: int = 3, successors: int = 3, stay: float = 0.2
) -> DecisionProcess:
    """Return a process some of whose choices are certain, so that end components occur."""
    groups = np.concatenate([[0], np.cumsum(rng.integers(1, most_choices + 1, n))])
    matrix = np.zeros((groups[-1], n))
    for choice in range(groups[-1]):
        targets = rng.choice(n, size=min(n, int(rng.integers(1, successors + 1))), replace=False)
        matrix[choice, targets] = rng.dirichlet(np.ones(targets.size))
        if rng.random() < stay:
            matrix[choice] = 0.0
            matrix[choice, rng.integers(n)] = 1.0
    return DecisionProcess(sparse.csr_matrix(matrix), groups.astype(np.int64))


def policies(process: DecisionProcess) -> Iterator[NDArray[np.int64]]:
    """Yield every deterministic policy without memory, as one choice for each state."""
    groups = process.groups
    for policy in itertools.product(*map(range, groups[:-1], groups[1:])):
        yield np.array(policy)


def value_of(
    process: DecisionProcess,
    policy: NDArray[np.int64],
    targets: NDArray[np.bool_],
    through: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Return the probability to reach `targets` under a policy."""
    return reach(sparse.csr_matrix(process.matrix[policy]), targets, through)[0]


def compiled(text: str) -> CompiledSpec:
    """Return a monitor file, compiled."""
    return compile_spec(parse_spec(parse_document(text)))


def learned(
    spec: CompiledSpec, chances: Chances, times: int, *, seed: int = 1, actions: bool = True
) -> CountModel:
    """Return what is counted of steps by `chances`, and of state 3, in which nothing is done."""
    counter = TransitionCounter(spec.abstraction.vocabulary)
    rng = np.random.default_rng(seed)
    for tick in range(0, 3 * times, 3):
        state = int(rng.integers(len(chances)))
        action = str(rng.choice(sorted(chances[state])))
        following = chances[state][action]
        share = [*following.values(), 1.0 - sum(following.values())]
        after = int(rng.choice([*following, 0], p=share))
        counter.add(tick, state, action in ACTIONS, action if actions else "")
        counter.add(tick + 1, after)
    counter.add(3 * times, 3 if len(spec.abstraction.vocabulary.predicates) > 1 else 0)
    counter.add(3 * times + 1, 0)
    counter.end_recording()
    return build_model(counter, rate=10.0, digest=spec.abstraction.digest)
