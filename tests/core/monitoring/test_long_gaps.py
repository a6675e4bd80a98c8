"""Ticks that repeat one another are worked out once; what comes of them has the same bits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import pytest
from extent import examples, repetitions, sampled
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forewarn.assessment.outcome_counts import EndObserver, OutcomeObserver
from forewarn.assessment.replay import Replaying, replay
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.learning.pipeline import count_recording
from forewarn.learning.shard_key import ShardQuery
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.session import Session, run, run_at_once
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.verdict import Verdict
from forewarn.recordings.interface import Sample
from forewarn.recordings.registry import open_recording
from forewarn.signals.feed import Feed

TICK_NS = 100_000_000
TEXT = """
rate: 10
startup_grace: {startup_grace}
mode: act
bounds: {{kind: none}}
observation_error: {observation_error}
active_when: "{active}"
signals:
  near: {{timeout: {timeout}, stale: {stale}}}
  moving: {{timeout: {other}}}
  hit: {{timeout: {other}}}
  memory: {{value: "{memory}"}}
predicates: {{p: near > 0, q: moving > 0, m: memory > 0.5}}
terminal: {{collision: hit > 0}}
properties:
  rule:
    formula: "{formula}"
    horizon: 1.0
    risk_measure: {risk_measure}
    thresholds: {{warn: 0.1, act: 0.2, release: 0.05}}
    enter: {enter}
    hold: {hold}
    {held}
    out_of_model: {out_of_model}
    out_of_model_timeout: {limit}
"""
CHOICES: dict[str, list[Any]] = {
    "startup_grace": [0, 0.5, 2],
    "observation_error": ["{p: 0}", "{p: 0}", "{p: 0.05}"],
    "active": ["1 > 0", "moving < 2"],
    "timeout": [0.2, 1, "never"],
    "stale": ["worst", "hold", "ignore"],
    "other": [0.2, "never"],
    "memory": [
        "near", "highest(near, 1)", "mean_over(moving, 0.5)", "since(near > 0)", "previous(moving)",
        "for_how_long(moving > 0)", "rate(near, 1)",
    ],
    "formula": [
        "always(not p)", "always(p implies eventually[0:1](not q))", "always(not collision)",
        "always(once[0:1](p) implies not m)",
    ],
    "risk_measure": ["risk", "risk", "upper", "expected"],
    "enter": [1, 3],
    "hold": [0.2, 1, 2],
    "held": ["", 'hold_while: "moving > 0"'],
    "out_of_model": ["act", "warn", "ignore"],
    "limit": [0.1, 2],
}  # fmt: skip


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave ticks out after a few that were the same, and not after hundreds."""
    monkeypatch.setattr("forewarn.signals.feed.BLOCK", 3)
    monkeypatch.setattr("forewarn.states.abstraction.ASKED_EVERY", 1)


MONITORS = st.fixed_dictionaries({name: st.sampled_from(of) for name, of in CHOICES.items()})
LINES = st.lists(
    st.tuples(
        st.sampled_from([1, 1, 1, 2, 7, 30, 60]),
        st.dictionaries(
            st.sampled_from(["near", "moving", "hit"]), st.sampled_from([0.0, 0.0, 1.0, 2.0])
        ),
    ),
    min_size=2,
    max_size=12,
)
CALM, DRIVEN, HIT = (
    {"near": float(near), "moving": float(moving), "hit": 0.0}
    for near, moving in ((0, 0), (0, 1), (1, 0))
)


def chosen_as(**chosen: Any) -> dict[str, Any]:
    lasting = {"timeout": "never", "other": "never", "memory": "near"}
    return {name: of[0] for name, of in CHOICES.items()} | lasting | chosen


NEVER_SEEN = chosen_as(limit=2), [(1, CALM), (1, DRIVEN), (60, CALM)]
STARTING = chosen_as(startup_grace=2), [(1, {}), (60, CALM)]
LASTING = chosen_as(memory="for_how_long(moving > 0)"), [(1, DRIVEN), (60, CALM)]


def compiled_of(chosen: dict[str, Any]) -> CompiledSpec:
    text = TEXT.format(**chosen)
    if chosen["risk_measure"] != "expected":
        text = text.replace("observation_error: {p: 0}\n", "")
    return compile_spec(parse_spec(parse_document(text)))


def monitor_of(compiled: CompiledSpec, *, learned: bool) -> Monitor:
    """Return a monitor, with a model of two states of many, or without one."""
    if not learned:
        return build_monitor(compiled, None)
    counter = TransitionCounter(compiled.abstraction.vocabulary)
    for tick in range(400):
        counter.add(tick, int(tick % 7 == 6))
    counter.end_recording()
    return build_monitor(
        compiled, build_model(counter, rate=10.0, digest=compiled.abstraction.digest)
    )


def samples_of(lines: list[tuple[int, dict[str, float]]]) -> list[Sample]:
    samples, tick = [], 100
    for ticks, values in lines:
        tick += ticks
        samples.append(Sample(tick * TICK_NS, "", values))
    return samples


