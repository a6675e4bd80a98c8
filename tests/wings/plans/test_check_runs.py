"""`forewarn check-runs`: executions of plans and recordings as trees."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    path = tmp_path / "logs.jsonl"
    on, off = "turn on stove", "turn off stove"
    courses = [[on, off], [on, off, "look"], [on, "look", "look"], [on, "look", "look"]]
    records = [{"id": n, "kind": "ab"[n // 2], "plan": course} for n, course in enumerate(courses)]
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def test_the_branch_that_breaks_a_formula(forewarn: Run, logs: Path) -> None:
    formula = 'AG ("on(stove)" => AF[<=1] !"on(stove)")'
    result = forewarn("check-runs", logs, "-a", "household", "-f", formula, "--json", "--top", "3")
    assert result.code == 1
    found = json.loads(result.out)
    assert found["trees"] == {"": {"executions": 4, "nodes": 6}}
    (told,) = found["found"]
    assert (told["share"]["count"], told["share"]["of"]) == (2, 4)
    assert (told["executions"], told["at"]) == (2, "1")
    assert told["branch"] == [["0", "-"], ["1", "on(stove)"]]
    assert "logs.jsonl: 2" in told["execution"]


def test_a_tree_for_each_value_of_a_field(forewarn: Run, logs: Path) -> None:
    words = ["check-runs", logs, "-a", "household", "-f", 'AF "on(stove)"']
    result = forewarn(*words, "--by", "kind", "--json")
    assert result.code == 0
    assert {
        group: tree["executions"] for group, tree in json.loads(result.out)["trees"].items()
    } == {"a": 2, "b": 2}


def test_a_tree_for_each_pair_of_values_of_two_fields(forewarn: Run, logs: Path) -> None:
    words = ["check-runs", logs, "-a", "household", "-f", 'AF "on(stove)"']
    result = forewarn(*words, "--by", "kind", "--by", "id", "--json")
    assert result.code == 0
    assert {*json.loads(result.out)["trees"]} == {"a, 0", "a, 1", "b, 2", "b, 3"}


def test_valid_success_safe_and_both_by_prompt_and_model(forewarn: Run, tmp_path: Path) -> None:
    on, off = "turn on stove", "turn off stove"
    runs = [
        ("none", "a", True, True, [on, off]),
        ("none", "a", True, True, [on, "look"]),
        ("none", "a", False, False, [on]),
        ("words", "a", True, False, [on, off]),
        ("words", "b", True, True, [on, off, "juggle"]),
    ]
    keys = ("prompt", "model", "valid", "success", "plan")
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(json.dumps(dict(zip(keys, run, strict=True))) for run in runs))
    words = ["check-runs", path, "-a", "household", "-f", 'AG ("on(stove)" => AF !"on(stove)")']
    found = json.loads(forewarn(*words, "--json").out)
    rows = {tuple(row["group"]): row for row in found["rows"]}
    counts = [
        [rows[group][name]["count"] for name in ("valid", "success", "safe", "both")]
        for group in (("none", "a"), ("words", "a"), ("words", "b"))
    ]
    assert counts == [[2, 2, 1, 1], [1, 0, 1, 0], [1, 1, 0, 0]]
    assert [rows[group]["unknown"] for group in rows] == [0, 0, 1]
    assert "success and safe" in forewarn(*words).out
    assert "success and safe" not in forewarn(*words[:1], runs_without(path), *words[2:]).out


def runs_without(path: Path) -> Path:
    """Return a file of the same runs that say nothing of themselves."""
    bare = path.with_name("bare.jsonl")
    records = map(json.loads, path.read_text().splitlines())
    bare.write_text("\n".join(json.dumps({"plan": record["plan"]}) for record in records))
    return bare


def test_rules_without_time_are_names(forewarn: Run, logs: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "actions: household\nrules:\n"
        "  hot: 'exists s in objects: on(s)'\n  late: 'always(on(\"stove\"))'\n"
    )
    assert forewarn("check-runs", logs, "-r", rules, "-f", "AF hot").code == 0
    refused = forewarn("check-runs", logs, "-r", rules, "-f", "AF late")
    assert refused.code == 2
    assert "speaks of time" in refused.err


def test_recordings_of_vehicles_by_the_same_command(forewarn: Run, corridor_run: Any) -> None:
    bags = corridor_run.recordings[0].parent
    config = corridor_run.config
    atoms = forewarn("check-runs", bags, "-c", config, "-f", "AG nothing")
    assert atoms.code == 2
    name = atoms.err.split("accepted: ")[1].split(",")[0]
    result = forewarn("check-runs", bags, "-c", config, "-f", f'AG[<=1000] !"{name}"', "--json")
    told = json.loads(result.out)["found"][0]
    assert told["share"]["of"] >= len(corridor_run.recordings)
    assert told["holds"] == (told["share"]["count"] == told["share"]["of"])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["-f", "AG ("], "not understood"),
        (["-f", "P=? [F p]"], "probability"),
        (["-f", 'AF[<=2 s] "on(stove)"'], "clock is steps"),
        (["-f", 'AG "on(("'], "on(("),
        (["-f", 'AG "flying(pigs)"'], "no execution"),
        (["-f", "AG p", "-c", "monitor.yaml", "--by", "x"], "one or the other"),
        (["-f", 'AF "on(stove)"', "--most-nodes", "2"], "more than 2 nodes"),
    ],
)
def test_wrong_usage_says_what_to_do(
    forewarn: Run, logs: Path, words: list[str], problem: str
) -> None:
    result = forewarn("check-runs", logs, "-a", "household", *words)
    assert result.code == 2
    assert problem in result.err
