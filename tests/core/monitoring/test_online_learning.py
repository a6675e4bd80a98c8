from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.pipeline import learn
from forewarn.models.file import merge_models
from forewarn.monitoring.build import build_monitor, compile_spec
from forewarn.monitoring.online_learning import OnlineLearner
from forewarn.monitoring.session import Session, run
from forewarn.recordings.registry import open_recording

TEXT = """
rate: 10
signals: {x: {timeout: 0.1}, hands: {timeout: never, default: 0}}
predicates: {high: x > 0, higher: x > 1}
terminal: {over: x > 2}
constraints: [{forbid: {from: higher, to: not high}}]
intervened_when: hands > 0
properties: {p: {formula: always(not higher)}}
"""
COMPILED = compile_spec(parse_spec(parse_document(TEXT)))


def trace(path: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    rows = []
    for tick, x in enumerate(rng.normal(size=300)):
        if rng.random() > 0.05:  # some ticks have no sample
            rows.append({"t": tick / 10, "x": float(x), "hands": float(rng.random() < 0.1)})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_watching_counts_what_learning_counts(tmp_path: Path) -> None:
    spec, abstraction = COMPILED.spec, COMPILED.abstraction
    first, second = trace(tmp_path / "a.jsonl", 1), trace(tmp_path / "b.jsonl", 2)
    base = learn([first], spec, abstraction).model
    learner = OnlineLearner(COMPILED, base)
    session = Session(build_monitor(COMPILED, base), {})
    with open_recording(second) as recording:
        for verdict in run(session, recording.read(), recording.start_ns, recording.end_ns):
            learner.observe(verdict.tick, verdict.observation, intervened=False)
    assert learner.pending > 100
    expected = merge_models([base, learn([second], spec, abstraction).model])
    model = learner.model()
    assert learner.pending == 0
    assert model.states == expected.states
    assert (model.counts != expected.counts).nnz == 0
    assert model.intervened == expected.intervened
    build_monitor(COMPILED, model)  # fits the monitor file


def test_our_own_interventions_are_left_out_and_a_clock_that_jumps_back_begins_anew(
    tmp_path: Path,
) -> None:
    spec, abstraction = COMPILED.spec, COMPILED.abstraction
    base = learn([trace(tmp_path / "a.jsonl", 1)], spec, abstraction).model
    known = abstraction.evaluate([0.5, 0.0])
    learner = OnlineLearner(COMPILED, base)
    for tick in range(10):
        learner.observe(tick, known, intervened=tick >= 5)
    assert learner.pending == 4
    for tick in range(3):  # the clock was set back
        learner.observe(tick, known, intervened=False)
    assert learner.pending == 6


def test_what_we_impose_counts_for_the_process_and_not_for_the_chain(tmp_path: Path) -> None:
    spec, abstraction = COMPILED.spec, COMPILED.abstraction
    base = learn([trace(tmp_path / "a.jsonl", 1)], spec, abstraction).model
    learner = OnlineLearner(COMPILED, base)
    session = Session(build_monitor(COMPILED, base), {})
    with open_recording(trace(tmp_path / "b.jsonl", 2)) as recording:
        for verdict in run(session, recording.read(), recording.start_ns, recording.end_ns):
            learner.observe(
                verdict.tick, verdict.observation, intervened=True, action="EMERGENCY_STOP"
            )
    model = learner.model()
    assert model.steps
    assert {(step.action, step.imposed) for step, _ in model.steps} == {("EMERGENCY_STOP", True)}
    assert model.visits.sum() == base.visits.sum()
