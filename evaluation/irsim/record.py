"""Record episodes without any monitor, for learning and for judging.

    python -m evaluation.irsim.record --seeds 0:300 --folder /tmp/irsim-runs

with FOREWARN_IRSIM_PYTHON set (README.md) writes a bag for each seed, and beside it how the episode
ended. What is there is not done again.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from evaluation.irsim.messages import write_bag
from evaluation.irsim.robot import Simulator, drive, ending, simulator
from evaluation.irsim.scenes import draw_scene


def record(world: Simulator, seed: int, folder: Path) -> dict[str, object]:
    """Record the episode of a seed, and return how it ended."""
    bag, note = folder / f"episode_{seed:04d}", folder / f"episode_{seed:04d}.json"
    if not note.exists():
        if bag.exists():
            shutil.rmtree(bag)  # the end of a session that was cut short
        scene = draw_scene(seed)
        episode = list(drive(world, scene))
        write_bag(bag, episode)
        note.write_text(
            json.dumps(asdict(ending(scene, [frame for frame, _ in episode]))), encoding="utf-8"
        )
    found: dict[str, object] = json.loads(note.read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Record, and count the endings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", default="0:300", help="first:end")
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    first, end = (int(part) for part in arguments.seeds.split(":"))
    endings: Counter[tuple[object, str]] = Counter()
    with simulator() as world:
        for seed in range(first, end):
            found = record(world, seed, arguments.folder)
            how = "contact" if found["collided"] else "arrived" if found["arrived"] else "late"
            endings[found["kind"], how] += 1
            print(seed, found["kind"], how, found["duration"], flush=True)
    print(dict(endings))


if __name__ == "__main__":
    main()
