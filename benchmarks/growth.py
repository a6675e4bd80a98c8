"""How the cost grows with the work: what is given, its cost at each size, and the exponent.

The exponent is the slope of cost over size, both as logarithms, from the middle size on: 0 is a
cost that does not depend on the size, 1 one in proportion to it. Whatever grows faster than in
proportion misses its target. ``--picture FILE`` draws the curves.
"""

from __future__ import annotations

import json
import math
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from benchmarks._harness import Cell, Table, Target, number, run, take_turns
from benchmarks.checking import problem
from forewarn.checking.numeric import risk_table
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.observing import wanted_types
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.session import Session
from forewarn.monitoring.session import run as replayed
from forewarn.recordings.registry import open_recording

TICKS = 200
STEEPEST = 1.15
"""What an exponent may be: one, and what is seen where the times are those of a machine."""


class Curve(NamedTuple):
    """Cost over size: what grows, what is measured, its unit, sizes, and the cost of each."""

    grows: str
    measured: str
    unit: str
    sizes: Sequence[int]
    costs: Sequence[float]

    @property
    def exponent(self) -> float:
        """The slope of the logarithms from the middle size on; it takes two sizes."""
        half = (len(self.sizes) - 1) // 2
        slope, _ = np.polyfit(np.log(self.sizes[half:]), np.log(self.costs[half:]), 1)
        return float(slope)


def compiled(signals: str, predicates: Sequence[str], properties: Sequence[str]) -> CompiledSpec:
    """Compile a monitor file of these signals, predicates p0, p1, ... and properties."""
    named = "".join(f"  p{i}: {text}\n" for i, text in enumerate(predicates))
    rules = "".join(
        f"  r{i}: {{formula: '{text}', horizon: 5}}\n" for i, text in enumerate(properties)
    )
    text = f"version: 1\nrate: 10\nsignals:\n{signals}predicates:\n{named}properties:\n{rules}"
    return compile_spec(parse_spec(parse_document(text)))


def tick_cost(spec: CompiledSpec, lines: Sequence[dict[str, object]]) -> float:
    """Return the microseconds of a tick over these lines, without a model, in the best turn."""
    monitor = build_monitor(spec, None)

    def ticks() -> float:
        session, spent = Session(monitor, {}), 0
        for tick, values in enumerate(lines):
            session.accept("", session.clock.time_ns(tick), values)
            begin = time.thread_time_ns()
            session.tick(tick)
            spent += time.thread_time_ns() - begin
        return spent / 1e3 / len(lines)

    return min(ticks() for _ in range(3))


def walks(count: int) -> list[dict[str, object]]:
    """Return lines of so many signals between 0 and 1, each a walk of small steps."""
    draw = random.Random(1)
    values = [draw.random() for _ in range(count)]
    found: list[dict[str, object]] = []
    for _ in range(TICKS):
        values = [min(1.0, max(0.0, value + draw.gauss(0, 0.05))) for value in values]
        found.append({f"s{i}": value for i, value in enumerate(values)})
    return found


def by_predicates(count: int) -> float:
    """Cost of a tick with so many predicates over eight signals."""
    signals = "".join(f"  s{i}: {{timeout: 1.0}}\n" for i in range(8))
    predicates = [f"s{i % 8} > {0.2 + 0.6 * i / count:.3f}" for i in range(count)]
    return tick_cost(compiled(signals, predicates, ["always(not (p0 and p1))"]), walks(8))


def by_properties(count: int) -> float:
    """Cost of a tick with so many bounded responses over sixteen predicates."""
    signals = "".join(f"  s{i}: {{timeout: 1.0}}\n" for i in range(8))
    predicates = [f"s{i % 8} > {0.2 + 0.6 * i / 16:.3f}" for i in range(16)]
    rules = [
        f"always(p{i % 16} implies eventually[0:{1 + i % 3}](p{(i + 1) % 16}))"
        for i in range(count)
    ]
    return tick_cost(compiled(signals, predicates, rules), walks(8))


def by_length(length: int) -> float:
    """Cost of a tick with a predicate over the elements of a list."""
    values = np.linspace(1.0, 9.0, length)
    lines: list[dict[str, object]] = [
        {"ranges": (values + tick % 7).tolist()} for tick in range(TICKS)
    ]
    spec = compiled("  ranges: {timeout: 1.0}\n", ["min(ranges) < 3.0"], ["always(not p0)"])
    return tick_cost(spec, lines)


