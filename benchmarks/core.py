"""The library's own cost: a tick, a replay, learning, and memory over a long replay.

A tick is measured with 16 predicates over 8 signals and 8 properties of both kinds, on a chain
learned from a random walk of the same signals. Replay and learning run over the sample
recordings of the repository against the loop ``for message in reader.messages()`` of the bare
`rosbags` reader over the same topics: with ``town.yaml`` (scalar signals, 16 predicates, 8
properties) and with the demo's monitor file (signals over all road users, three learned scores).
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rosbags.highlevel import AnyReader

from benchmarks._harness import Cell, Table, Target, quantile, resident, take_turns
from benchmarks._harness import run as serve
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.learning.observing import wanted_types
from forewarn.learning.pipeline import learn, shard_of
from forewarn.learning.shard_key import ShardQuery
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.loading import load_fitting, make_monitor
from forewarn.monitoring.session import Session, run
from forewarn.monitoring.step import Monitor
from forewarn.recordings.registry import open_recording

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = ROOT / "evaluation" / "sumo" / "recordings"
TOWN = ROOT / "benchmarks" / "town.yaml"
CONFIG, MODEL = ROOT / "config" / "demo.yaml", ROOT / "config" / "demo.model.json.gz"


def tick_yaml() -> str:
    """Return a monitor file with 8 signals, 16 predicates and 8 properties."""
    signals = "\n".join(f"  s{i}: {{timeout: 1.0}}" for i in range(8))
    predicates = "\n".join(f"  p{i}: s{i // 2} > {0.35 + 0.3 * (i % 2):.2f}" for i in range(16))
    responses = "\n".join(
        f"  r{i}: {{formula: 'always(p{2 * i + 1} implies eventually[0:{1 + i / 2}](not p{2 * i}))'"
        ", horizon: 5.0}"
        for i in range(4)
    )
    invariants = "\n".join(
        f"  n{i}: {{formula: 'always(not (p{2 * i + 8} and p{2 * i + 9}))', horizon: 5.0}}"
        for i in range(4)
    )
    return (
        f"version: 1\nrate: 10\nsignals:\n{signals}\npredicates:\n{predicates}\n"
        f"properties:\n{responses}\n{invariants}\n"
    )


def walk(ticks: int, seed: int = 1) -> Iterator[dict[str, float]]:
    """Yield the signals of a slow random walk that is drawn back to 0.4."""
    draw = random.Random(seed)
    values = [draw.random() for _ in range(8)]
    for _ in range(ticks):
        values = [v + 0.02 * (0.4 - v) + draw.gauss(0.0, 0.02) for v in values]
        yield {f"s{i}": value for i, value in enumerate(values)}


def tick_monitor() -> Monitor:
    """Return a monitor whose chain was learned from the walk."""
    compiled = compile_spec(parse_spec(parse_document(tick_yaml())))
    counter = TransitionCounter(compiled.abstraction.vocabulary)
    for tick, values in enumerate(walk(20_000)):
        source = [values[s.name] for s in compiled.abstraction.sources]
        complete, *_ = compiled.abstraction.complete(source)
        counter.add(tick, compiled.abstraction.evaluate(complete).state)
    counter.end_recording()
    model = build_model(counter, rate=10.0, digest=compiled.abstraction.digest)
    return build_monitor(compiled, model)


def measure_ticks(ticks: int) -> list[tuple[Cell, ...]]:
    """Time the evaluation of single ticks, messages waiting; processor time of the thread."""
    monitor = tick_monitor()
    session = Session(monitor, {})
    times, alerts = [], 0
    for tick, values in enumerate(walk(ticks, seed=2)):
        session.accept("", session.clock.time_ns(tick), values)
        begin = time.thread_time_ns()
        verdict = session.tick(tick)
        times.append((time.thread_time_ns() - begin) / 1e3)
        alerts += any(prop.level for prop in verdict.properties)
    assert monitor.model is not None
    name = f"tick, 16 predicates, 8 properties, chain of {len(monitor.model.states)} states"
    return [
        ("ticks with a warning or an alert", "%", 100 * alerts / ticks, None),
        (f"{name}: p50", "us", quantile(times, 0.5), Target(50.0)),
        (f"{name}: p99", "us", quantile(times, 0.99), Target(200.0)),
    ]


class Replayer:
    """Reads, replays and learns from the sample recordings with one monitor file."""

    def __init__(self, config: Path, model: Path | None) -> None:
        self.bags = sorted(path for path in RECORDINGS.iterdir() if path.is_dir())
        compiled, counts = load_fitting(config, model)
        self.spec, self.abstraction = compiled.spec, compiled.abstraction
        if counts is None:
            counts = learn(self.bags, self.spec, self.abstraction).model
        self.monitor = build_monitor(compiled, counts)
        self.recorded = 0.0

    def bare(self) -> int:
        """Read the same topics with nothing but rosbags."""
        count = 0
        for bag in self.bags:
            with AnyReader([bag]) as reader:
                wanted = [
                    connection
                    for connection in reader.connections
                    if connection.topic in self.spec.topics
                ]
                count += sum(1 for _ in reader.messages(connections=wanted))
        return count

    def replayed(self) -> int:
        """Replay all recordings."""
        self.recorded, count = 0.0, 0
        for bag in self.bags:
            with open_recording(bag) as recording:
                session = Session(self.monitor, wanted_types(self.monitor.spec, recording))
                samples = recording.read(self.spec.topics)
                for _ in run(session, samples, recording.start_ns, recording.end_ns):
                    pass
                count += session.feed.counters.received
                self.recorded += recording.duration
        return count

    def learned(self) -> int:
        """Count the transitions of all recordings."""
        for bag in self.bags:
            shard_of(bag, ShardQuery(self.spec, self.abstraction), None, None)
        return 0


def measure_replay(
    name: str, replayer: Replayer, turns: int, target: Target | None
) -> list[tuple[Cell, ...]]:
    """Time replay and learning of the sample recordings against the bare read loop."""
    bare, replay, learning = take_turns(
        replayer.bare, replayer.replayed, replayer.learned, turns=turns
    )
    if replay.result != bare.result:
        raise SystemExit(f"replay read {replay.result} messages, rosbags {bare.result}")
    return [
        (f"{name}: bare rosbags loop", "messages/s", bare.result / bare.seconds, None),
        (f"{name}: replay", "messages/s", bare.result / replay.seconds, None),
        (f"{name}: replay", "times real time", replayer.recorded / replay.seconds, None),
        (f"{name}: replay", "% of the bare loop", 100 * bare.seconds / replay.seconds, target),
        (f"{name}: learning", "messages/s", bare.result / learning.seconds, None),
        (f"{name}: learning", "times real time", replayer.recorded / learning.seconds, None),
    ]


def measure_memory(minutes: float) -> list[tuple[Cell, ...]]:
    """Replay one recording again and again in one session, as a node that runs for long would."""
    monitor, _ = make_monitor(CONFIG, MODEL)
    bag = RECORDINGS / "held_out"
    with open_recording(bag) as recording:
        session = Session(monitor, wanted_types(monitor.spec, recording))
        samples = list(recording.read(monitor.spec.topics))
        length = recording.end_ns - recording.start_ns + round(1e9 / monitor.spec.rate)
        early, offset = math.nan, 0
        rounds = math.ceil(minutes * 60e9 / length)
        for number in range(rounds):
            moved = (s._replace(time_ns=s.time_ns + offset) for s in samples)
            start = recording.start_ns + offset
            for _ in run(session, moved, start, start + length - round(2e8)):
                pass
            offset += length
            if number == min(4, rounds - 1):
                early = resident()
    return [
        ("memory early on", "MB", early, None),
        (f"growth over {minutes:g} min of replay", "MB", resident() - early, Target(5.0)),
    ]


def measure(ticks: int = 20_000, turns: int = 5, minutes: float = 30.0) -> list[Table]:
    """Measure so many ticks, replays and learning in turns, and memory over recorded minutes."""
    rows = [
        *measure_ticks(ticks),
        *measure_replay("town", Replayer(TOWN, None), turns, Target(50.0, at_least=True)),
        *measure_replay("demo", Replayer(CONFIG, MODEL), turns, None),
        *measure_memory(minutes),
    ]
    return [Table(("What", "Unit", "Figure", "Target"), rows)]


if __name__ == "__main__":
    sys.exit(serve(measure))
