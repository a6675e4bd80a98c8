"""IR-SIM behind a pipe: scenes in, scans and odometry out, one JSON object a line.

    python -m evaluation.irsim.simulator

runs in the simulator's own environment (requirements.txt). A line is a scene, which begins an
episode, or ``[speed, turn rate]``, a command to the base for a tenth of a second; the answer is the
frame after it. IR-SIM gives geometry, kinematics, the laser and collisions.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from evaluation.irsim.people import Walker
from evaluation.irsim.scenes import (
    BEAMS,
    PERSON_RADIUS,
    RANGE,
    RATE,
    ROBOT_RADIUS,
    SIZE,
    SPAN,
    Scene,
    scene_from,
)

STEP = 1 / RATE
NOISE = 0.01
ACCELERATION, BRAKING, TURNING = 0.8, 1.5, 4.0
"""What the base is able to, in m/s^2 and rad/s^2."""

ARRIVED = 0.4


class Episode:
    """One scene in IR-SIM."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._rng = np.random.default_rng([scene.seed, 5])
        self._walkers = [Walker(person) for person in scene.people]
        self._speed = self._turn = 0.0
        self._tick = 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "world.yaml"
            path.write_text(yaml.safe_dump(world_of(scene)), encoding="utf-8")
            # Here, because it writes to stdout when it is loaded.
            irsim = importlib.import_module("irsim")
            self._env = irsim.make(str(path), headless=True, log_level="ERROR", seed=scene.seed)
        self._robot = self._env.robot_list[0]
        movers = [item for item in self._env.obstacle_list if not item.static]
        self._people = movers
        assert len(movers) == len(scene.people)

    def step(self, speed: float, turn: float) -> None:
        """Go on for a tick, the base as near to the command as it is able to."""
        low, high = self._speed - BRAKING * STEP, self._speed + ACCELERATION * STEP
        self._speed = min(max(speed, low), high)
        self._turn += min(max(turn - self._turn, -TURNING * STEP), TURNING * STEP)
        x, y, yaw = (float(v) for v in self._robot.state[:3, 0])
        robot = (x, y, self._speed * math.cos(yaw), self._speed * math.sin(yaw))
        actions = [np.array([[self._speed], [self._turn]])]
        for walker, person in zip(self._walkers, self._people, strict=True):
            px, py = (float(v) for v in person.state[:2, 0])
            actions.append(np.array(walker.velocity(px, py, robot)).reshape(2, 1))
        ids = [self._robot.id, *(person.id for person in self._people)]
        self._env.step(actions, ids)
        self._tick += 1

    def frame(self) -> dict[str, Any]:
        """Return what the robot senses now, and how the episode stands."""
        x, y, yaw = (float(v) for v in self._robot.state[:3, 0])
        scan = self._robot.get_lidar_scan()
        ranges = scan["ranges"] + self._rng.normal(0.0, NOISE, BEAMS)
        ranges = np.where(scan["valid"], np.round(ranges, 3), math.inf)
        goal_x, goal_y = self._scene.goal
        return {
            "tick": self._tick,
            "pose": [x, y, yaw],
            "speed": self._speed,
            "turn": self._turn,
            "ranges": ranges.tolist(),
            "collided": bool(self._robot.collision),
            "arrived": math.hypot(goal_x - x, goal_y - y) < ARRIVED,
            "people": [[float(v) for v in person.state[:2, 0]] for person in self._people],
        }

    def end(self) -> None:
        """Release the world."""
        self._env.end(0)


def world_of(scene: Scene) -> dict[str, Any]:
    """Return the scene as IR-SIM's world file has it."""
    corners = [[0, 0], [SIZE, 0], [SIZE, SIZE], [0, SIZE], [0, 0]]
    lines = [{"name": "linestring", "vertices": corners}]
    walls = {"number": 1, "shape": lines, "state": [0, 0, 0], "static": True}
    boxes = [
        {"shape": _round(b.radius), "state": [b.x, b.y, 0], "static": True} for b in scene.boxes
    ]
    people = [
        {
            "kinematics": {"name": "omni"},
            "shape": _round(PERSON_RADIUS),
            "state": [*person.path[0], 0],
            "goal": [*person.path[1], 0],
            "vel_max": [2.0, 2.0],
            "vel_min": [-2.0, -2.0],
        }
        for person in scene.people
    ]
    laser = {"name": "lidar2d", "range_min": 0.0, "range_max": RANGE}
    laser |= {"angle_range": SPAN, "number": BEAMS}
    robot = {
        "kinematics": {"name": "diff"},
        "shape": {"name": "circle", "radius": ROBOT_RADIUS},
        "state": list(scene.start),
        "goal": [*scene.goal, 0],
        "vel_max": [2.0, 3.0],
        "vel_min": [-2.0, -3.0],
        "sensors": [laser],
    }
    world = {"height": SIZE, "width": SIZE, "step_time": STEP, "sample_time": STEP}
    world |= {"collision_mode": "unobstructed"}
    return {"world": world, "robot": [robot], "obstacle": [walls, *boxes, *people]}


def _round(radius: float) -> dict[str, Any]:
    """Return a polygon of twelve corners: IR-SIM's own circles have 64, and a scan takes longer."""
    corners = [k * math.tau / 12 for k in range(12)]
    vertices = [[radius * math.cos(a), radius * math.sin(a)] for a in corners]
    return {"name": "polygon", "vertices": vertices}


def serve() -> None:
    """Answer line by line until the other end closes."""
    episode: Episode | None = None
    out, sys.stdout = sys.stdout, sys.stderr  # what the simulator prints must not get between
    for line in sys.stdin:
        message = json.loads(line)
        if isinstance(message, dict):
            if episode is not None:
                episode.end()
            episode = Episode(scene_from(message))
        elif episode is not None:
            episode.step(*message)
        else:
            raise SystemExit("a command came before any scene")
        out.write(json.dumps(episode.frame()) + "\n")
        out.flush()


if __name__ == "__main__":
    serve()