def slowly(session: Session, samples: list[Sample], end_ns: int) -> Iterator[Verdict]:
    """Step through every tick, as a live monitor does."""
    for tick in session.feed.play(samples, samples[0].time_ns, end_ns):
        yield session.tick(tick)


@settings(max_examples=examples(100))
@example(*NEVER_SEEN, True, 0)
@example(*STARTING, True, 0)
@example(*LASTING, False, 0)
@given(MONITORS, LINES, st.booleans(), st.sampled_from([0, 50]))
def test_verdicts_of_a_recording_with_gaps_are_those_of_a_live_monitor(
    chosen: dict[str, Any], lines: list[tuple[int, dict[str, float]]], learned: bool, more: int
) -> None:
    monitor = monitor_of(compiled_of(chosen), learned=learned)
    samples = samples_of(lines)
    end_ns = samples[-1].time_ns + more * TICK_NS
    live = list(map(repr, slowly(Session(monitor, {}), samples, end_ns)))
    session = Session(monitor, {})
    recorded = list(map(repr, run(session, samples, samples[0].time_ns, end_ns)))
    assert recorded == live


@settings(max_examples=examples(40))
@example(chosen=LASTING[0], lines=LASTING[1])
@given(chosen=MONITORS, lines=LINES)
def test_counts_and_columns_do_not_depend_on_what_is_left_out(
    tmp_path_factory: pytest.TempPathFactory,
    chosen: dict[str, Any],
    lines: list[tuple[int, dict[str, float]]],
) -> None:
    compiled = compiled_of(chosen)
    path = tmp_path_factory.mktemp("gaps") / "run.jsonl"
    path.write_text(
        "".join(
            json.dumps({"t": s.time_ns / 1e9, **s.data}) + "\n"  # type: ignore[dict-item]
            for s in samples_of(lines)
        )
    )
    quick = told(compiled, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Feed, "_goes_on", lambda *_: False)
        assert told(compiled, path) == quick


def told(compiled: CompiledSpec, path: Path) -> str:
    """Return all that learning and replaying a recording give."""
    reports = []
    for watcher in (OutcomeObserver, EndObserver):
        watch = Watching(compiled, watcher)
        with open_recording(path) as recording:
            question = ShardQuery(compiled.spec, compiled.abstraction, watch=watch)
            reports.append(count_recording(recording, "", question))
    how = Replaying(build_monitor(compiled, None), keep_signals=True, lines=True)
    lines: list[str] = []
    with open_recording(path) as recording:
        found = replay(how, recording, on_verdict=lambda verdict: lines.append(repr(verdict)))
    columns = [
        {name: getattr(value, "tolist", value.__repr__)() for name, value in vars(track).items()}
        for track in found.tracks
    ]
    values = [(one.values.tolist(), one.kind) for one in found.signals]
    lanes = found.lanes.position.tolist(), found.lanes.table
    stale: Counter[str] = found.history.stale
    return repr((reports, columns, values, lanes, stale, found.events, lines))


class Watching(NamedTuple):
    """Has a watcher in every recording, whether or not a property asks for one."""

    compiled: CompiledSpec
    watcher: type[OutcomeObserver] | type[EndObserver]
    key: str = ""

    def __call__(self, _: object) -> OutcomeObserver | EndObserver:
        return self.watcher(self.compiled)


@pytest.mark.parametrize("memory", sampled(CHOICES["memory"]))
def test_a_gap_of_a_day_takes_about_a_second(memory: str) -> None:
    chosen = chosen_as(memory=memory, timeout=0.2, other=0.2)
    monitor = monitor_of(compiled_of(chosen), learned=True)
    lines = [(1, {"near": 0.0}), (864_000, {"near": 0.0}), (1, {"moving": 1.0})]
    samples, began = samples_of(lines), process_time()
    found = list(
        run_at_once(Session(monitor, {}), samples, samples[0].time_ns, samples[-1].time_ns)
    )
    assert sum(verdict.repeats + 1 for verdict in found) == 864_002
    assert len(found) < 2_000
    assert process_time() - began < 5


def test_all_ticks_of_a_day_are_counted(tmp_path: Path) -> None:
    compiled, began = compiled_of(chosen_as(timeout=0.2, other=0.2)), process_time()
    path = tmp_path / "run.jsonl"
    day = repetitions(86_400)
    path.write_text(f'{{"t": 0, "near": 0}}\n{{"t": {day}, "near": 0}}\n')
    with open_recording(path) as recording:
        question = ShardQuery(compiled.spec, compiled.abstraction)
        report = count_recording(recording, "", question)
    ticks = 10 * day + 1
    assert (report.counts.ticks, report.counts.unknown) == (ticks, ticks)
    assert report.stale == {"near": ticks - 4, "moving": ticks, "hit": ticks}
    assert process_time() - began < 10
