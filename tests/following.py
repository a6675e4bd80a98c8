"""A car that follows another: traces in which a gap closes, and sometimes falls below 2 m."""

from __future__ import annotations

import json
import random
from pathlib import Path

MONITOR = """
rate: 10
startup_grace: 0
signals:
  gap: {timeout: 1}
  speed: {timeout: 1}
  lead: {timeout: 1}
  braking: {timeout: 1}
  closing: {value: speed - lead}
learned_score:
  ahead: {for: keeps_distance, history: 0.5, directions: {gap: falling, closing: rising}}
predicates: {close: gap < 2, fast: closing > 1}
bins: {ahead: auto}
properties: {keeps_distance: {formula: always(not close), horizon: 2.0}}
model: monitor.model.json
"""


def drive(path: Path, seed: int, ticks: int = 300) -> Path:
    """Write one trace; a lead that brakes is seen some time before the gap is short."""
    rng = random.Random(seed)
    gap, speed, lead, braking = 12.0, 10.0, 10.0, False
    with path.open("w") as file:
        for tick in range(ticks):
            braking = rng.random() < (0.96 if braking else 0.03)
            lead = max(0.0, lead + (-0.4 if braking else 0.25 * (10 - lead)) * 0.5)
            attentive = rng.random() < 0.5
            speed = max(0.0, speed + (0.15 * (gap - 9) + 0.6 * (lead - speed)) * 0.2 * attentive)
            gap = max(0.2, gap + (lead - speed) * 0.1)
            line = {"t": tick / 10, "gap": round(gap + rng.gauss(0, 0.05), 3)}
            line |= {"speed": round(speed, 3), "lead": round(lead, 3), "braking": braking}
            file.write(json.dumps(line) + "\n")
    return path


def write(folder: Path, seeds: range) -> list[Path]:
    """Write a monitor file and a trace for each seed; return the traces."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "monitor.yaml").write_text(MONITOR)
    return [drive(folder / f"run{seed:03}.jsonl", seed) for seed in seeds]
