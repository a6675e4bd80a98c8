"""Drives among others, for docs/howto/trajectories.md: a car behind one that brakes, and people.

    python traffic.py drives.jsonl --drives 200 --seed 1

writes one line a drive: its frames, twice a second, and whether it ended in a collision. The driver
is inattentive at times.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

STEP, FRAME = 0.1, 5  # seconds a step, and steps a frame
LENGTH, WIDTH, REACH = 4.6, 2.0, 60.0  # of a car, and how far the driver looks, in m
CRUISE, BRAKES = 9.0, 6.0  # m/s, m/s^2


def drive(number: int, chance: random.Random) -> dict[str, Any]:
    """Return one drive of at most 30 s; all go along y, people across it."""
    ego, speed = 0.0, CRUISE
    ahead, pace = chance.uniform(20, 40), chance.uniform(5, 9)
    walker = [chance.uniform(40, 160), -6.0, chance.uniform(1.0, 1.8)]  # y, x, speed across
    brakes_at, distracted = chance.uniform(4, 20), 0.0
    frames: list[dict[str, list[float]]] = []
    collision = None
    for step in range(300):
        if step % FRAME == 0:
            frames.append(
                {
                    "Ego0": [0.0, 0.0, round(ego, 2), 0.0, 0.0, 0.0, round(speed, 2)],
                    "Car1": [0.2, 0.0, round(ahead, 2), 0.0, 0.0, 0.0, round(pace, 2)],
                    "Walker1": [round(walker[1], 2), 0.0, walker[0], 90.0, walker[2], 0.0, 0.0],
                }
            )
        if collision:
            break
        if distracted <= 0 and chance.random() < 0.006:
            distracted = chance.uniform(0.5, 3.0)
        distracted -= STEP
        braking = brakes_at < step * STEP < brakes_at + 2.5
        pace = max(pace - 5.0 * STEP, 0.0) if braking else min(pace + STEP, 9.0)
        if walker[0] - ego < 35:
            walker[1] += walker[2] * STEP
        ahead, ego = ahead + pace * STEP, ego + speed * STEP
        gaps = {"npc_vehicle": ahead - ego - LENGTH}
        if abs(walker[1]) < 4.5:
            gaps["pedestrian"] = walker[0] - ego - LENGTH / 2 - 0.3
        hit = [name for name, gap in gaps.items() if -LENGTH < gap <= 0]
        if "pedestrian" in hit and abs(walker[1]) > WIDTH / 2 + 0.3:
            hit.remove("pedestrian")
        collision = hit[0] if hit else None
        nearest = min((gap for gap in gaps.values() if gap > -LENGTH), default=REACH)
        near = nearest < 4 + speed * speed / (2 * BRAKES) + speed * 0.5
        wanted = -BRAKES if near and distracted <= 0 else 1.5 if speed < CRUISE else 0.0
        speed = max(speed + wanted * STEP, 0.0)
    kinds = {"Ego0": ["", "Ego"], "Car1": ["Sedan", "NPC"], "Walker1": ["Bob", "Pedestrian"]}
    return {"drive": f"drive-{number}", "period": STEP * FRAME, "collision": collision,
            "types": kinds, "frames": frames}  # fmt: skip


def main() -> None:
    """Write so many drives and say how many ended in a collision."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--drives", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    drives = [drive(number, chance) for number in range(options.drives)]
    options.file.parent.mkdir(parents=True, exist_ok=True)
    options.file.write_text("".join(f"{json.dumps(one)}\n" for one in drives), encoding="utf-8")
    collisions = sum(one["collision"] is not None for one in drives)
    print(f"{options.file}: {len(drives)} drives, {collisions} collisions")


if __name__ == "__main__":
    main()