def by_topics(folder: Path) -> Callable[[int], float]:
    """Cost of a replayed tick with so many topics of ten messages a second."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    kind = "std_msgs/msg/Float64"

    def cost(count: int) -> float:
        path = folder / f"bag{count}"
        data = store.serialize_cdr(store.types[kind](0.4), kind)
        with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            topics = [writer.add_connection(f"/s{i}", kind, typestore=store) for i in range(count)]
            for tick in range(TICKS):
                for topic in topics:
                    writer.write(topic, tick * 100_000_000, data)
        signals = "".join(
            f"  s{i}: {{topic: /s{i}, type: {kind}, value: data, timeout: 1.0}}\n"
            for i in range(count)
        )
        monitor = build_monitor(compiled(signals, ["s0 > 1"], ["always(not p0)"]), None)

        def replay() -> int:
            with open_recording(path) as recording:
                session = Session(monitor, wanted_types(monitor.spec, recording))
                samples = recording.read(monitor.spec.topics)
                return sum(
                    1 for _ in replayed(session, samples, recording.start_ns, recording.end_ns)
                )

        (done,) = take_turns(replay, turns=3)
        return done.seconds / done.result * 1e6

    return cost


def by_states(count: int) -> float:
    """Cost of a risk table of a bounded response over fifty ticks."""
    given = problem(count)
    (done,) = take_turns(lambda: risk_table(*given, 50, precision=1e-6), turns=2)
    return done.seconds * 1e3


def by_recordings(folder: Path) -> Callable[[int], float]:
    """Cost of learning from so many recordings of two seconds."""
    spec = compiled("  s0: {timeout: 1.0}\n", ["s0 > 0.5"], ["always(not p0)"])

    def cost(count: int) -> float:
        paths = [folder / f"{count}_{i}.jsonl" for i in range(count)]
        draw = random.Random(count)
        for path in paths:
            lines = [json.dumps({"t": t / 10, "s0": draw.random()}) for t in range(20)]
            path.write_text("\n".join(lines) + "\n")
        (done,) = take_turns(lambda: learn(paths, spec.spec, spec.abstraction), turns=1)
        return done.seconds

    return cost


def curves(most: int, folder: Path) -> list[Curve]:
    """Measure all; sizes above `most` are left out."""

    def curve(
        grows: str, measured: str, unit: str, cost: Callable[[int], float], *sizes: int
    ) -> Curve:
        chosen = [size for size in sizes if size <= most]
        return Curve(grows, measured, unit, chosen, [cost(size) for size in chosen])

    return [
        curve("topics", "a replayed tick", "us", by_topics(folder), 1, 3, 10, 30, 100, 200),
        curve("predicates", "a tick", "us", by_predicates, 4, 8, 16, 32, 64),
        curve("properties", "a tick", "us", by_properties, 1, 4, 16, 32, 64),
        curve("elements of a list", "a tick", "us", by_length, 1, 10, 100, 1_000, 10_000),
        curve("states", "a risk table", "ms", by_states, 10, 100, 1_000, 10_000, 10**5, 10**6),
        curve("recordings", "learning", "s", by_recordings(folder), 1, 10, 100, 1_000, 10_000),
    ]  # fmt: skip


def drawn(found: Sequence[Curve]) -> str:
    """Return a picture of all curves, size and cost in powers of ten."""
    wide, high, parts = 240, 180, []
    for place, one in enumerate(found):
        logs = np.log10([*one.costs]), np.log10([*one.sizes])
        low = math.floor(logs[0].min())
        span = max(1, math.ceil(logs[0].max()) - low), max(1.0, float(logs[1].max()))
        points = " ".join(
            f"{40 + 180 * x / span[1]:.1f},{140 - 100 * (y - low) / span[0]:.1f}"
            for y, x in zip(*logs, strict=True)
        )
        at = f"translate({wide * (place % 3)} {high * (place // 3)})"
        parts.append(
            f'<g transform="{at}"><path d="M40 30V140H225" fill="none" stroke="#888"/>'
            f'<polyline points="{points}" fill="none" stroke="#1f5fa8" stroke-width="2"/>'
            f'<text x="40" y="18">{one.measured} ({one.unit}): exponent {one.exponent:.2f}</text>'
            f'<text x="36" y="143" text-anchor="end">{10.0**low:g}</text>'
            f'<text x="36" y="45" text-anchor="end">{10.0 ** (low + span[0]):g}</text>'
            f'<text x="40" y="156">1</text><text x="225" y="156" text-anchor="end">'
            f"{one.sizes[-1]:,} {one.grows}</text></g>"
        )
    box = f"{3 * wide} {high * math.ceil(len(found) / 3)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {box}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def measure(most: int = 1_000_000, picture: str = "") -> list[Table]:
    """Measure each curve up to the size `most`; draw them into the file `picture`."""
    with TemporaryDirectory() as folder:
        found = curves(most, Path(folder))
    if picture:
        Path(picture).write_text(drawn(found), encoding="utf-8")
    rows: list[tuple[Cell, ...]] = [
        (
            one.grows,
            f"{one.measured}, {one.unit}",
            "; ".join(f"{n:,}: {number(c)}" for n, c in zip(one.sizes, one.costs, strict=True)),
            round(one.exponent, 2),
            Target(STEEPEST),
        )
        for one in found
    ]
    return [Table(("What grows", "Cost of", "Size: cost", "Exponent", "Target"), rows)]


if __name__ == "__main__":
    sys.exit(run(measure))
