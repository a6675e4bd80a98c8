"""A kind of states that is no vector of predicates: learned, replayed and watched."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from zones import NAMES

from forewarn.assessment.replay import Replaying, replay
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError, ModelError
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.file import load_model, save_model
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.verdict import PropertyStatus
from forewarn.recordings.registry import open_recording

TEXT = """
version: 1
rate: 10
states: {kind: zones, limits: [1, 2]}
signals: {x: {timeout: 0.5}}
properties:
  calm: {formula: always(not high), horizon: 1, thresholds: {act: 0.9}}
"""


def compiled_from(text: str) -> CompiledSpec:
    return compile_spec(parse_spec(parse_document(text)))


@pytest.fixture
def compiled() -> CompiledSpec:
    return compiled_from(TEXT)


def written(path: Path, xs: list[float]) -> Path:
    path.write_text("".join(json.dumps({"t": i / 10, "x": x}) + "\n" for i, x in enumerate(xs)))
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return written(tmp_path / "trace.jsonl", [0.5, 0.5, 1.5, 0.5, 1.5, 2.5, 1.5, 0.5] * 10)


def test_learn_and_replay(compiled: CompiledSpec, trace: Path, tmp_path: Path) -> None:
    learned = learn([trace], compiled.spec, compiled.abstraction).model
    save_model(learned, tmp_path / "zones.model.json")
    model = load_model(tmp_path / "zones.model.json")
    assert model.fingerprint == learned.fingerprint
    assert [model.vocabulary.key(state) for state in model.states] == list(NAMES)
    assert model.counts.toarray().tolist() == [[19, 20, 0], [20, 0, 10], [0, 10, 0]]
    assert model.forbidden.toarray()[0].tolist() == [False, False, True]
    monitor = build_monitor(compiled, model)
    with open_recording(trace) as recording:
        run = replay(Replaying(monitor, keep_signals=True), recording)
    [track], [series] = run.tracks, run.signals
    assert track.violation.sum() == 10
    assert series.values[:3].tolist() == [0.5, 0.5, 1.5]
    assert run.lanes.names == NAMES


def test_the_session_with_a_signal_that_goes_missing(compiled: CompiledSpec, trace: Path) -> None:
    model = learn([trace], compiled.spec, compiled.abstraction).model
    watch = LiveSession(compiled, model, {})
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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("kind: zones", "kind: zone"), "states.kind: 'zone' is no kind of states"),
        (("limits: [1, 2]", "limits: [1]"), "states.limits[1]: is missing"),
        (
            ("limits:", "limit: 1, limits:"),
            "states.limit: unknown key; did you mean 'limits'? (accepted: kind, limits)",
        ),
        (("kind: zones", "kind: predicates"), "states.limits: unknown key (accepted: kind)"),
        (("not high", "not dizzy"), "unknown name 'dizzy' (accepted: low, middle, high)"),
    ],
)
def test_what_is_wrong_with_the_states_of_a_monitor_file(
    change: tuple[str, str], said: str
) -> None:
    with pytest.raises(ConfigError) as error:
        compiled_from(TEXT.replace(*change))
    assert said in str(error.value)


def test_a_model_of_other_states_is_refused(compiled: CompiledSpec, trace: Path) -> None:
    model = learn([trace], compiled.spec, compiled.abstraction).model
    text = TEXT.replace("states: {kind: zones, limits: [1, 2]}", "predicates: {high: x >= 2}")
    with pytest.raises(ModelError, match="states of the kind zones"):
        build_monitor(compiled_from(text), model)


def test_a_model_file_of_a_kind_that_nobody_knows(
    compiled: CompiledSpec, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "zones.model.json"
    save_model(learn([trace], compiled.spec, compiled.abstraction).model, path)
    monkeypatch.delitem(__import__("zones").KINDS, "zones")
    with pytest.raises(ModelError, match=r"space\.kind: 'zones' is no kind of states"):
        load_model(path)
