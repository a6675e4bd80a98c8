"""What was published over real topics, and what is computed offline, as values to compare."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from live_ros import Probe, Process

from forewarn.assessment.record_replay import replay_record
from forewarn.checking.numeric import risk_table
from forewarn.config.file import load_spec
from forewarn.learning.observing import wanted_types
from forewarn.models.file import load_model
from forewarn.monitoring.build import build_monitor, compile_for
from forewarn.monitoring.carried import Taken
from forewarn.monitoring.session import Session, run
from forewarn.monitoring.verdict import Verdict
from forewarn.recordings.registry import open_recording
from forewarn.signals.clock import NANOSECONDS
from forewarn.states.vocabulary import Vocabulary
from forewarn_ros.messages import from_time

Facts = tuple[int, str, str, tuple[int, ...], bytes, tuple[float, ...]]


def offline(config: Path, model: Path | None, bag: Path) -> list[Facts]:
    """Return stamp, property, state, automaton, the risk's bits and stale ages of every tick."""
    learned = None if model is None else load_model(model)
    compiled = compile_for(load_spec(config), learned)
    # Bounds are in the records: here they would only take time.
    monitor = build_monitor(compiled, learned, risk_table)
    with open_recording(bag) as recording:
        session = Session(monitor, wanted_types(monitor.spec, recording))
        samples = recording.read(session.feed.topics)
        verdicts = run(session, samples, recording.start_ns, recording.end_ns)
        return [fact for v in verdicts for fact in facts(v, compiled.abstraction.vocabulary)]


def facts(verdict: Verdict, vocabulary: Vocabulary) -> Iterator[Facts]:
    key = vocabulary.observed_key(verdict.observation)
    ages = tuple(math.inf if old.age is None else old.age / NANOSECONDS for old in verdict.stale)
    for prop in verdict.properties:
        bits = struct.pack("<d", prop.probability)
        yield verdict.time_ns, prop.name, key, prop.automaton, bits, ages


def published(messages: list[Any]) -> list[Facts]:
    return [
        (
            from_time(message.header.stamp),
            risk.property,
            risk.details.state_key,
            tuple(risk.details.automaton_states),
            struct.pack("<d", risk.probability),
            tuple(risk.stale_ages),
        )
        for message in messages
        for risk in message.risks
    ]


def play(probe: Probe, **parameters: Any) -> None:
    """Play a recording from a third process to its end."""
    probe.meet()
    with Process("bag_player", probe.domain, parameters) as player:
        probe.wait(lambda: player.process.poll() is not None, "the end of the recording", 120)
        assert player.process.returncode == 0


def check_record(path: Path) -> int:
    """Replay a record, compare every field of every tick, and return the number of ticks."""
    ticks, taken = 0, Taken()
    for tick in replay_record(path, taken):
        ticks += 1
        assert list(tick.differences()) == []
    assert (taken.difference, taken.conditions) == (0.0, {})
    with open_recording(path) as recording:
        stored = [name for name in recording.attachments() if name.startswith("tables-")]
        models = [name for name in recording.attachments() if name.startswith("model-")]
    assert bool(models) == bool(stored) == (taken.tables > 0)
    return ticks
