"""Do a bag and the quick way say the same? All signals of every tick, bit by bit.

    python -m evaluation.study.agreement BAG TRACE

BAG is a run recorded by the topics that a robot publishes (`evaluation.sumo.scenarios`), TRACE the
same run straight from the simulation (`evaluation.study.record`).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from forewarn.config import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.pipeline import observe
from forewarn.logic.specification import compile_spec
from forewarn.recordings import open_recording

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
        for snapshot, seen in observe(recording, spec, abstraction):
            yield snapshot.tick, dict(zip(abstraction.signals, seen.values, strict=True))


def same(a: Any, b: Any) -> bool:
    """Tell whether two values have the same bits; unknown equals unknown."""
    if a is None or b is None:
        return a is b
    if np.ndim(a) or np.ndim(b):
        left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        return left.shape == right.shape and left.tobytes() == right.tobytes()
    return a == b or (math.isnan(a) and math.isnan(b))


def disagreements(bag: Path, trace: Path) -> list[str]:
    """Return where two recordings of one run differ; nothing if they agree."""
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
    """Compare two recordings of one run; exit with 1 if they disagree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("bag", type=Path)
    parser.add_argument("trace", type=Path)
    arguments = parser.parse_args()
    found = disagreements(arguments.bag, arguments.trace)
    for line in found[:20]:
        print(line)
    print(f"{arguments.trace}: {len(found)} values differ from {arguments.bag}")
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
