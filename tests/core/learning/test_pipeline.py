from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError, RecordingError
from forewarn.learning.executors import local
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.file import merge_models
from forewarn.models.process import Step

TEXT = """
rate: 10
signals: {x: {timeout: 0.1}, auto: {timeout: never}}
predicates: {high: x > 0}
terminal: {over: x > 5}
properties: {p: {formula: always(not high)}}
"""


def compiled(extra: str = "") -> CompiledSpec:
    return compile_spec(parse_spec(parse_document(TEXT + extra)))


def trace(path: Path, rows: list[tuple[float, dict[str, float]]]) -> Path:
    path.write_text("".join(json.dumps({"t": t, **values}) + "\n" for t, values in rows))
    return path


def series(path: Path, values: list[float | None]) -> Path:
    """Write one sample a tick; None leaves the tick without one."""
    rows = [(k / 10, {"x": x}) for k, x in enumerate(values) if x is not None]
    return trace(path, rows)


def transitions(learned) -> dict[tuple[str, str], int]:
    model = learned.model
    coo = model.counts.tocoo()
    return {
        (model.vocabulary.key(model.states[i]), model.vocabulary.key(model.states[j])): int(n)
        for i, j, n in zip(coo.row, coo.col, coo.data, strict=True)
    }


def test_transitions_of_consecutive_known_ticks_are_counted(tmp_path: Path) -> None:
    spec = compiled()
    path = series(tmp_path / "a.jsonl", [-1, -1, 1, 1, -1, 9, -1, 1])
    learned = learn([path], spec.spec, spec.abstraction)
    # 9 is the terminal label `over`: it is entered, nothing leaves it, a new episode begins
    assert transitions(learned) == {
        ("0", "0"): 1,
        ("0", "1"): 2,
        ("1", "1"): 1,
        ("1", "0"): 1,
        ("0", "!over"): 1,
    }
    assert learned.model.starts.sum() == 2


def test_nothing_is_counted_across_a_gap(tmp_path: Path) -> None:
    spec = compiled()
    # a sample lives for one more tick (timeout), then the state is unknown for two ticks
    path = series(tmp_path / "a.jsonl", [-1, -1, None, None, None, 1, 1])
    learned = learn([path], spec.spec, spec.abstraction)
    assert transitions(learned) == {("0", "0"): 2, ("1", "1"): 1}
    assert learned.reports[0].stale["x"] == 2


def test_nothing_is_counted_across_recordings_and_counts_add_up(tmp_path: Path) -> None:
    spec = compiled()
    first = series(tmp_path / "a.jsonl", [-1, 1, -1])
    second = series(tmp_path / "b.jsonl", [1, 1, 1, -1])
    both = learn([first, second], spec.spec, spec.abstraction)
    apart = [learn([p], spec.spec, spec.abstraction).model for p in (first, second)]
    merged = merge_models(apart)
    assert transitions(both)[("1", "0")] == 2
    assert both.model.states == merged.states
    assert (both.model.counts != merged.counts).nnz == 0
    assert np.array_equal(both.model.starts, merged.starts)


def test_processes_give_the_same_counts(tmp_path: Path) -> None:
    spec = compiled()
    rng = np.random.default_rng(1)
    paths = [
        series(tmp_path / f"{i}.jsonl", [float(x) for x in rng.normal(size=50)]) for i in range(3)
    ]
    alone = learn(paths, spec.spec, spec.abstraction)
    shared = learn(paths, spec.spec, spec.abstraction, executor=local(2))
    assert transitions(alone) == transitions(shared)
    assert alone.model.fingerprint == shared.model.fingerprint


def test_inactive_and_intervened_ticks_are_left_out(tmp_path: Path) -> None:
    rows = [(k / 10, {"x": -1.0, "auto": float(k >= 3)}) for k in range(8)]
    path = trace(tmp_path / "a.jsonl", rows)
    spec = compiled("active_when: auto > 0\n")
    report = learn([path], spec.spec, spec.abstraction).reports[0]
    assert (report.inactive, report.provenance.transitions) == (3, 4)
    spec = compiled("intervened_when: auto > 0\n")
    learned = learn([path], spec.spec, spec.abstraction)
    assert learned.model.intervened == 5
    assert learned.reports[0].provenance.transitions == 2


def test_what_a_constraint_excludes_is_reported_not_learned(tmp_path: Path) -> None:
    path = series(tmp_path / "a.jsonl", [-1, -1, 1, 1, -1, -1])
    spec = compiled("constraints: [{irreversible: high}]\n")
    learned = learn([path], spec.spec, spec.abstraction)
    assert transitions(learned) == {("0", "0"): 2, ("0", "1"): 1, ("1", "1"): 1}
    assert sum(learned.reports[0].counts.refused.values()) == 1


def test_the_end_of_a_recording_can_be_a_state(tmp_path: Path) -> None:
    path = series(tmp_path / "a.jsonl", [-1, 1])
    spec = compiled("learning: {recording_end: absorb}\n")
    assert transitions(learn([path], spec.spec, spec.abstraction)) == {
        ("0", "1"): 1,
        ("1", "!end"): 1,
    }


