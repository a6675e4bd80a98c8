"""Do a bag and the quick way say the same? Verdicts of both, bit by bit.

    python -m evaluation.study.agreement --scenario s3 --seed 4

Records one run as a bag, by the topics that a robot publishes, and as a trace, straight from the
simulation; compares the signals of every tick. Needs SUMO.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from evaluation.study.record import write_trace
from evaluation.sumo.scenarios import SETTINGS, frames, record_bag
from forewarn.config import parse_spec
from forewarn.learning.pipeline import observe
from forewarn.properties.specification import compile_spec
from forewarn.recordings import open_recording
from forewarn.yamlfile import parse_document

SIGNALS = Path(__file__).parent / "signals.yaml"
# Nothing but signals is wanted, but a monitor file has at least one property.
ANY_PROPERTY = """
version: 1
rate: 10
predicates: {moving: speed > 0}
properties: {any: {formula: always(moving or not moving), horizon: 1, thresholds: {act: 0.5}}}
"""


def snapshots(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield tick and signals, of topics and derived, of every tick of a recording."""
    sections = yaml.safe_load(SIGNALS.read_text(encoding="utf-8"))["signals"]
    data = {**yaml.safe_load(ANY_PROPERTY), "signals": sections}
    spec = parse_spec(parse_document(yaml.safe_dump(data, sort_keys=False)))
    abstraction = compile_spec(spec).abstraction
    with open_recording(path) as recording:
        for snapshot, _, _ in observe(recording, spec, abstraction):
            values, _ = abstraction.complete(snapshot.values)
            yield snapshot.tick, dict(zip(abstraction.signals, values, strict=True))


def same(a: Any, b: Any) -> bool:
    """Tell whether two values have the same bits; unknown equals unknown."""
    if a is None or b is None:
        return a is b
    if np.ndim(a) or np.ndim(b):
        left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        return left.shape == right.shape and left.tobytes() == right.tobytes()
    return a == b or (math.isnan(a) and math.isnan(b))


def disagreements(name: str, seed: int, networks: Path, work: Path) -> list[str]:
    """Record one run both ways; return where they differ, nothing if they agree."""
    bag, trace = work / f"{name}_{seed}", work / f"{name}_{seed}.jsonl.gz"
    record_bag(name, seed, networks, bag)
    write_trace(trace, frames(name, seed, networks))
    ours, theirs = list(snapshots(trace)), list(snapshots(bag))
    if [tick for tick, _ in ours] != [tick for tick, _ in theirs]:
        return [f"{len(ours)} and {len(theirs)} ticks, or not the same ones"]
    return [
        f"tick {tick}: {signal} is {values[signal]!r} and {others[signal]!r}"
        for (tick, values), (_, others) in zip(ours, theirs, strict=True)
        for signal in values
        if not same(values[signal], others[signal])
    ]


def main() -> None:
    """Compare one run; exit with 1 if the ways disagree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--scenario", choices=sorted(SETTINGS), required=True)
    parser.add_argument("--seed", type=int, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        found = disagreements(arguments.scenario, arguments.seed, work, work)
    for line in found[:20]:
        print(line)
    print(f"{arguments.scenario}, seed {arguments.seed}: {len(found)} values differ")
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
