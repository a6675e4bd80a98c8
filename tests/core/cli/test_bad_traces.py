"""Traces from which nothing, or too much, can be learned: a clear error or a stated limit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TEXT = """\
clock: steps
signals: {x: {}, text: {}, over: {}}
predicates: {high: x > 8}
terminal: {done: over}
properties: {p: {formula: always(not high), horizon: 2}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "monitor.yaml"
    path.write_text(TEXT)
    return path


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("kind", ["action", "suffix:2"])
def test_a_trace_without_actions_is_told(forewarn, config, tmp_path, kind):
    rows = [{"run": run, "x": step, "over": False} for run in range(4) for step in range(9)]
    trace = write(tmp_path / "a.jsonl", rows)
    found = forewarn("learn-states", trace, "-c", config, "--class", kind)
    assert found.code == 2 and "no action is known" in found.err and "another class" in found.err
    # Other classes need none.
    assert forewarn("learn-states", trace, "-c", config, "--class", "state").code in (0, 1)


def test_a_tree_of_one_leaf_is_a_tree(forewarn, tmp_path):
    config = tmp_path / "monitor.yaml"
    text = TEXT.replace("predicates: {high: x > 8}\n", "").replace("not high", "not done")
    config.write_text(text + "states: {kind: tree, tree: only}\n")
    rows = [
        {"run": run, "x": 1, "over": step == 3, "action": "a" if step < 3 else None}
        for run in range(9)
        for step in range(4)
    ]
    trace, model = write(tmp_path / "a.jsonl", rows), tmp_path / "m.model.json"
    assert forewarn("learn", trace, "-c", config, "-o", model).code == 0
    (said,) = json.loads(forewarn("check", model, "Pmax(done)", "--json").out)["queries"]
    assert said["values"] == {"only:": pytest.approx(1.0), "!done": pytest.approx(1.0)}
    refined = forewarn("refine", trace, "-c", config, "--query", "Pmax(done) <= 0.5", "--json")
    assert json.loads(refined.out)["ending"] == "real"


def test_a_label_that_never_occurs_is_told(forewarn, config, tmp_path):
    rows = [
        {"run": run, "x": step, "over": False, "action": "a"} for run in range(6) for step in (1, 2)
    ]
    trace = write(tmp_path / "a.jsonl", rows)
    found = forewarn("refine", trace, "-c", config, "--query", "Pmax(done) <= 0.1")
    assert found.code == 2 and "no run reaches the goal" in found.err
    one_leaf = forewarn("learn-states", trace, "-c", config, "--class", "violation:p:1")
    assert one_leaf.code == 1 and "s0" in one_leaf.out


def test_more_variables_than_can_be_tried_are_refused(forewarn, tmp_path):
    names = ", ".join(f"v{i}: {{}}" for i in range(1200))
    config = tmp_path / "monitor.yaml"
    config.write_text(TEXT.replace("x: {},", f"x: {{}}, {names},"))
    trace = write(tmp_path / "a.jsonl", [{"x": 1, "action": "a"}, {"x": 2, "action": "b"}])
    found = forewarn("learn-states", trace, "-c", config)
    assert found.code == 2 and "1203 variables to ask about" in found.err
    assert "at most 1,000" in found.err


def test_a_counterexample_with_a_cycle_is_shown(forewarn, config, tmp_path):
    rows = []
    for run in range(12):
        rows += [
            {"run": run, "x": x, "over": False, "action": "go" if x == 1 else "back"}
            for x in [1, 2, 1, 2, 1, 2][: 2 + run % 4]
        ]
        rows.append({"run": run, "x": 3, "over": True, "action": None})
    trace = write(tmp_path / "a.jsonl", rows)
    found = forewarn(
        "refine", trace, "-c", config, "--query", "Pmax(done) <= 0.5", "--variable", "x", "--json"
    )
    said = json.loads(found.out)
    assert found.code == 1 and said["ending"] == "real"
    assert said["critical"]["probability"] > 0.5 and said["critical"]["states"]


def test_many_different_texts_are_no_trouble(forewarn, config, tmp_path):
    rows = [
        {"run": i % 50, "x": i % 7, "text": f"note {i}", "over": False, "action": "ab"[i % 7 > 3]}
        for i in range(4000)
    ]
    trace = write(tmp_path / "a.jsonl", rows)
    found = forewarn("learn-states", trace, "-c", config, "--leaves", "2", "--json")
    assert json.loads(found.out)["splits"][0]["condition"] == "x > 3"
