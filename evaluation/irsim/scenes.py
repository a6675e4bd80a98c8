"""Rooms with boxes, people and a robot, drawn from a seed. Pure: no simulator needed."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIZE = 10.0
"""Metres from wall to wall."""

ROBOT_RADIUS = 0.22
PERSON_RADIUS = 0.25
BOXES, PEOPLE = 4, 6
LIMIT = 45.0
"""Seconds after which an episode ends where it is."""

RATE = 10.0
"""Scans, odometry and commands a second."""

BEAMS, RANGE = 120, 6.0
SPAN = math.tau * (1 - 1 / BEAMS)
ANGLES = np.linspace(-SPAN / 2, SPAN / 2, BEAMS)
"""Directions of the beams from straight ahead, in radians."""

KINDS = ("careful", "hasty", "reckless")


@dataclass(frozen=True)
class Disc:
    """Something round: centre and radius in metres."""

    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class Person:
    """Somebody who walks from point to point."""

    speed: float  # m/s
    notices: float  # metres between bodies at which the robot is stepped around; below 0.3 is late
    path: tuple[tuple[float, float], ...]  # after the last point comes the first


@dataclass(frozen=True)
class Scene:
    """A room and what happens in it; `kind` is the robot's temper."""

    seed: int
    kind: str
    start: tuple[float, float, float]
    goal: tuple[float, float]
    boxes: tuple[Disc, ...]
    people: tuple[Person, ...]

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def scene_from(values: dict[str, Any]) -> Scene:
    """Return the scene of `Scene.as_json`."""
    boxes = tuple(Disc(**box) for box in values["boxes"])
    people = tuple(
        Person(p["speed"], p["notices"], tuple(tuple(point) for point in p["path"]))
        for p in values["people"]
    )
    start, goal = tuple(values["start"]), tuple(values["goal"])
    return Scene(values["seed"], values["kind"], start, goal, boxes, people)


def draw_scene(seed: int) -> Scene:
    """Return the scene of a seed; its kind is one of three in turn."""
    rng = np.random.default_rng([seed, 2026])
    start = np.array([0.8, rng.uniform(1, SIZE - 1)])
    goal = np.array([SIZE - 0.8, rng.uniform(1, SIZE - 1)])
    if rng.random() < 0.5:
        start, goal = goal, start
    boxes: list[Disc] = []
    while len(boxes) < BOXES:
        box = Disc(*(float(v) for v in rng.uniform(2, SIZE - 2, 2)), float(rng.uniform(0.25, 0.5)))
        if all(math.hypot(box.x - b.x, box.y - b.y) > 1.3 + b.radius + box.radius for b in boxes):
            boxes.append(box)
    heading = math.atan2(goal[1] - start[1], goal[0] - start[0])
    return Scene(
        seed=seed,
        kind=KINDS[seed % len(KINDS)],
        start=(float(start[0]), float(start[1]), heading),
        goal=(float(goal[0]), float(goal[1])),
        boxes=tuple(boxes),
        people=tuple(_person(rng, boxes, start) for _ in range(PEOPLE)),
    )


def _person(rng: np.random.Generator, boxes: list[Disc], start: NDArray[np.float64]) -> Person:
    path: list[tuple[float, float]] = []
    while len(path) < 6:
        x, y = (float(v) for v in rng.uniform(0.6, SIZE - 0.6, 2))
        if path:
            suits = _free(path[-1], (x, y), boxes)
        else:
            clear = all(math.hypot(x - b.x, y - b.y) > b.radius + 0.6 for b in boxes)
            suits = clear and math.hypot(x - start[0], y - start[1]) > 2.5
        if suits:
            path.append((x, y))
    return Person(float(rng.uniform(0.3, 1.0)), float(rng.uniform(0.05, 0.8)), tuple(path))


def _free(a: tuple[float, float], b: tuple[float, float], boxes: list[Disc]) -> bool:
    """Tell whether the straight way from a to b is long enough and meets no box."""
    ax, ay = a
    dx, dy = b[0] - ax, b[1] - ay
    length = math.hypot(dx, dy)
    if length < 2.0:
        return False
    for box in boxes:
        along = min(max(((box.x - ax) * dx + (box.y - ay) * dy) / length**2, 0.0), 1.0)
        gap = math.hypot(ax + along * dx - box.x, ay + along * dy - box.y)
        if gap < box.radius + PERSON_RADIUS + 0.1:
            return False
    return True
