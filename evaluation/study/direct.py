"""The signals of `signals.yaml` straight from simulation frames, without messages in between.

At 10 Hz every message of a frame arrives after its own tick and before the next one, whatever its
latency (all are below 0.1 s): the snapshot of the next tick is what the frame publishes, with the
rounding of the messages. `python -m evaluation.study.agreement` compares both ways bit by bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evaluation.sumo.messages import EPOCH_NS, LIGHT_CODES, LIGHT_UNKNOWN, NO_STOP_LINE, grid
from evaluation.sumo.scenarios import STRIDE
from evaluation.sumo.simulation import STEP, Body, Frame

TICK_NS = round(STRIDE * STEP * 1e9)


class Translator:
    """Turns the frames of one run into snapshots; remembers the path, which comes at 5 Hz."""

    def __init__(self) -> None:
        self._path: dict[str, list[float]] = {}

    def line(self, frame: Frame) -> dict[str, Any]:
        """Return time and signals of the tick that first knows of a frame."""
        if frame.path is not None:
            self._path = {
                "path_x": [grid(x, 256) for x, _ in frame.path],
                "path_y": [grid(y, 256) for _, y in frame.path],
            }
        light = frame.light
        return {
            "t_ns": EPOCH_NS + (frame.step // STRIDE + 1) * TICK_NS,
            "speed": grid(frame.speed),
            "ego_x": grid(frame.x),
            "ego_y": grid(frame.y),
            "heading": float(_yaws([frame.yaw])[0]),
            "accel": grid(frame.acceleration, 256),
            "collided": frame.collision,
            "light": LIGHT_UNKNOWN if light is None else LIGHT_CODES[light.colour],
            "light_age": 0.0 if light is None else grid(light.age, 64),
            "stop_line": NO_STOP_LINE if light is None else grid(light.distance, 256),
            **_road(frame),
            **_objects(frame.objects or ()),
            **self._path,
        }


def _road(frame: Frame) -> dict[str, Any]:
    seen = frame.surroundings
    assert seen is not None
    distances = {
        "junction": seen.junction,
        "lead_gap": seen.lead_distance,
        "lead_velocity": seen.lead_speed,
        "exit_space": seen.exit_space,
        "exit_speed": seen.exit_speed,
        "crossing_time": seen.crossing_time,
        "yield_gap": seen.yield_gap,
    }
    rounded = {k: v if math.isinf(v) else grid(v, 256) for k, v in distances.items()}
    return {"turn": seen.direction, **rounded}


def _objects(bodies: tuple[Body, ...]) -> dict[str, list[float]]:
    xs = [grid(body.x, 256) for body in bodies]
    ys = [grid(body.y, 256) for body in bodies]
    ahead_x = [x + grid(b.speed * math.cos(b.yaw), 256) for x, b in zip(xs, bodies, strict=True)]
    ahead_y = [y + grid(b.speed * math.sin(b.yaw), 256) for y, b in zip(ys, bodies, strict=True)]
    return {
        "obj_x": xs,
        "obj_y": ys,
        "obj_yaw": _yaws([body.yaw for body in bodies]).tolist(),
        "obj_vx": [ahead - x for ahead, x in zip(ahead_x, xs, strict=True)],
        "obj_vy": [ahead - y for ahead, y in zip(ahead_y, ys, strict=True)],
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
