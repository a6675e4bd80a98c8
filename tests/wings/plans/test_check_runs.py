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


def test_a_tree_for_each_pair_of_values_of_two_fields(forewarn: Run, logs: Path) -> None:
    words = ["check-runs", logs, "-a", "household", "-f", 'AF "on(stove)"']
    result = forewarn(*words, "--by", "kind", "--by", "id", "--json")
    assert result.code == 0
    assert {*json.loads(result.out)["trees"]} == {"a, 0", "a, 1", "b, 2", "b, 3"}


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
    broken = forewarn(
        "check-runs", logs, "-r", rules, "-f", "AG !hot", "-f", "EF !hot & AG !hot", "--top", 1
    )
    assert broken.code == 1
    assert "1 more" in broken.out
    refused = forewarn("check-runs", logs, "-r", rules, "-f", "AF late")
    assert refused.code == 2
    assert "speaks of time" in refused.err


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
