"""Make the sample recordings of this repository again.

    python -m evaluation.sumo.samples --output /tmp/sumo-samples

Their seeds are apart from those of the runs that `config/demo.model.json` was learned from (1 to
200), and the held-out one is apart from both.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from evaluation.sumo.record import record


class Sample(NamedTuple):
    """A sample recording: its name, its seed, and the seconds before and during it."""

    name: str
    seed: int
    warm_up: float
    duration: float


SAMPLES = (
    Sample("train_1", 402, 50.0, 125.0),
    Sample("train_2", 404, 50.0, 125.0),
    Sample("train_3", 405, 50.0, 125.0),
    # Taken from seeds 501 to 524 because it holds both kinds of violation.
    Sample("held_out", 507, 75.0, 50.0),
)


def main() -> None:
    """Record the samples and write what the simulator knows to have happened in them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, required=True, help="folder for the bags")
    folder: Path = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    events = {}
    for sample in SAMPLES:
        bag = folder / sample.name
        happened = record(sample.seed, sample.duration, bag, warm_up=sample.warm_up)
        events[sample.name] = {**sample._asdict(), **asdict(happened)}
    (folder / "events.json").write_text(json.dumps(events, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