def test_the_same_recording_twice_is_refused(tmp_path: Path) -> None:
    spec = compiled()
    first = series(tmp_path / "a.jsonl", [-1, 1])
    second = series(tmp_path / "copy.jsonl", [-1, 1])
    with pytest.raises(RecordingError, match="same data"):
        learn([first, second], spec.spec, spec.abstraction)


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    spec = compiled()
    path = series(tmp_path / "a.jsonl", [-1.0, 1.0] * 100)
    seen: list[float] = []
    learn([path], spec.spec, spec.abstraction, progress=lambda p, done: seen.append(done))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert len(seen) > 2


def test_a_line_of_a_trace_names_what_was_done_until_the_next(tmp_path: Path) -> None:
    spec = compiled()
    path = tmp_path / "a.jsonl"
    lines = [
        {"t": 0.0, "x": -1, "action": "go"},
        {"t": 0.1, "x": 1, "action": "brake"},
        {"t": 0.2, "x": -1},
        {"t": 0.3, "x": -1, "action": None},
        {"t": 0.4, "x": 9, "action": "go"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    learned = learn([path], spec.spec, spec.abstraction)
    assert learned.model.steps == (
        (Step("brake", False, 1, 0), 1),
        (Step("go", False, 0, 1), 1),
    )
    plain = trace(tmp_path / "b.jsonl", [(line["t"], {"x": line["x"]}) for line in lines])
    assert learn([plain], spec.spec, spec.abstraction).model.seed == learned.model.seed


def test_an_action_that_is_no_text_is_an_error_unless_it_is_a_signal(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"t": 0, "x": 1, "action": 3}\n{"t": 0.1, "x": 1, "action": 3}\n')
    spec = compiled()
    with pytest.raises(RecordingError, match=r"a\.jsonl.*action: 3 at 0 s"):
        learn([path], spec.spec, spec.abstraction)
    named = compile_spec(parse_spec(parse_document(TEXT.replace("auto:", "action: {}, auto:"))))
    assert learn([path], named.spec, named.abstraction).model.steps == ()


EXPRESSION = "intervened_when: braked\naction: \"'brake' if x > 2 else 'go'\"\n"


def test_the_monitor_file_names_actions_by_an_expression(tmp_path: Path) -> None:
    text = TEXT.replace("auto:", "braked: {timeout: never}, auto:")
    spec = compile_spec(parse_spec(parse_document(text + EXPRESSION)))
    rows = [(0.0, -1, 0), (0.1, 1, 0), (0.2, 3, 1), (0.3, -1, 0), (0.4, 1, 0)]
    path = trace(tmp_path / "a.jsonl", [(t, {"x": x, "braked": bool(b)}) for t, x, b in rows])
    learned = learn([path], spec.spec, spec.abstraction)
    assert learned.model.steps == (
        (Step("brake", True, 1, 0), 1),
        (Step("go", False, 0, 1), 2),
    )
    without = EXPRESSION.splitlines()[0] + "\n"
    other = compile_spec(parse_spec(parse_document(text + without)))
    assert other.abstraction.digest != spec.abstraction.digest
    model = learn([path], other.spec, other.abstraction).model
    assert transitions(learned) == {("0", "1"): 2} and model.steps == ()
    assert (model.counts != learned.model.counts).nnz == 0


def test_an_action_that_is_no_text_is_reported(tmp_path: Path) -> None:
    spec = compiled("action: x + 1\n")
    path = series(tmp_path / "a.jsonl", [-1, 1])
    report = learn([path], spec.spec, spec.abstraction).reports[0]
    assert report.failures["action: 2.0 is no text"] == 1
    with pytest.raises(ConfigError, match="action: unknown name 'y'"):
        compiled("action: y\n")


def test_what_makes_a_memory_unknown_is_told(tmp_path: Path) -> None:
    """Nothing is stale from the second tick on, and the state still not known."""
    text = TEXT.replace("{high: x > 0}", "{high: x > 0, long: for_how_long(high) > 0.2}")
    spec = compile_spec(parse_spec(parse_document(text)))
    rows = [(k / 10, {"x": float(x)}) for k, x in enumerate([1, 1, 1, 1, -1, 1, 1])]
    path = trace(tmp_path / "a.jsonl", [(0.0, {"auto": 1.0}), *rows[1:]])
    report = learn([path], spec.spec, spec.abstraction).reports[0]
    assert report.counts.unknown == 4 and report.stale["x"] == 1
    name = "for_how_long(high): no value, because an earlier moment has none or is missing"
    assert report.failures == {name: 3}
    defaulted = text.replace("x: {timeout: 0.1}", "x: {timeout: 0.1, default: 1}")
    spec = compile_spec(parse_spec(parse_document(defaulted)))
    report = learn([path], spec.spec, spec.abstraction).reports[0]
    assert (report.counts.unknown, report.failures) == (0, {})
