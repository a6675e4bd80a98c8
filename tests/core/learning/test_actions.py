"""Counts of what was done in which state, against counting by definition."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from forewarn.errors import ModelError
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.models.counts import CountModel, EndRule, Provenance
from forewarn.models.estimation import estimate_chain
from forewarn.models.file import (
    canonical,
    dump_model,
    load_model,
    merge_models,
    parse_model,
    save_model,
)
from forewarn.models.process import Step
from forewarn.states.vocabulary import Vocabulary
from forewarn.wings.decisions.mdp import optimal

VOCABULARY = Vocabulary(("a", "b"), ("crash", "arrived"))
CRASH, END = -1, -3


class Tick(NamedTuple):
    state: int | None
    intervened: bool
    action: str | None


ticks = st.builds(
    Tick,
    st.sampled_from([0, 1, 2, 3, CRASH, None]),
    st.booleans(),
    st.sampled_from(["go", "stop", "", None]),
)
recordings = st.lists(ticks, max_size=12)


def allows(state: int, following: int) -> bool:
    return (state, following) != (2, 1)


def count(recording: list[Tick], end: EndRule = "drop") -> TransitionCounter:
    counter = TransitionCounter(VOCABULARY, end, allows)
    for number, tick in enumerate(recording):
        counter.add(number, *tick)
    counter.end_recording()
    return counter


def model_of(name: str, recording: list[Tick], end: EndRule = "drop") -> CountModel:
    provenance = (Provenance(name, name * 2, 1.0, len(recording), 0),)
    return build_model(count(recording, end), rate=10.0, digest="d", provenance=provenance)


def by_definition(recording: list[Tick], end: EndRule) -> Counter[Step]:
    """Look at every pair of neighbours on its own."""
    found: Counter[Step] = Counter()
    followers = list(recording[1:])
    if end == "absorb" and recording:
        followers.append(Tick(END, False, None))
    for first, second in zip(recording, followers, strict=False):
        if first.state is None or second.state is None or first.state < 0 or not first.action:
            continue
        free = not first.intervened and not second.intervened
        if allows(first.state, second.state) and (first.intervened or free):
            found[Step(first.action, first.intervened, first.state, second.state)] += 1
    return found


@given(recordings, st.sampled_from(["drop", "absorb"]))
def test_steps_are_counted_as_defined(recording: list[Tick], end: EndRule) -> None:
    assert count(recording, end).result.steps == by_definition(recording, end)


@given(recordings, st.sampled_from(["drop", "absorb"]))
def test_the_chain_sums_recorded_actions_out_and_leaves_imposed_ones_out(
    recording: list[Tick], end: EndRule
) -> None:
    named = [tick._replace(action=tick.action or "nothing") for tick in recording]
    result, without = (
        count(ticks, end).result for ticks in (named, [t._replace(action=None) for t in recording])
    )
    summed: Counter[tuple[int, int]] = Counter()
    for step, number in result.steps.items():
        if not step.imposed:
            summed[step.state, step.following] += number
    assert summed == result.transitions == without.transitions
    assert result._replace(steps=Counter(), refused=Counter()) == without._replace(
        refused=Counter()
    )


@settings(max_examples=examples(50))
@given(st.lists(recordings, min_size=1, max_size=4), st.randoms())
def test_the_order_of_recordings_does_not_matter(parts: list[list[Tick]], random: object) -> None:
    models = [model_of(f"r{i}", recording) for i, recording in enumerate(parts)]
    shuffled = models.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = merge_models(models), merge_models(shuffled)
    assert dump_model(canonical(one)) == dump_model(canonical(other))
    assert one.seed == other.seed
    total = TransitionCounter(VOCABULARY)
    total.include(count(recording).result for recording in parts)
    assert one.steps == build_model(total, rate=10.0, digest="d").steps


@settings(max_examples=examples(50))
@given(recordings, st.sampled_from(["drop", "absorb"]))
def test_bytes_give_the_model_back(recording: list[Tick], end: EndRule) -> None:
    model = model_of("r", recording, end)
    data = dump_model(model).encode()
    back = parse_model(data)
    assert back.steps == model.steps
    assert back.fingerprint == model.fingerprint
    assert dump_model(back).encode() == data


@given(recordings)
def test_actions_change_neither_the_chain_nor_a_file_that_has_none(recording: list[Tick]) -> None:
    model = model_of("r", recording)
    plain = model_of("r", [tick._replace(action=None) for tick in recording])
    assert model.seed == plain.seed
    ours, theirs = (estimate_chain(each).to_csr() for each in (model, plain))
    assert (ours != theirs).nnz == 0
    assert '"actions"' not in dump_model(plain)
    if not model.steps:
        assert dump_model(model) == dump_model(plain)


ACTED = [
    Tick(0, False, "go"),
    Tick(1, False, "go"),
    Tick(CRASH, False, None),
    Tick(0, False, "go"),
    Tick(0, False, "wait"),
    Tick(0, True, "EMERGENCY_STOP"),
    Tick(3, False, None),
]


def test_the_process_keeps_what_was_chosen_and_what_was_imposed() -> None:
    process = model_of("r", ACTED).process
    rows = {
        (process.states[process.owner[c]], process.actions[c]): {
            process.states[j]: float(process.matrix[c, j]) for j in process.matrix[c].indices
        }
        for c in range(len(process.actions))
    }
    assert rows[0, "go"] == {1: 0.5, 0: 0.5}
    assert rows[1, "go"] == {CRASH: 1.0}
    # Whose next tick is under an intervention is left out, as in the chain.
    assert (0, "wait") not in rows
    assert rows[0, "EMERGENCY_STOP"] == {3: 1.0}
    assert rows[3, ""] == {3: 1.0}
    assert process.unseen is not None
    assert [process.states[i] for i in np.flatnonzero(process.unseen)] == [3]


def test_worst_and_best_over_what_can_be_done() -> None:
    process = model_of("r", ACTED).process
    crash = np.array([state == CRASH for state in process.states])
    start = process.states.index(0)
    worst = optimal(process, crash, np.ones_like(crash), maximise=True).values
    best = optimal(process, crash, np.ones_like(crash), maximise=False).values
    assert worst[start] == pytest.approx(1.0)
    assert best[start] == 0.0


def test_a_state_met_under_an_intervention_only_is_no_state_of_the_chain() -> None:
    model = model_of("r", [Tick(0, True, "stop"), Tick(1, True, "stop"), Tick(0, True, "stop")])
    assert model.states == (CRASH, -2)
    assert {*model.process.states} == {CRASH, -2, 0, 1}


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ('"imposed": true', '"imposed": false', "at most the 0 transitions of the chain"),
        ('"imposed": true', '"imposed": 1', "true or false"),
        ('"state": "10"', '"state": "!crash"', "none out of a terminal state"),
        ('"following": ["!crash"]', '"following": ["!nowhere"]', "crash, arrived"),
    ],
)
def test_a_wrong_file_is_refused(before: str, after: str, text: str) -> None:
    data = dump_model(model_of("r", ACTED))
    assert before in data
    content = json.loads(data.replace(before, after, 1))
    del content["checksum"]
    sound = json.dumps(content, sort_keys=True, separators=(",", ":"))
    content["checksum"] = hashlib.sha256(sound.encode()).hexdigest()
    with pytest.raises(ModelError, match=text):
        parse_model(json.dumps(content).encode())


def test_a_file_on_disk_keeps_actions(tmp_path: object) -> None:
    model = model_of("r", ACTED)
    path = f"{tmp_path}/model.json"
    save_model(model, path)
    assert load_model(path).steps == model.steps


def test_more_recorded_steps_than_transitions_are_refused() -> None:
    with pytest.raises(ModelError, match="2 recorded steps"):
        CountModel(
            VOCABULARY,
            10.0,
            "d",
            (0, 1),
            sparse.csr_matrix(np.array([[0, 1], [0, 0]])),
            np.array([1, 0]),
            steps=((Step("go", False, 0, 1), 2),),
        )
