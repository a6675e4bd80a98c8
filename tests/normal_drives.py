"""A monitor file, and drives without a violation to learn from."""

from __future__ import annotations

import json
import random

SPEC = """\
rate: 10
bounds: {kind: none}
signals: {gap: {timeout: 0.15}, speed: {timeout: 0.15}, mode: {timeout: never}}
predicates: {near: gap < 1, hit: gap < 0}
properties: {apart: {formula: always(not hit), horizon: 1, enter: 1, hold: 0,
  thresholds: {warn: 0.4, act: 0.5, release: 0.3}}}
"""


def drive(chance: random.Random, length: int = 40, strange: int | None = None) -> str:
    gap, lines = 5.0, []
    for tick in range(length):
        gap = min(max(gap + chance.uniform(-0.4, 0.4), 0.5), 9.0)
        speed = gap / 2 + chance.uniform(-0.2, 0.2) + (6.0 if tick == strange else 0.0)
        lines.append({"t": tick / 10, "gap": gap, "speed": speed, "mode": "auto"})
    return "".join(json.dumps(line) + "\n" for line in lines)
