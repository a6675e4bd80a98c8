"""Simulate the runs of a scenario straight into the library: signals at every tick, no bags.

    python -m evaluation.study.record --scenario s2 --part train --runs 100 --folder out/study

What is kept of a run is the snapshot of every tick, as a trace that `forewarn learn` and `forewarn
replay` read like any recording. Needs SUMO and nothing of forewarn. Runs that are there already are
kept.

At 10 Hz every message of a frame arrives after its own tick and before the next one, whatever its
latency (all are below 0.1 s): the snapshot of the next tick is what the frame publishes, with the
rounding of the messages. `make study` compares both ways bit by bit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.harness.command import command
from evaluation.harness.episodes import write_lines
from evaluation.harness.messages import EPOCH_NS
from evaluation.sumo.messages import grid, light_values, road_values
from evaluation.sumo.record import Events
from evaluation.sumo.scenarios import STRIDE, frames, kind_of
from evaluation.sumo.simulation import STEP, Body, Frame

TICK_NS = round(STRIDE * STEP * 1e9)
# Runs are numbered from 0; the seeds of the two parts never meet.
# Test runs from 50001 to 50030 were looked at while the monitor files were made.
FIRST_SEED = {"train": 1, "test": 50_031}
ROAD_SIGNALS = {"lead_distance": "lead_gap", "lead_speed": "lead_velocity"}
"""Signals that are called otherwise than what they come from."""


def lines(run: Iterable[Frame]) -> Iterator[dict[str, Any]]:
    """Yield time and signals of the tick that first knows of each frame."""
    path: dict[str, list[float]] = {}  # it comes at 5 Hz alone
    for frame in run:
        if frame.path is not None:
            xs, ys = zip(*frame.path, strict=True)
            path = {"path_x": [grid(x, 256) for x in xs], "path_y": [grid(y, 256) for y in ys]}
        assert frame.surroundings is not None
        light, stop_line, light_age = light_values(frame.light).values()
        road = road_values(frame.surroundings).items()
        yield {
            "t_ns": EPOCH_NS + (frame.step // STRIDE + 1) * TICK_NS,
            "speed": grid(frame.speed),
            "ego_x": grid(frame.x),
            "ego_y": grid(frame.y),
            "heading": float(_yaws([frame.yaw])[0]),
            "accel": grid(frame.acceleration, 256),
            "collided": frame.collision,
            "light": light,
            "light_age": light_age,
            "stop_line": stop_line,
            "turn": frame.surroundings.direction,
            **{ROAD_SIGNALS.get(name, name): value for name, value in road},
            **_objects(frame.objects or ()),
            **path,
        }


def _objects(bodies: tuple[Body, ...]) -> dict[str, list[float]]:
    xs, ys = [grid(body.x, 256) for body in bodies], [grid(body.y, 256) for body in bodies]

    def moved(at: list[float], turn: Any) -> list[float]:
        # The message has a point a second ahead, and the signal is the difference.
        ahead = [a + grid(b.speed * turn(b.yaw), 256) for a, b in zip(at, bodies, strict=True)]
        return [there - here for there, here in zip(ahead, at, strict=True)]

    return {
        "obj_x": xs,
        "obj_y": ys,
        "obj_yaw": _yaws([body.yaw for body in bodies]).tolist(),
        "obj_vx": moved(xs, math.cos),
        "obj_vy": moved(ys, math.sin),
        "obj_length": [body.length for body in bodies],
        "obj_width": [body.width for body in bodies],
    }


def _yaws(angles: list[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return what is left of headings after a quaternion of limited resolution."""
    halves = [grid(angle, 8192) / 2 for angle in angles]
    z = np.array([grid(math.sin(half), 1 << 16) for half in halves], dtype=np.float64)
    w = np.array([grid(math.cos(half), 1 << 16) for half in halves], dtype=np.float64)
    # The zeros are x * y of the quaternion: they turn -0 into 0, and so -pi into pi.
    return np.arctan2(2.0 * (w * z + 0.0), w * w - z * z)


def record(scenario: str, seed: int, folder: Path, networks: Path) -> dict[str, Any]:
    """Simulate one run unless it is there; return what its summary says.

    A run whose ego could not enter the network is kept as a summary with the reason under `failed`,
    and leaves no trace. Nor does one that is stopped.
    """
    summary = folder / f"{seed:05d}.json"
    if not summary.exists():
        known: dict[str, Any] = {"seed": seed, "kind": kind_of(scenario, seed)}
        try:
            events = Events()
            run = lines(events.watch(frames(scenario, seed, networks), STRIDE * STEP))
            write_lines(folder / f"{seed:05d}.jsonl.gz", run)
            known |= vars(events)
        except RuntimeError as error:
            known["failed"] = str(error)
        summary.write_text(json.dumps(known), encoding="utf-8")
    return json.loads(summary.read_text(encoding="utf-8"))


def main(scenario: str, part: str, runs: int, folder: Path) -> None:
    """Simulate the runs of one part of one scenario."""
    traces = folder / scenario / part
    traces.mkdir(parents=True, exist_ok=True)
    for seed in range(FIRST_SEED[part], FIRST_SEED[part] + runs):
        print(json.dumps(record(scenario, seed, traces, folder / "networks")), flush=True)


if __name__ == "__main__":
    command(main)
