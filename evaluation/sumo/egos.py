"""Egos from careful to reckless: parameters of SUMO's driver model, drawn anew for each seed.

What kind of driver an ego is, and its own parameters within the kind, is hidden from the monitor.
"""

from __future__ import annotations

import random

BODY = {"vClass": "passenger", "length": "4.6", "width": "1.8", "speedDev": "0"}
FOE_SPEED = 20.0  # m/s: up to which an approaching vehicle may be overlooked at all
KINDS = ("careful", "ordinary", "hasty", "reckless")
RANGES = {
    "tau": ((1.2, 1.6), (0.9, 1.2), (0.7, 0.9), (0.5, 0.8)),
    "sigma": ((0.1, 0.3), (0.4, 0.6), (0.5, 0.8), (0.6, 0.9)),
    "speedFactor": ((0.8, 0.95), (0.95, 1.1), (1.1, 1.25), (1.2, 1.4)),
    "jmDriveAfterYellowTime": ((-1, -1), (0, 2), (2, 4), (4, 8)),
    "jmDriveAfterRedTime": ((-1, -1), (-1, -1), (0, 4), (4, 16)),
    "jmIgnoreFoeProb": ((0, 0), (0, 0.1), (0.1, 0.4), (0.4, 0.8)),
    "jmIgnoreJunctionFoeProb": ((0, 0), (0, 0.1), (0.1, 0.4), (0.4, 0.8)),
    "jmIgnoreKeepClearTime": ((-1, -1), (10, 40), (2, 10), (0, 2)),
    "impatience": ((0, 0), (0, 0.3), (0.3, 0.7), (0.7, 1)),
}
"""Where each kind's parameters are drawn from, uniformly, in the order of `KINDS`."""


def draw_ego(rng: random.Random, kinds: dict[str, float]) -> tuple[str, dict[str, str]]:
    """Draw a kind with the given weights; return it, and the attributes of SUMO's vType."""
    kind = rng.choices(list(kinds), list(kinds.values()))[0]
    spans = {name: ranges[KINDS.index(kind)] for name, ranges in RANGES.items()}
    drawn = {name: f"{rng.uniform(*span):.3f}" for name, span in spans.items()}
    return kind, {"id": kind, **BODY, "jmIgnoreFoeSpeed": f"{FOE_SPEED:g}", **drawn}
