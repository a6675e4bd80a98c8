"""Episodes: the simulator's process, the planner, and whoever comes between planner and base."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evaluation.irsim.planner import TEMPERS, Planner, View
from evaluation.irsim.scenes import ANGLES, LIMIT, RATE, Scene

ROOT = Path(__file__).resolve().parents[2]
PYTHON = "FOREWARN_IRSIM_PYTHON"
"""Names the interpreter of the simulator's environment."""

Command = tuple[float, float]


class Frame(NamedTuple):
    """What the robot senses at a tick, and how its episode stands."""

    tick: int  # tenths of a second from the beginning
    pose: tuple[float, float, float]  # x, y and yaw
    speed: float  # of the base, in m/s and rad/s
    turn: float
    ranges: NDArray[np.float64]  # metres along each of `ANGLES`; inf where nothing is within range
    collided: bool
    arrived: bool

    @property
    def over(self) -> bool:
        """Whether nothing more happens."""
        return self.collided or self.arrived or self.tick >= LIMIT * RATE


class Simulator:
    """IR-SIM in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def begin(self, scene: Scene) -> Frame:
        """Begin an episode."""
        return self._ask(scene.as_json())

    def step(self, command: Command) -> Frame:
        """Drive for a tick."""
        return self._ask(list(command))

    def _ask(self, message: Any) -> Frame:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the simulator ended; its own words are on stderr")
        found = {name: value for name, value in json.loads(line).items() if name in Frame._fields}
        ranges = np.array(found["ranges"], dtype=np.float64)
        return Frame(**found | {"pose": tuple(found["pose"]), "ranges": ranges})


@contextmanager
def simulator(python: str | None = None) -> Iterator[Simulator]:
    """Run the simulator while the block lasts; raises SystemExit if it is not installed."""
    chosen = python or os.environ.get(PYTHON)
    if not chosen:
        raise SystemExit(f"{PYTHON} names no interpreter with ir-sim; see evaluation/irsim/README")
    process = subprocess.Popen(
        [chosen, "-m", "evaluation.irsim.simulator"],
        cwd=ROOT,
        env={**os.environ, "MPLBACKEND": "Agg"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield Simulator(process)
        assert process.stdin is not None
        process.stdin.close()


class Governor(Protocol):
    """Comes between planner and base."""

    def begin(self, planner: Planner) -> None:
        """Forget the last episode."""

    def govern(self, frame: Frame, command: Command) -> Command:
        """Return what the base is told at a tick, from what the planner commands."""


@dataclass(frozen=True)
class Ending:
    """How an episode ended: seconds and metres driven, and whether it was a contact or the goal."""

    seed: int
    kind: str
    duration: float
    distance: float
    collided: bool
    arrived: bool
    impact: float


def drive(
    world: Simulator, scene: Scene, governor: Governor | None = None
) -> Iterator[tuple[Frame, Command]]:
    """Yield every frame with what the base is told after it; nothing after the last."""
    planner = Planner(TEMPERS[scene.kind], scene.goal, scene.seed, RATE)
    if governor is not None:
        governor.begin(planner)
    frame = world.begin(scene)
    while True:
        if frame.over:
            yield frame, (0.0, 0.0)
            return
        command = planner.command(View(frame.ranges, ANGLES, *frame.pose))
        if governor is not None:
            command = governor.govern(frame, command)
        yield frame, command
        frame = world.step(command)


def ending(scene: Scene, frames: list[Frame]) -> Ending:
    """Sum up an episode."""
    last = frames[-1]
    path = [frame.pose[:2] for frame in frames]
    distance = sum(math.dist(a, b) for a, b in pairwise(path))
    impact = abs(last.speed) if last.collided else 0.0
    how = last.collided, last.arrived, impact
    return Ending(scene.seed, scene.kind, last.tick / RATE, distance, *how)
