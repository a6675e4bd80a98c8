"""A state space that is no vector of predicates runs through learning, replay and the session."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scipy import sparse

from forewarn.assessment.replay import replay
from forewarn.config import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.live_session import Watch
from forewarn.monitoring.verdict import PropertyStatus
from forewarn.recordings import open_recording
from forewarn.signals.feed import Snapshot
from forewarn.signals.sources import SourceSignal
from forewarn.states.interface import StateSpace
from forewarn.states.predicates import Seen

# The same names make the file compile; which of them hold, the zones say.
TEXT = """
version: 1
rate: 10
signals: {x: {timeout: 0.5}}
predicates: {low: x < 1, middle: x < 2, high: x >= 2}
properties:
  calm: {formula: always(not high), horizon: 1, thresholds: {act: 0.9}}
"""
ZONES = ("low", "middle", "high")


class Zone(NamedTuple):
    """What is known of a tick: the zones that it may be in."""

    may: tuple[int, ...]
    ended: bool = False
    active: bool | None = True
    intervened: bool | None = False

    @property
    def state(self) -> int | None:
        return self.may[0] if len(self.may) == 1 else None


class Zones(StateSpace):
    """One signal lies in one of three zones; the code of a state is the number of its zone."""

    predicates, terminals, cardinality = ZONES, (), 3
    nothing_known = Zone((0, 1, 2))

    def name(self, state: int) -> str:
        return ZONES[state]

    key = name

    def parse_key(self, key: str) -> int:
        return ZONES.index(key)

    def holds(self, atom: str, state: int) -> bool:
        return ZONES[state] == atom

    def with_terminal(self, label: str) -> StateSpace:
        raise AssertionError(label)

    def candidates(self, observation: Zone) -> Iterator[int]:
        return iter(observation.may)

    def terminal_candidates(self, observation: Zone) -> tuple[int, ...]:
        return ()

    # Zones are neighbours: nothing jumps over the middle one.
    def admits(self, state: int) -> bool:
        return 0 <= state < 3

    def allows(self, source: int, target: int) -> bool:
        return abs(source - target) < 2

    def forbidden_matrix(self, states: Sequence[int]) -> sparse.csr_matrix:
        return sparse.csr_matrix([[not self.allows(s, t) for t in states] for s in states])

    def states(self) -> list[int]:
        return [0, 1, 2]

    def is_covered(self, states: Sequence[int]) -> bool:
        return len(states) == 3


@dataclass(frozen=True)
class ZoneAbstraction:
    """From the signal to its zone; a missing value leaves the neighbours of the last zone."""

    sources: tuple[SourceSignal, ...]
    vocabulary: Zones
    derived: tuple[()] = ()
    signals: tuple[str, ...] = ("x",)
    predicates: tuple[()] = ()
    terminals: tuple[()] = ()
    action: None = None
    remembers: bool = False
    by_platform: frozenset[str] = frozenset()
    rate: float = 10.0
    digest: str = "zones"

    def observe(self, snapshot: Snapshot, previous: Any) -> Seen:
        [x] = snapshot.values
        before = (0, 1, 2) if previous is None else previous.may
        near = tuple(z for z in range(3) if any(abs(z - b) < 2 for b in before))
        zone = Zone(near if x is None else (min(int(x), 2),))
        return Seen(zone, zone, [x], ())  # type: ignore[arg-type]

    def validity(self, spec: Any) -> Zones:
        return self.vocabulary


@pytest.fixture
def compiled() -> CompiledSpec:
    found = compile_spec(parse_spec(parse_document(TEXT)))
    zones: Any = ZoneAbstraction(found.abstraction.sources, Zones())
    return replace(found, abstraction=zones)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.jsonl"
    xs = [0.5, 0.5, 1.5, 0.5, 1.5, 2.5, 1.5, 0.5] * 10
    path.write_text("".join(json.dumps({"t": i / 10, "x": x}) + "\n" for i, x in enumerate(xs)))
    return path


def test_learn_and_replay(compiled: CompiledSpec, trace: Path) -> None:
    model = learn([trace], compiled.spec, compiled.abstraction).model
    assert [model.vocabulary.key(state) for state in model.states] == list(ZONES)
    assert model.counts.toarray().tolist() == [[19, 20, 0], [20, 0, 10], [0, 10, 0]]
    assert model.forbidden.toarray()[0].tolist() == [False, False, True]
    monitor = build_monitor(compiled, model)
    with open_recording(trace) as recording:
        run = replay(monitor, recording, keep_signals=True)
    [track], [series] = run.tracks, run.signals
    assert track.violation.sum() == 10
    assert series.values[:3].tolist() == [0.5, 0.5, 1.5]
    assert run.lanes.names == ZONES


def test_the_session_with_a_signal_that_goes_missing(compiled: CompiledSpec, trace: Path) -> None:
    model = learn([trace], compiled.spec, compiled.abstraction).model
    watch = Watch(compiled, model, {})
    tick_ns = 100_000_000
    watch.accept("", 0, {"x": 0.5})
    known = watch.tick(0)
    [row] = known.rows
    assert (row.state, row.state_key, row.in_model) == ("low", "low", True)
    missing = watch.tick(6)  # ticks 1 to 5 were missed, and x is stale
    [prop] = missing.verdict.properties
    assert prop.status is PropertyStatus.UNKNOWN
    assert prop.possible_violation
    assert missing.rows[0].state == "?"
    watch.accept("", 7 * tick_ns, {"x": 0.5})
    watch.tick(7)
    for tick in range(8, 13):
        outcome = watch.tick(tick)
    [near] = watch.tick(13).verdict.properties
    # From the low zone one step leads no farther than the middle one: it is certain to be calm.
    assert outcome.verdict.properties[0].probability == known.verdict.properties[0].probability
    assert near.status is PropertyStatus.SATISFIED_SO_FAR
    assert near.probability > known.verdict.properties[0].probability
    assert not math.isnan(near.upper)
