"""A tree's leaves with declared predicates: learned, saved, replayed, watched, and refused."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.assessment.replay import Replaying, replay
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError, ModelError
from forewarn.learning.executors import local
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import compile_spec
from forewarn.models.file import load_model, save_model
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.live_session import LiveSession
from forewarn.recordings.registry import open_recording
from forewarn.signals.snapshots import Snapshot

TEXT = """
version: 1
rate: 10
signals: {x: {timeout: 0.5}, y: {timeout: 0.5}, mode: {timeout: inf}}
states:
  kind: tree
  tree:
    if: x > 2
    then: far
    else:
      if: "'slow' in mode"
      then: slow
      else:
        if: y > 0
        then: up
        else: down
predicates: {near: x < 1, high: y > 3}
terminal: {crash: x < -5}
properties:
  calm: {formula: always(not high), horizon: 1, thresholds: {act: 0.9}}
"""
LEAVES = ("far", "slow", "up", "down")


def compiled_from(text=TEXT):
    return compile_spec(parse_spec(parse_document(text)))


COMPILED = compiled_from()


def observed(values):
    snapshot = Snapshot(0, tuple(values))
    return COMPILED.abstraction.observe(snapshot, None).observation


def by_hand(x, y, mode):
    if x < -5:
        return "!crash"
    leaf = "far" if x > 2 else "slow" if "slow" in mode else "up" if y > 0 else "down"
    return f"{leaf}:{int(x < 1)}{int(y > 3)}"


X, Y, MODE = (-9, -1, 1, 2, 3), (-1, 1, 4), ("slow", "fast")
values = st.tuples(*(st.one_of(st.none(), st.sampled_from(part)) for part in (X, Y, MODE)))


@given(values)
@settings(deadline=None)
def test_what_is_observed_agrees_with_all_that_may_be(found):
    space = COMPILED.abstraction.vocabulary
    observation = observed(found)
    choices = [part if v is None else (v,) for v, part in zip(found, (X, Y, MODE), strict=True)]
    may = {by_hand(*completed) for completed in itertools.product(*choices)}
    plain = {space.key(state) for state in space.candidates(observation)}
    ended = {space.key(state) for state in space.terminal_candidates(observation)}
    assert may <= plain | ended
    if None not in found:
        assert space.key(observation.state) == by_hand(*found)
        assert space.observed_key(observation) == by_hand(*found)
    # Nothing is claimed that may be otherwise, and each leaf is one that may be.
    for atom in (*LEAVES, "near", "high", "crash"):
        held = {space.holds(atom, space.parse_key(key)) for key in may}
        if atom == "crash" or "!crash" not in may:
            truth = space.truth(atom, observation)
            assert truth is None or held == {truth}
    assert space.parse_observation(json.loads(json.dumps(observation))) == observation


def test_only_pairs_that_can_hold_together_are_admissible():
    space = COMPILED.abstraction.vocabulary
    admission = COMPILED.abstraction.validity(COMPILED.spec)
    pairs = [
        by_hand(x, y, mode)
        for x, y, mode in itertools.product((-5, 0.5, 1.5, 2.5), (-1, 2, 4), MODE)
    ]
    assert {space.key(state) for state in admission.states()} == set(pairs)
    every = [leaf << 2 | mask for leaf in range(4) for mask in range(4)]
    assert [s for s in every if admission.admits(s)] == admission.states()
    assert admission.is_covered(every) and not admission.is_covered(admission.states()[1:])


@pytest.fixture
def trace(tmp_path: Path):
    path = tmp_path / "trace.jsonl"
    xs = [0, 1.5, 3, 1.5, 0, -1] * 20
    rows = [
        {"t": i / 10, "x": x, "y": [1, 4, -1, 2][i % 4], "mode": ["slow", "fast"][i // 7 % 2]}
        for i, x in enumerate(xs)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path, rows


def test_a_tree_is_learned_from_saved_replayed_and_watched(trace, tmp_path):
    path, rows = trace
    learned = learn([path], COMPILED.spec, COMPILED.abstraction).model
    other = tmp_path / "other.jsonl"
    other.write_text(path.read_text().replace('"y": 4', '"y": 5'))
    two = [
        learn([path, other], COMPILED.spec, COMPILED.abstraction, executor=local(jobs)).model
        for jobs in (1, 2)
    ]
    assert two[0].fingerprint == two[1].fingerprint
    save_model(learned, tmp_path / "model.json")
    model = load_model(tmp_path / "model.json")
    assert model.fingerprint == learned.fingerprint
    keys = [by_hand(row["x"], row["y"], row["mode"]) for row in rows]
    steps = dict.fromkeys(itertools.pairwise(keys), 0)
    for step in itertools.pairwise(keys):
        steps[step] += 1
    space = model.vocabulary
    counts = model.counts.tocoo()
    assert steps == {
        (space.key(model.states[i]), space.key(model.states[j])): n
        for i, j, n in zip(counts.row, counts.col, counts.data, strict=True)
    }
    with open_recording(path) as recording:
        run = replay(Replaying(build_monitor(COMPILED, model)), recording)
    assert run.tracks[0].violation.sum() == sum(
        y > 3 and (i == 0 or rows[i - 1]["y"] <= 3) for i, y in enumerate(r["y"] for r in rows)
    )
    watch = LiveSession(COMPILED, model, {})
    watch.accept("", 0, {"x": 0.5, "y": 1.0, "mode": "fast"})
    [row] = watch.tick(0).rows
    assert (row.state, row.state_key, row.in_model) == ("up & near", "up:10", True)


def test_what_a_leaf_depends_on_is_in_the_digest():
    digest = COMPILED.abstraction.digest
    same = [("if: x > 2", "if: (x  > 2)"), ("horizon: 1", "horizon: 2"), ("act: 0.9", "act: 0.8")]
    other = [
        ("x > 2", "x > 2.5"),
        ("then: far", "then: away"),
        ("near: x < 1", "near: x < 1.5"),
        ("then: up\n        else: down", "then: down\n        else: up"),
    ]
    for change in same:
        assert compiled_from(TEXT.replace(*change)).abstraction.digest == digest
    for change in other:
        assert compiled_from(TEXT.replace(*change)).abstraction.digest != digest


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("then: slow", "then: far"), "the leaf 'far' stands at states.tree.then already"),
        (("then: slow", "then: near"), "the leaf 'near' has the name of a predicate"),
        (("then: slow", "than: slow"), "states.tree.else:"),
        (("if: y > 0", "if: z > 0"), "unknown name 'z'"),
        (("if: y > 0", "if: y >"), "states.tree.else.else.if:"),
        (("if: y > 0", "if: 3"), "states.tree.else.else.if: 3 is no expression"),
        (("not high", "not x > 2"), "unknown name"),
        (("not high", "not far"), "unknown name 'far' (accepted: near, high, crash)"),
        (("kind: tree", "kind: tree\n  limits: 3"), "states.limits: unknown key"),
        (("rate: 10", "rate: 10\nhistory: 2"), "history: a tree remembers nothing"),
    ],
)
def test_what_is_wrong_with_a_tree_is_named(change, said):
    with pytest.raises(ConfigError) as error:
        compiled_from(TEXT.replace(*change))
    assert said in str(error.value)


def test_a_tree_of_great_depth_is_refused():
    tree = "leaf"
    for depth in range(35):
        tree = {"if": "x > 1", "then": f"l{depth}", "else": tree}
    text = TEXT[: TEXT.index("  tree:")] + f"  tree: {json.dumps(tree)}\n"
    text += TEXT[TEXT.index("predicates:") :]
    with pytest.raises(ConfigError, match="nested too deeply"):
        compiled_from(text)


@pytest.mark.parametrize(
    ("tree", "said"),
    [({"if": "x > 2"}, "is no node"), (None, "is no node"), ("no name", "no name of a leaf")],
)
def test_a_damaged_tree_in_a_model_file_is_named(trace, tmp_path, tree, said):
    from forewarn.states.kinds import parse_states

    with pytest.raises(ModelError, match=said):
        parse_states("tree", ("near",), (), {"tree": tree})
