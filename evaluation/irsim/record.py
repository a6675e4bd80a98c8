"""Record episodes without any monitor, for learning and for judging.

    python -m evaluation.irsim.record --seeds 0:300 --folder /tmp/irsim-runs

with FOREWARN_IRSIM_PYTHON set (README.md) writes a bag for each seed, and beside it how the episode
ended. What is there is not done again.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluation.harness.command import Seeds, command
from evaluation.irsim.messages import write_bag
from evaluation.irsim.planner import Path as Way
from evaluation.irsim.planner import Planner
from evaluation.irsim.robot import Command, Frame, Simulator, drive, ending, simulator
from evaluation.irsim.scenes import draw_scene


class Listener:
    """Hears what the planner means to drive, and changes nothing."""

    def __init__(self) -> None:
        self.paths: list[Way | None] = []

    def begin(self, planner: Planner) -> None:
        """Listen to another planner."""
        self._planner = planner
        self.paths = []

    def govern(self, frame: Frame, command: Command) -> Command:
        """Return what the planner commands."""
        self.paths.append(self._planner.path)
        return command


def record(world: Simulator, seed: int, folder: Path) -> dict[str, Any]:
    """Record the episode of a seed, and return how it ended."""
    bag, note = folder / f"episode_{seed:04d}", folder / f"episode_{seed:04d}.json"
    if not note.exists():
        shutil.rmtree(bag, ignore_errors=True)  # the end of a session that was cut short
        scene = draw_scene(seed)
        listener = Listener()
        episode = list(drive(world, scene, listener))
        paths = [*listener.paths, None]  # nothing is planned at the end
        write_bag(bag, ((*one, path) for one, path in zip(episode, paths, strict=True)))
        found = asdict(ending(scene, [frame for frame, _ in episode]))
        note.write_text(json.dumps(found), encoding="utf-8")
    return json.loads(note.read_text(encoding="utf-8"))


def main(folder: Path, seeds: Seeds = range(300)) -> None:
    """Record, and count the endings."""
    folder.mkdir(parents=True, exist_ok=True)
    endings: Counter[tuple[str, str]] = Counter()
    with simulator() as world:
        for seed in seeds:
            found = record(world, seed, folder)
            how = "contact" if found["collided"] else "arrived" if found["arrived"] else "late"
            endings[found["kind"], how] += 1
            print(seed, found["kind"], how, found["duration"], flush=True)
    print(dict(endings))


if __name__ == "__main__":
    command(main)
