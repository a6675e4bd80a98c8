"""Decision processes made at random, and their values by definition."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.checking.reachability import reach
from forewarn.models.process import DecisionProcess


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
