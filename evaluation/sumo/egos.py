"""Egos from careful to reckless: parameters of SUMO's driver model, drawn anew for each seed.

What kind of driver an ego is, and its own parameters within the kind, is hidden from the monitor.
"""

from __future__ import annotations

import random
from typing import NamedTuple

BODY = {"vClass": "passenger", "length": "4.6", "width": "1.8", "speedDev": "0"}
FOE_SPEED = 20.0  # m/s: up to which an approaching vehicle may be overlooked at all


class Range(NamedTuple):
    """Where a parameter is drawn from, uniformly."""

    low: float
    high: float


KINDS: dict[str, dict[str, Range]] = {
    "careful": {
        "tau": Range(1.2, 1.6),
        "sigma": Range(0.1, 0.3),
        "speedFactor": Range(0.8, 0.95),
        "jmDriveAfterYellowTime": Range(-1, -1),
        "jmDriveAfterRedTime": Range(-1, -1),
        "jmIgnoreFoeProb": Range(0, 0),
        "jmIgnoreJunctionFoeProb": Range(0, 0),
        "jmIgnoreKeepClearTime": Range(-1, -1),
        "impatience": Range(0, 0),
    },
    "ordinary": {
        "tau": Range(0.9, 1.2),
        "sigma": Range(0.4, 0.6),
        "speedFactor": Range(0.95, 1.1),
        "jmDriveAfterYellowTime": Range(0, 2),
        "jmDriveAfterRedTime": Range(-1, -1),
        "jmIgnoreFoeProb": Range(0, 0.1),
        "jmIgnoreJunctionFoeProb": Range(0, 0.1),
        "jmIgnoreKeepClearTime": Range(10, 40),
        "impatience": Range(0, 0.3),
    },
    "hasty": {
        "tau": Range(0.7, 0.9),
        "sigma": Range(0.5, 0.8),
        "speedFactor": Range(1.1, 1.25),
        "jmDriveAfterYellowTime": Range(2, 4),
        "jmDriveAfterRedTime": Range(0, 4),
        "jmIgnoreFoeProb": Range(0.1, 0.4),
        "jmIgnoreJunctionFoeProb": Range(0.1, 0.4),
        "jmIgnoreKeepClearTime": Range(2, 10),
        "impatience": Range(0.3, 0.7),
    },
    "reckless": {
        "tau": Range(0.5, 0.8),
        "sigma": Range(0.6, 0.9),
        "speedFactor": Range(1.2, 1.4),
        "jmDriveAfterYellowTime": Range(4, 8),
        "jmDriveAfterRedTime": Range(4, 16),
        "jmIgnoreFoeProb": Range(0.4, 0.8),
        "jmIgnoreJunctionFoeProb": Range(0.4, 0.8),
        "jmIgnoreKeepClearTime": Range(0, 2),
        "impatience": Range(0.7, 1),
    },
}


def draw_ego(rng: random.Random, kinds: dict[str, float]) -> tuple[str, dict[str, str]]:
    """Draw a kind with the given weights and its parameters.

    Returns
    -------
    kind : str
        A key of `KINDS`.
    attributes : dict
        Attributes of SUMO's vType.
    """
    kind = rng.choices(list(kinds), list(kinds.values()))[0]
    drawn = {name: f"{rng.uniform(*span):.3f}" for name, span in KINDS[kind].items()}
    return kind, {"id": kind, **BODY, "jmIgnoreFoeSpeed": f"{FOE_SPEED:g}", **drawn}
