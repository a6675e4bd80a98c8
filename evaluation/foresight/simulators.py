"""Runs of public simulators: motorway traffic (highway-env), a lander, a walker (Gymnasium).

    python -m evaluation.foresight.simulators --name highway --part train --runs 400 --folder FOLDER

Needs what `requirements.txt` lists, and nothing of forewarn. Each run has a pilot of its own, more
or less careless; the monitor does not know which. What is kept is a trace: what a perception would
give at each tick. Runs that are there are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from evaluation.harness.command import command
from evaluation.harness.episodes import write_lines

FIRST_SEED = {"train": 1, "test": 100_001, "rehearsal": 900_001}
CARELESS = {"highway": 0.35, "lander": 0.2, "walker": 0.03}
"""The share of random actions is drawn from 0 to this one, for each run."""

WIND = 8.0

FAR = math.inf
LANE = 4.0
RATE = {"highway": 5, "lander": 10, "walker": 10}
FRAMES = 5
"""Frames of Gymnasium's physics in a tick."""


def highway(seed: int) -> Iterator[dict[str, Any]]:
    """Yield the ticks of a drive on a motorway of four lanes, at 5 Hz, for 25 s or to a crash."""
    import highway_env  # noqa: F401 - registers the environments

    draw = np.random.default_rng(seed)
    careless, hurry = draw.uniform(0, CARELESS["highway"]), draw.uniform(0.2, 0.8)
    config = {
        "lanes_count": 4,
        "vehicles_count": 20,
        "vehicles_density": float(draw.uniform(1.0, 1.8)),
        "duration": 25,
        "policy_frequency": RATE["highway"],
        "simulation_frequency": 3 * RATE["highway"],
        "action": {"type": "DiscreteMetaAction", "target_speeds": [15, 20, 25, 30, 35]},
        # Nobody looks at the environment's own observation, which takes two fifths of the time.
        "observation": {"type": "AttributesObservation", "attributes": ["time"]},
    }
    env = gymnasium.make("highway-fast-v0", config=config, disable_env_checker=True)
    env.reset(seed=seed)
    left, idle, right, faster, slower = range(5)
    over = False
    yield _around(env.unwrapped)
    while not over:
        seen = _around(env.unwrapped)
        gap = seen["front_gap"] / max(seen["speed"], 1.0)
        action = idle
        if draw.uniform() < careless:
            action = int(draw.choice([left, right, faster, slower], p=[0.2, 0.2, 0.5, 0.1]))
        elif gap < 1.0:
            action = slower
        elif gap > 2.0 and draw.uniform() < hurry:
            action = faster
        elif gap < 1.6 and seen["left_front_gap"] > 30 and seen["left_rear_gap"] > 12:
            action = left
        _, _, crashed, over, _ = env.step(action)
        over = bool(over or crashed)
        yield _around(env.unwrapped)
    env.close()


def _around(env: Any) -> dict[str, Any]:
    """Return what the car perceives: itself, and who is next before and behind in three lanes."""
    ego = env.vehicle
    found: dict[str, Any] = {
        "crashed": bool(ego.crashed),
        "speed": float(ego.speed),
        "drift": float(ego.velocity[1]),
        "off_centre": float(ego.position[1] - LANE * round(ego.position[1] / LANE)),
        "lane": round(float(ego.position[1]) / LANE),
    }
    for side, offset in (("", 0.0), ("left_", -LANE), ("right_", LANE)):
        found |= {f"{side}front_gap": FAR, f"{side}front_speed": FAR}
        found |= {f"{side}rear_gap": FAR, f"{side}rear_speed": FAR}
        for other in env.road.vehicles:
            beside = other.position[1] - ego.position[1] - offset
            if other is ego or abs(beside) > LANE / 2:
                continue
            ahead = other.position[0] - ego.position[0]
            end = "front" if ahead >= 0 else "rear"
            gap = max(abs(ahead) - ego.LENGTH, 0.0)
            if gap < found[f"{side}{end}_gap"]:
                found[f"{side}{end}_gap"] = float(gap)
                found[f"{side}{end}_speed"] = float(other.speed)
    return found


def lander(seed: int) -> Iterator[dict[str, Any]]:
    """Yield the ticks of a landing in wind, at 10 Hz."""
    from gymnasium.envs.box2d.lunar_lander import heuristic

    draw = np.random.default_rng(seed)
    careless = draw.uniform(0, CARELESS["lander"])
    wind = float(draw.uniform(0.0, WIND))
    env = gymnasium.make("LunarLander-v3", enable_wind=True, wind_power=wind, turbulence_power=1.0)
    seen, _ = env.reset(seed=seed)
    over = crashed = False
    yield _craft(seen, crashed)
    while not over:
        held = int(draw.integers(4)) if draw.uniform() < careless else None
        for _ in range(FRAMES):
            action = heuristic(env.unwrapped, seen) if held is None else held
            seen, reward, ended, cut, _ = env.step(action)
            over, crashed = bool(ended or cut), bool(ended and reward <= -100)
            if over:
                break
        yield _craft(seen, crashed)
    env.close()


def _craft(seen: Any, crashed: bool) -> dict[str, Any]:
    names = ("x", "height", "x_speed", "climb", "tilt", "spin")
    found: dict[str, Any] = dict(zip(names, map(float, seen[:6]), strict=True))
    return {"crashed": crashed, **found, "legs": int(seen[6] > 0) + int(seen[7] > 0)}


def walker(seed: int) -> Iterator[dict[str, Any]]:
    """Yield the ticks of a walk over rough ground, at 10 Hz, for 32 s, to the end or to a fall."""
    from gymnasium.envs.box2d.bipedal_walker import BipedalWalkerHeuristics

    draw = np.random.default_rng(seed)
    careless, pilot = draw.uniform(0, CARELESS["walker"]), BipedalWalkerHeuristics()
    env = gymnasium.make("BipedalWalker-v3")
    seen, _ = env.reset(seed=seed)
    over = fell = False
    yield _body(seen, fell)
    while not over:
        held = draw.uniform(-1, 1, 4) if draw.uniform() < careless else None
        for _ in range(FRAMES):
            wanted = pilot.step_heuristic(seen)  # in any case: it follows the legs
            seen, reward, ended, cut, _ = env.step(wanted if held is None else held)
            over, fell = bool(ended or cut), bool(ended and reward <= -100)
            if over:
                break
        yield _body(seen, fell)
    env.close()


def _body(seen: Any, fell: bool) -> dict[str, Any]:
    names = ["tilt", "spin", "x_speed", "climb"]
    for leg in "12":
        hip, knee = f"hip_{leg}", f"knee_{leg}"
        names += [hip, f"{hip}_speed", knee, f"{knee}_speed", f"foot_{leg}"]
    found = dict(zip(names, map(float, seen[:14]), strict=True))
    return {"crashed": fell, **found, "below": float(seen[14]), "ahead": float(seen[23])}


PILOTS: dict[str, Callable[[int], Iterator[dict[str, Any]]]] = {
    "highway": highway,
    "lander": lander,
    "walker": walker,
}


def main(name: str, part: str, runs: int, folder: Path) -> None:
    """Simulate the runs that are missing."""
    place = folder / name / part
    place.mkdir(parents=True, exist_ok=True)
    for seed in range(FIRST_SEED[part], FIRST_SEED[part] + runs):
        path = place / f"{seed:06d}.jsonl.gz"
        if path.exists():
            continue
        seen = enumerate(PILOTS[name](seed))
        write_lines(path, ({"t_ns": tick * 10**9 // RATE[name], **one} for tick, one in seen))


if __name__ == "__main__":
    command(main)
