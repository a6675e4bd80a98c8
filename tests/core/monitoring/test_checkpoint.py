"""A monitor that crashes and recalls goes on as one that merely missed the ticks between."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from extent import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forewarn.cli import main
from forewarn.config.file import load_spec, parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import RecordingError
from forewarn.models.file import load_model
from forewarn.monitoring.build import compile_spec
from forewarn.monitoring.checkpoint import recall, remember
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.risk_rows import same_bits
from forewarn.monitoring.run_anomaly import open_detector

TEXT = """
rate: 10
startup_grace: 0
signals: {a: {timeout: never}, b: {timeout: never}}
predicates: {pa: a, pb: b}
properties:
  response: {formula: "always(pa implies eventually[0:0.5](pb))", horizon: 1.0}
  invariant: {formula: "always(not (pa and pb))", horizon: 1.0}
mode: act
"""


COMPILED = compile_spec(parse_spec(parse_document(TEXT)))


def watch(text: str = TEXT) -> LiveSession:
    other = text != TEXT
    return LiveSession(
        compile_spec(parse_spec(parse_document(text))) if other else COMPILED, None, {}
    )


def tick(monitor: LiveSession, number: int, a: float | None, b: float | None) -> Any:
    values = {name: value for name, value in (("a", a), ("b", b)) if value is not None}
    monitor.accept("", number * 100_000_000, values)
    return monitor.tick(number)


def through_json(memory: Any) -> Any:
    return json.loads(json.dumps(memory, allow_nan=False))


def test_a_pending_obligation_survives() -> None:
    before = watch()
    tick(before, 1, 0.0, 0.0)
    assert not remember(before)["pending"]
    tick(before, 2, 1.0, 0.0)
    memory = through_json(remember(before))
    assert memory["pending"]
    after = watch()
    recall(after, memory, 4)
    outcomes = [tick(after, number, 0.0, 0.0) for number in range(4, 9)]
    assert not outcomes[0].verdict.properties[0].violation
    # Raised at tick 2, to be met until tick 7; it may have been met at tick 3, which was missed.
    assert any(outcome.verdict.properties[0].possible_violation for outcome in outcomes)
    forgetful = watch()
    verdicts = [tick(forgetful, number, 0.0, 0.0).verdict for number in range(4, 9)]
    assert not any(verdict.properties[0].possible_violation for verdict in verdicts)


answers = st.sampled_from([0.0, 1.0])
runs = st.lists(st.tuples(answers, answers), min_size=2, max_size=25)


@given(runs, st.data())
def test_a_crash_between_two_ticks_changes_nothing(run: Any, data: Any) -> None:
    crash = data.draw(st.integers(1, len(run) - 1))
    gap = data.draw(st.integers(0, 3))
    whole, first = watch(), watch()
    for number, (a, b) in enumerate(run[:crash], 1):
        tick(whole, number, a, b)
        tick(first, number, a, b)
    begin = crash + 1 + gap
    second = watch()
    recall(second, through_json(remember(first)), begin)
    if not remember(first)["pending"] and gap:
        return  # nothing was pending: what may have begun meanwhile is not made up
    for number, (a, b) in enumerate(run[crash:], begin):
        one, two = tick(whole, number, a, b), tick(second, number, a, b)
        for left, right in zip(one.rows, two.rows, strict=True):
            assert all(same_bits(x, y) for x, y in zip(left, right, strict=True))
        assert one.request == two.request or (
            one.request is not None
            and two.request is not None
            and one.request.id == two.request.id
            and one.request.action == two.request.action
        )


def test_a_breach_that_nothing_else_outlasts_survives_and_counts_once() -> None:
    text = TEXT.replace(
        'not (pa and pb))", horizon: 1.0', 'not (pa and pb))", horizon: 1.0, exit: 1, hold: 0'
    )
    before = watch(text)
    tick(before, 1, 1.0, 1.0)
    tick(before, 2, 0.0, 0.0)
    memory = through_json(remember(before))
    assert memory["properties"][1][2][0] == 0, "the alert is over"
    assert memory["pending"]
    for gap, later, count in ((0, 0, 1), (3, 0, 1), (0, 8, 1), (0, 9, 2), (3, 9, 1), (3, 10, 2)):
        after = watch(text)
        recall(after, memory, 3 + gap)
        for number in range(3 + gap, 3 + gap + later):
            tick(after, number, 0.0, 0.0)
        tick(after, 3 + gap + later, 1.0, 1.0)
        assert after.memory.violations[1] == count, (gap, later)
    for number in range(3, 12):
        tick(before, number, 0.0, 0.0)
    assert not remember(before)["pending"], "it has cleared"


def test_mutes_and_counts_survive() -> None:
    before = watch()
    tick(before, 1, 1.0, 1.0)
    before.mute(["response"], math.inf, "by anna: works")
    before.mute(["invariant"], 100.0)
    after = watch()
    recall(after, through_json(remember(before)), 2)
    assert after.memory.mutes.ends == before.memory.mutes.ends
    assert after.silenced() == before.silenced()
    assert after.silenced()[0].reason == "by anna: works"
    assert after.memory.violations == [0, 1]


WATCHED = (
    TEXT
    + """
