"""Record many runs, for learning and for evaluation.

    python -m evaluation.sumo.runs --folder /tmp/sumo-runs --seeds 1:301

Runs that are already there are kept, so that an interrupted recording goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from evaluation.sumo.record import record


def bag_path(folder: Path, seed: int) -> Path:
    """Return where the bag of a seed lies."""
    return folder / f"town_{seed:04d}"


def record_runs(seeds: range, duration: float, folder: Path) -> Iterator[dict[str, object]]:
    """Record the runs that are missing; yield the events of each run once it is there.

    A run whose ego could not enter the network, because its street was jammed, is yielded with the
    reason under `failed` and leaves no bag.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        bag = bag_path(folder, seed)
        summary = bag.with_suffix(".json")
        if not summary.exists():
            shutil.rmtree(bag, ignore_errors=True)
            try:
                events = asdict(record(seed, duration, bag))
            except RuntimeError as error:
                shutil.rmtree(bag, ignore_errors=True)
                events = {"failed": str(error)}
            run = {"seed": seed, "duration": duration, **events}
            summary.write_text(json.dumps(run), encoding="utf-8")
        yield json.loads(summary.read_text(encoding="utf-8"))


def main() -> None:
    """Record the runs and print the events of each as a JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, required=True, help="where the bags go")
    parser.add_argument("--seeds", default="1:301", help="first:end (default: 1:301)")
    parser.add_argument(
        "--duration", type=float, default=200.0, help="seconds a run (default: 200)"
    )
    arguments = parser.parse_args()
    first, end = (int(part) for part in arguments.seeds.split(":"))
    for run in record_runs(range(first, end), arguments.duration, arguments.folder):
        print(json.dumps(run), flush=True)


if __name__ == "__main__":
    main()
