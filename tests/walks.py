"""Distances that wander until they end below 0, and a monitor file that forbids that."""

from __future__ import annotations

import numpy as np

FORBIDS_A_CRASH = """
rate: 1
startup_grace: 0
signals: {x: {timeout: never}}
predicates: {near: x < 2}
terminal: {crash: x < 0}
bounds: {kind: none}
"""


def walk(seed: int, start: float = 3.0, most: int = 40) -> list[float]:
    """Return the distances of a random walk, up to the first one below 0, or so many."""
    steps = np.random.default_rng(seed).normal(0, 0.8, most)
    distances = np.clip(start + np.cumsum(steps), None, 6)
    end = int(np.argmax(distances < 0)) or most - 1
    found: list[float] = distances[: end + 1].tolist()
    return found