action: "'press' if a > 0.5 else 'wait'"
anomaly: {file: normal.anomalies, run: 1.5}
"""
)


@pytest.fixture(scope="module", params=["conformal", "prefix", "cusum"])
def watched(request: Any, tmp_path_factory: Any) -> Callable[[], LiveSession]:
    """Return what makes monitors that watch runs for anomalies."""
    folder, chance = tmp_path_factory.mktemp("watched"), random.Random(4)
    config, model = folder / "monitor.yaml", folder / "model.json"
    config.write_text(WATCHED.partition("anomaly:")[0])
    for name, number in (("past", 20), ("normal", 12)):
        (folder / name).mkdir()
        for run in range(number):
            a, lines = 0.0, []
            for moment in range(1, 26):
                a = float(chance.random() < (0.8 if a else 0.1))
                b = float(not a and chance.random() < 0.2)
                lines.append(json.dumps({"t_ns": moment * 100_000_000, "a": a, "b": b}) + "\n")
            (folder / name / f"{run}.jsonl").write_text("".join(lines))
    asked = ["-c", str(config), "-q"]
    assert main(["learn", str(folder / "past"), *asked, "-o", str(model)]) == 0
    judged = ["anomalies", str(folder / "past"), *asked, "-m", str(model)]
    judged += ["--calibrate", str(folder / "normal"), "--alpha", "0.2", "--period", "0.3"]
    judged += ["--test", request.param, "--save", str(folder / "normal.anomalies")]
    assert main(judged) in (0, 1)
    config.write_text(WATCHED)
    compiled, counts = compile_spec(load_spec(config)), load_model(model)
    detector = open_detector(compiled, counts)
    return lambda: LiveSession(compiled, counts, {}, detector=detector)


@given(runs, st.data())
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_run_that_is_watched_goes_on_after_a_crash(watched: Any, run: Any, data: Any) -> None:
    crash = data.draw(st.integers(1, len(run) - 1))
    gap = data.draw(st.integers(0, 3))
    whole, first = watched(), watched()
    for number, (a, b) in enumerate(run[:crash], 1):
        tick(whole, number, a, b)
        tick(first, number, a, b)
    begin = crash + 1 + gap
    second = watched()
    recall(second, through_json(remember(first)), begin)
    assert same_bits(second.memory.state.run, first.memory.state.run)
    if not remember(first)["pending"] and gap:
        return  # it may ask for something in other moments, and what follows that is no surprise
    for number, (a, b) in enumerate(run[crash:], begin):
        one = tick(whole, number, a, b).verdict.anomaly
        two = tick(second, number, a, b).verdict.anomaly
        for field, left, right in zip(one._fields, one, two, strict=True):
            assert same_bits(left, right), field
    assert through_json(remember(second))["run"] == through_json(remember(whole))["run"]


def test_a_crash_without_a_memory_of_the_run_would_be_told(watched: Any) -> None:
    before, forgetful = watched(), watched()
    for number in range(1, 6):
        found = tick(before, number, 0.0, 0.0)
    assert found.verdict.anomaly.transitions == 4
    memory = through_json(remember(before))
    recall(forgetful, {**memory, "run": None}, 6)
    assert tick(forgetful, 6, 0.0, 0.0).verdict.anomaly.transitions == 0
    other = replace(before.monitor.detector, longest=7)
    judged = watched()
    judged.swap(replace(judged.monitor, detector=other))
    recall(judged, memory, 6)
    assert judged.memory.state.run is None


@pytest.mark.parametrize(
    "change",
    [
        {"walk": [1, 0, None, 0, False, 0]},
        {"walk": [1, "kitchen", None, 0, False]},
        {"worst": 5},
        {"value": "much"},
        {"begun": None},
        {"worst": [0] * 9},
    ],
)
def test_a_run_that_makes_no_sense_changes_nothing(watched: Any, change: Any) -> None:
    before, after = watched(), watched()
    tick(before, 1, 1.0, 0.0)
    tick(before, 2, 1.0, 0.0)
    memory = through_json(remember(before))
    with pytest.raises(RecordingError, match="makes no sense"):
        recall(after, {**memory, "run": {**memory["run"], **change}}, 3)
    assert after.memory.state.run is None


def damaged() -> list[tuple[str, Any]]:
    base = watch()
    tick(base, 5, 1.0, 0.0)
    good = through_json(remember(base))
    return [
        ("another monitor file", {**good, "key": "0"}),
        ("ticks old", {**good, "tick": 10}),
        ("ticks old", {**good, "tick": -100}),
        ("makes no sense", {**good, "tick": "five"}),
        ("makes no sense", {**good, "properties": good["properties"][:1]}),
        ("makes no sense", {**good, "properties": [[[99], False, [0] * 7]] * 2}),
        ("makes no sense", {**good, "properties": [[[], False, [0] * 7]] * 2}),
        ("makes no sense", {**good, "properties": [[[0], False, [7] * 7]] * 2}),
        ("makes no sense", {**good, "violations": [1]}),
        ("makes no sense", {**good, "mutes": {"nobody": 3}}),
        ("makes no sense", {**good, "advisor": 1}),
        ("makes no sense", {key: good[key] for key in good if key != "pending"}),
    ]


@pytest.mark.parametrize(("problem", "memory"), damaged())
def test_what_cannot_be_trusted_changes_nothing(problem: str, memory: Any) -> None:
    fresh = watch()
    with pytest.raises(RecordingError, match=problem):
        recall(fresh, memory, 10, oldest=50)
    assert remember(fresh) == remember(watch())


def test_other_properties_are_another_memory() -> None:
    before = watch()
    tick(before, 1, 1.0, 0.0)
    other = watch(TEXT.replace("[0:0.5]", "[0:0.6]"))
    with pytest.raises(RecordingError, match="another monitor file"):
        recall(other, remember(before), 2)
    lenient = watch(TEXT.replace("horizon: 1.0", "horizon: 2.0"))  # thresholds and horizons may
    recall(lenient, remember(before), 2)
