"""An earlier terminal label is unknown and a later one holds: the episode is over, but how?

Every completion of the unknown values is run on its own. What the monitor knows, says and counts
must be what all of them have in common, and its risks their hull.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.assessment.reliability import waits
from forewarn.assessment.replay import Replaying, replay
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.learning.pipeline import learn
from forewarn.models.counts import CountModel
from forewarn.monitoring.build import build_monitor, compile_spec
from forewarn.monitoring.online_learning import OnlineLearner
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.verdict import PropertyStatus, Verdict
from forewarn.recordings.registry import open_recording
from forewarn.signals.snapshots import Snapshot

TEXT = """
rate: 10
startup_grace: 0
signals:
  a: {timeout: 0.05}
  hit: {timeout: 0.05}
  there: {timeout: 0.05}
  gone: {timeout: 0.05}
predicates: {pa: a}
terminal: {collision: hit, arrived: there, left: gone}
properties:
  safe: {formula: always(not collision), horizon: 0.5}
  prompt: {formula: "always(pa implies eventually[0:2 steps](not pa))", horizon: 0.5}
  stays: {formula: always(not left), horizon: 0.5}
  reached: {formula: "always(pa implies eventually[0:2 steps](arrived))", horizon: 0.5}
"""
COMPILED = compile_spec(parse_spec(parse_document(TEXT)))
LABELS = ("collision", "arrived", "left")
Row = tuple[float | None, ...]


def learned(*, labels: bool = True) -> CountModel:
    rng = np.random.default_rng(3)
    counter = TransitionCounter(COMPILED.abstraction.vocabulary)
    for _ in range(40):
        for tick in range(12):
            counter.add(tick, int(rng.choice([0, 1], p=[0.6, 0.4])))
        if labels:
            counter.add(12, int(rng.choice([-1, -2, -3])))
        counter.end_recording()
    return build_model(counter, rate=10.0, digest=COMPILED.abstraction.digest)


MONITOR = build_monitor(COMPILED, learned())


def play(rows: list[Row], monitor: Monitor = MONITOR) -> list[Verdict]:
    state, verdicts = monitor.start(), []
    for tick, values in enumerate(rows):
        state, verdict = monitor.step(state, Snapshot(tick, tuple(values)))
        verdicts.append(verdict)
    return verdicts


def completions(rows: list[Row]):
    options = [[(0.0, 1.0) if x is None else (x,) for x in row] for row in rows]
    for choice in itertools.product(*(itertools.product(*row) for row in options)):
        yield list(choice)


UNSURE = st.tuples(*[st.sampled_from([0.0, 0.0, 1.0, None])] * 4)


@settings(max_examples=examples(150), deadline=None)
@given(UNSURE)
def test_one_tick_agrees_with_exactly_the_states_of_its_completions(row: Row) -> None:
    space = COMPILED.abstraction.vocabulary
    seen = COMPILED.abstraction.observe(Snapshot(0, row), None).observation
    states = {
        COMPILED.abstraction.observe(Snapshot(0, tuple(one[0])), None).observation.state
        for one in completions([row])
    }
    assert {*space.candidates(seen), *space.terminal_candidates(seen)} == states
    assert (seen.state is None) == (len(states) > 1)
    assert seen.ended == all(state < 0 for state in states)
    everything = np.array([0, 1, -1, -2, -3])
    assert set(everything[space.agreeing(everything, seen)]) == states
    assert set(space.letters(("pa",), seen)) == {s for s in states if s >= 0}
    for atom in space.atoms:
        apart = atom in LABELS or seen.ended
        held = {space.holds(atom, state) for state in states if apart or state >= 0}
        assert space.truth(atom, seen) == (held.pop() if len(held) == 1 else None)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(UNSURE, min_size=1, max_size=2))
def test_verdicts_are_the_hull_of_all_completions(rows: list[Row]) -> None:
    verdicts = play(rows)
    runs = [play(run) for run in completions(rows)]
    for index in range(len(MONITOR.properties)):
        for tick, verdict in enumerate(verdicts):
            ours = verdict.properties[index]
            theirs = [run[tick].properties[index] for run in runs]
            assert ours.probability == max(t.probability for t in theirs)
            assert ours.lower == min(t.lower for t in theirs)
            assert ours.upper == max(t.upper for t in theirs)
            if any(t.violation for t in theirs):
                certain = all(t.violation for t in theirs)
                assert (ours.violation, ours.possible_violation) == (certain, not certain)
                break  # from here on the monitor leaves out the completions that are over
            assert not ours.violation
            assert not ours.possible_violation
            assert (ours.status is PropertyStatus.ENDED) == all(
                t.status is PropertyStatus.ENDED for t in theirs
            )
            assert set(ours.automaton) == {q for t in theirs for q in t.automaton}


@pytest.mark.parametrize("labels", [True, False])
def test_a_collision_behind_an_arrival_is_not_hidden(labels: bool) -> None:
    monitor = build_monitor(COMPILED, learned(labels=labels))
    either = (0.0, None, 1.0, 0.0)  # arrived; nobody knows about the collision
    _, verdict = play([(0.0, 0.0, 0.0, 0.0), either], monitor)
    safe, prompt, stays, _ = verdict.properties
    assert safe.possible_violation and not safe.violation
    assert (safe.probability, safe.lower, safe.upper, safe.in_model) == (1.0, 0.0, 1.0, True)
    assert (prompt.status, prompt.probability) == (PropertyStatus.ENDED, 0.0)
    assert (stays.status, stays.probability) == (PropertyStatus.ENDED, 0.0)
    space = COMPILED.abstraction.vocabulary
    assert space.observed_name(verdict.observation) == "collision or arrived"
    assert space.observed_key(verdict.observation) == "!?"


def test_a_label_that_may_hold_is_not_knowledge_of_a_state_that_was_never_seen() -> None:
    counter = TransitionCounter(COMPILED.abstraction.vocabulary)
    for tick in range(9):
        counter.add(tick, 0)
    counter.add(9, -2)
    model = build_model(counter, rate=10.0, digest=COMPILED.abstraction.digest)
    monitor = build_monitor(COMPILED, model)
    unseen = (1.0, 0.0, None, 0.0)  # either a state that was never seen, or arrived
    [verdict] = play([unseen], monitor)
    safe, prompt, *_ = verdict.properties
    assert not safe.in_model and not prompt.in_model
    assert safe.probability != safe.probability
    assert (safe.lower, safe.upper) == (0.0, 1.0)
    [verdict] = play([(1.0, None, 0.0, 0.0)], monitor)  # never seen, or a collision
    assert (verdict.properties[0].probability, verdict.properties[0].in_model) == (1.0, True)


def written(path: Path, rows: list[Row]) -> Path:
    names = ("a", "hit", "there", "gone")
    lines = []
    for i, row in enumerate(rows):
        known = {name: x for name, x in zip(names, row, strict=True) if x is not None}
        lines.append(json.dumps({"t": i / 10, **known}) + "\n")
    path.write_text("".join(lines))
    return path


RUN = [(0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)]
EITHER = (0.0, None, 1.0, 0.0)


def test_learning_counts_nothing_of_such_a_tick(tmp_path: Path) -> None:
    path = written(tmp_path / "run.jsonl", [*RUN, EITHER, *RUN])
    found = learn([path], COMPILED.spec, COMPILED.abstraction)
    space = COMPILED.abstraction.vocabulary
    at = {space.key(state): i for i, state in enumerate(found.model.states)}
    counts = found.model.counts.toarray()
    assert counts.sum() == 4  # two in the first run, two in the second
    assert not counts[:, [at["!collision"], at["!arrived"]]].any()
    assert found.reports[0].counts.unknown == 1
    learner = OnlineLearner(COMPILED, found.model)
    for tick, verdict in enumerate(play([*RUN, EITHER, *RUN])):
        learner.observe(tick, verdict.observation, intervened=False)
    assert np.array_equal(learner.model().counts.toarray(), 2 * counts)


def test_assessment_knows_that_the_episode_is_over_but_not_how(tmp_path: Path) -> None:
    path = written(tmp_path / "run.jsonl", [*RUN, EITHER, *RUN])
    with open_recording(path) as recording:
        run = replay(Replaying(MONITOR), recording)
    safe, prompt, *_ = run.tracks
    assert safe.terminal.tolist() == prompt.terminal.tolist() == [False] * 3 + [True] + [False] * 3
    assert safe.possible.tolist() == [False] * 3 + [True] + [False] * 3
    # The outcome of the ticks before is known where the rule does not ask which label it was.
    assert (waits(prompt).over < waits(prompt).lost).tolist()[:3] == [True] * 3
    assert (waits(safe).over < waits(safe).lost).tolist()[:3] == [False] * 3
    lanes = dict(zip(run.lanes.names, run.lanes.table[run.lanes.position[3]], strict=True))
    assert lanes == {"pa": 0, "collision": 1, "arrived": 1, "left": 0}
