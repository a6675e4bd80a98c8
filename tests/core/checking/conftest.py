"""Models and automata that several tests of the checkers use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from forewarn.logic.automaton import Automaton
from forewarn.models import Chain

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def _response(bound: int) -> Automaton:
    violated = bound + 1
    moves = np.zeros((bound + 2, 3), dtype=np.int32)
    moves[0, 1] = bound or violated
    for r in range(1, bound + 1):
        moves[r, :2] = r - 1 or violated
    moves[violated] = violated
    names = ("idle", *(f"waiting {r}" for r in range(1, bound + 1)), "violated")
    classes = np.array([0, 1, 2, 2], dtype=np.int32)
    return Automaton(("a", "b"), classes, moves, 0, violated, None, names, bound)


@pytest.fixture
def response() -> Callable[[int], Automaton]:
    """Return the maker of ``always(a implies eventually[0:bound](b))``; class 1 is a alone."""
    return _response


def _chain(n: int, successors: int, terminals: int, leave: float, seed: int) -> Chain:
    rng = np.random.default_rng(seed)
    matrix = np.zeros((n, n))
    for i in range(n - terminals):
        targets = rng.choice(n - terminals, size=min(successors, n - terminals), replace=False)
        matrix[i, targets] = rng.dirichlet(np.ones(targets.size)) * (1 - leave)
        if terminals:
            matrix[i, n - 1 - i % terminals] += leave
    for i in range(n - terminals, n):
        matrix[i, i] = 1.0
    matrix /= matrix.sum(axis=1, keepdims=True)
    absorbing = np.arange(n) >= n - terminals
    return Chain.from_matrix(matrix, absorbing)


@pytest.fixture
def random_chain() -> Callable[..., Chain]:
    """Return the maker of random sparse chains whose last states are terminal."""
    return _chain
