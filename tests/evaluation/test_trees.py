"""Learned trees, predicates by hand and boosting on the same runs, in the small."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip("sklearn", reason="boosting is a rival")
pytest.importorskip("rtamt", reason="the study's rivals need RTAMT")

from evaluation.harness import classifiers, trees
from evaluation.harness.compare import within
from evaluation.harness.page import replaced
from evaluation.harness.runs import pass_over
from evaluation.harness.trees import MODES, Question, answer, as_trace, table_of
from evaluation.irsim import trees as robot
from evaluation.study.trees import HERE, MARK, question_of
from forewarn.config import load_spec
from forewarn.logic.specification import compile_spec

FRAME = {
    "version": 1,
    "rate": 10,
    "terminal": {"over": "fallen > 0"},
    "properties": {"stands": {"formula": "always(not over)", "horizon": 0.5, "unseen": "ignore"}},
    "bounds": {"kind": "none"},
}
SIGNALS = {name: {"timeout": 0.5} for name in ("lean", "noise", "fallen")}


def write_run(path: Path, seed: int) -> Path:
    """Write a run that falls when `lean` has been above 0.6 for a while, or never."""
    rng = np.random.default_rng(seed)
    lean, lines = rng.uniform(0.0, 0.4), []
    for tick in range(60):
        lean = min(lean + rng.uniform(-0.05, 0.08 if seed % 2 else 0.04), 1.0)
        fallen = lean > 0.8
        values = {"lean": lean, "noise": rng.normal(), "fallen": float(fallen)}
        lines.append(json.dumps({"t": tick / 10, **values}))
        if fallen:
            break
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def question(tmp_path_factory: pytest.TempPathFactory) -> Question:
    file = tmp_path_factory.mktemp("hand") / "hand.yaml"
    content = {**FRAME, "signals": SIGNALS, "predicates": {"leans": "lean > 0.3"}}
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return Question(compile_spec(load_spec(file)), FRAME, "stands", (), ("fallen",))


def test_a_tree_is_grown_from_the_signals_and_judged_like_its_rivals(
    question: Question, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classifiers, "ROUNDS", 15)
    monkeypatch.setattr(trees, "RESAMPLES", 20)
    runs = [pass_over(question.hand, write_run(tmp_path / f"{i}.jsonl", i)) for i in range(28)]
    found = answer(question, runs[:20], runs[20:], tmp_path / "trees", within(600.0))
    rows = {row["monitor"]: row for row in found["rows"]}
    assert tuple(rows) == MODES
    assert found["runs"] == [20, 8]
    assert len({row["violations"] for row in rows.values()}) == 1
    by_hand, tree, _ = rows.values()
    tree_file = yaml.safe_load((tmp_path / "trees" / "stands.all.yaml").read_text("utf-8"))
    assert "lean" in str(tree_file["states"]["tree"])
    assert found["leaves"] == str(tree_file["states"]["tree"]).count("'then'") + 1
    # Predicates by hand know one threshold that tells little; the tree finds a better one.
    assert tree["area"] > by_hand["area"] + 0.1
    assert all(row["auc"] > 0.5 for row in rows.values())
    assert table_of({"it": found}).count("\n") == 5


def test_a_trace_has_the_signals_of_a_run(question: Question, tmp_path: Path) -> None:
    run = pass_over(question.hand, write_run(tmp_path / "1.jsonl", 1))
    again = pass_over(question.hand, as_trace(run, tmp_path / "again.jsonl", ()))
    for name, values in run.signals.items():
        np.testing.assert_array_equal(again.signals[name], values)
    np.testing.assert_array_equal(again.tracks[0].violation, run.tracks[0].violation)


@pytest.mark.parametrize("scenario", ["s2", "s5", "s7"])
def test_a_tree_of_a_scenario_is_given_no_predicate_by_hand(scenario: str) -> None:
    question = question_of(scenario)
    assert not {"predicates", "bins", "signals"} & set(question.frame)
    assert question.name in question.hand.spec.properties
    formula = question.hand.spec.properties[question.name].formula
    law = scenario != "s7"
    assert bool(question.frame["include"]) == law == ("standing" in str(formula))


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("no_contact", set()),
        ("keep_distance", {"moving", "too_near"}),
        ("slow_when_near", {"slow", "clearance<0.4"}),
    ],
)
def test_a_tree_of_the_robot_is_given_what_the_formula_names(
    name: str, named: set[str], tmp_path: Path
) -> None:
    question = robot.question_of(name)
    variables = ["clearance", "speed", "commanded"]
    frame = {
        **question.frame,
        "signals": {each: {"timeout": 0.5} for each in (*variables, *question.ignored)},
        "states": {"kind": "tree", "variables": variables, "tree": "s0"},
    }
    file = tmp_path / "tree.yaml"
    file.write_text(yaml.safe_dump(frame), encoding="utf-8")
    space = compile_spec(load_spec(file)).abstraction.vocabulary
    assert set(space.terminals) == {"contact", "arrived"}
    assert set(space.atoms) - set(space.terminals) == named
    assert set(question.hand.abstraction.vocabulary.atoms) > named


@pytest.mark.parametrize(
    ("file", "mark"),
    [(HERE / "trees.json", MARK), (robot.HERE / "trees.json", robot.MARK)],
)
def test_the_page_shows_what_trees_gave(repository: Path, file: Path, mark: str) -> None:
    found = json.loads(file.read_text(encoding="utf-8"))
    page = (repository / "evaluation" / "RESULTS.md").read_text(encoding="utf-8")
    assert replaced(page, mark, table_of(found)) == page
