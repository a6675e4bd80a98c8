"""Runs of a robot that can light the stove only with a key, and then sets it on fire."""

from __future__ import annotations

import json
import random
from pathlib import Path

SPEC = """\
version: 1
clock: steps
signals: {key: {}, room: {}, burnt: {}}
terminal: {fire: burnt}
properties: {safe: {formula: always(not fire), horizon: 3, thresholds: {act: 0.5}}}
states: {kind: tree, variables: [key, room]}
"""


def record(
    path: Path, seed: int, number: int, odd: int = -1, strange: str = "", *, share: float = 0.1
) -> Path:
    """Write runs, such a share of them with the key; run `odd` enters by an action of its own."""
    chance, lines = random.Random(seed), []
    for run in range(number):
        key = chance.random() < share
        rows = [("hall", "enter", False)] + [("kitchen", "wait", False)] * chance.randint(0, 3)
        rows += [("kitchen", "light" if key else "leave", False), ("hall", None, key)]
        for room, action, burnt in rows:
            line = {"run": f"{seed}-{run}", "key": key, "room": room, "burnt": burnt}
            line["action"] = strange if run == odd and action == "enter" else action
            lines.append(json.dumps(line) + "\n")
    path.write_text("".join(lines))
    return path
