"""Each recorded car as the ego: the signals that its own sensors would have given, as traces.

    python -m evaluation.foresight.ngsim --data DATA --output FOLDER

writes one JSON-lines trace for each car of the CommonRoad scenes in DATA. Nothing in a line was
known later than the time of the line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.foresight.commonroad import Car, Scene, at_step, backward_slope, load_scene
from evaluation.harness.command import command
from forewarn.expressions.functions.geometry import Place, Polyline

SIGHT = 80.0
"""Metres of lane ahead that are looked at."""

IN_LANE, BESIDE = 1.5, 2.0
"""Metres from the lane's centre: nearer is in the lane; farther has left it. Between them a car
stays where it was, so that one that drives on the line does not cut in again and again."""

NEIGHBOURS = 5.0
"""Metres from the lane's centre up to which a car drives beside it."""

LEAST_STEPS = 15
"""Shorter records give nothing to predict."""

SECOND, MOMENT = 10, 4
"""Steps over which a speed's rate of change is taken: what was lost in a second, and just now."""


class Other(NamedTuple):
    """A car near the ego's path: gap between bumpers, offset from the path, speed along it."""

    number: int
    gap: float
    offset: float
    speed: float
    acceleration: float


class Memory:
    """What the ego remembers of others: who was in its lane, and where they were."""

    def __init__(self) -> None:
        self._inside: dict[int, bool] = {}
        self._offsets: dict[int, list[float]] = {}

    def inside(self, other: Other) -> tuple[bool, bool]:
        """Return whether a car is in the lane, and whether it has just come into it."""
        before = self._inside.get(other.number)
        limit = BESIDE if before else IN_LANE
        now = abs(other.offset) < limit
        self._inside[other.number] = now
        return now, now and before is False

    def approach(self, other: Other, step: float) -> float:
        """Return how fast a car comes nearer to the lane's centre, in m/s."""
        seen = self._offsets.setdefault(other.number, [])
        seen.append(abs(other.offset))
        del seen[: -MOMENT - 1]
        return (seen[0] - seen[-1]) / ((len(seen) - 1) * step) if len(seen) > 1 else 0.0


def others_near(scene: Scene, ego: Car, row: int, path: Polyline) -> list[Other]:
    """Return the cars along the ego's path, nearest first."""
    step = ego.first + row
    (own,), _ = path.locate(ego.x[[row]], ego.y[[row]])
    found = []
    for car, at in at_step(scene, step, ego.number):
        (station,), (offset,) = path.locate(car.x[[at]], car.y[[at]])
        turned = math.remainder(car.heading[at] - path.heading(station), math.tau)
        gap = float(station - own - (car.length + ego.length) / 2)
        if abs(turned) < math.pi / 3 and abs(offset) < NEIGHBOURS and -5 < gap < SIGHT:
            along = float(car.speed[at] * math.cos(turned))
            slope = backward_slope(car.speed[: at + 1], scene.step, MOMENT)[-1]
            found.append(Other(car.number, gap, float(offset), along, float(slope)))
    return sorted(found, key=lambda other: other.gap)


def trace_lines(scene: Scene, ego: Car) -> Iterator[dict[str, Any]]:
    """Yield the named values of every step of a car's record."""
    acceleration = backward_slope(ego.speed, scene.step, SECOND)
    just_now = backward_slope(ego.speed, scene.step, MOMENT)
    memory = Memory()
    for row, step in enumerate(ego.steps):
        place = Place(ego.x[row], ego.y[row], ego.heading[row])
        path = scene.lanes.path_ahead(place, SIGHT)
        line = {"t": round(step * scene.step, 3), "speed": float(ego.speed[row])}
        line["acceleration"] = _known(acceleration[row])
        line["just_now"] = _known(just_now[row])
        if path is None:
            yield line | dict.fromkeys(_SEEN)
            continue
        yield line | _seen(others_near(scene, ego, row, path), memory, scene.step, ego.speed[row])


_SEEN = (
    *("lead_distance", "lead_speed", "lead_acceleration", "lead_cuts_in"),
    *("side_crossing", "side_distance", "side_speed"),
)


def _seen(others: list[Other], memory: Memory, step: float, speed: float) -> dict[str, Any]:
    lead: Other | None = None
    cuts_in = False
    side, crossing = None, math.inf
    for other in others:
        inside, entered = memory.inside(other)
        approach = memory.approach(other, step)
        if inside and other.gap > 0 and lead is None:
            lead, cuts_in = other, entered
        elif not inside and other.gap < max(2.0 * speed, 5.0):
            # Seconds until its centre is within the lane, if it goes on like this.
            time = (abs(other.offset) - IN_LANE) / approach if approach > 0.1 else math.inf
            if side is None or time < crossing:
                side, crossing = other, max(time, 0.0)
    return {
        "lead_distance": lead.gap if lead else math.inf,
        "lead_speed": lead.speed if lead else math.inf,
        "lead_acceleration": _known(lead.acceleration) if lead else 0.0,
        "lead_cuts_in": cuts_in,
        "side_crossing": crossing,
        "side_distance": side.gap if side else math.inf,
        "side_speed": side.speed if side else math.inf,
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def write_traces(data: Path, output: Path) -> dict[str, list[Path]]:
    """Write a trace of every car that was seen for long enough; return them by scene."""
    scenes = sorted(data.glob("*.xml"))
    if not scenes:
        raise FileNotFoundError(f"{data} holds no CommonRoad scene (*.xml)")
    output.mkdir(parents=True, exist_ok=True)
    written: dict[str, list[Path]] = {}
    for path in scenes:
        scene = load_scene(path)
        written[scene.name] = []
        for car in scene.cars:
            if len(car.x) >= LEAST_STEPS:
                trace = output / f"{scene.name}_{car.number}.jsonl"
                lines = (json.dumps(line) + "\n" for line in trace_lines(scene, car))
                trace.write_text("".join(lines), encoding="utf-8")
                written[scene.name].append(trace)
        if not written[scene.name]:
            print(f"{path} is left out: no car was seen for {LEAST_STEPS} steps")
    return written


def main(data: Path, output: Path) -> None:
    """Write the traces and say how much there is."""
    for scene, traces in write_traces(data, output).items():
        steps = sum(len(trace.read_text(encoding="utf-8").splitlines()) for trace in traces)
        print(f"{scene}: {len(traces)} cars, {steps / 10:.1f} s")


if __name__ == "__main__":
    command(main)
