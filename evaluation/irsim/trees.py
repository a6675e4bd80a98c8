"""A learned tree for the small robot, against its predicates by hand and gradient boosting.

    python -m evaluation.irsim.trees --training DIR --test DIR --folder DIR [--write]

after `evaluation.irsim.record` has made the first two folders; trees and traces go into the third.
A tree is grown on the training episodes by ``forewarn abstract``, from all signals that are
numbers; its size is chosen on training episodes left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from evaluation.harness.command import command
from evaluation.harness.compare import within
from evaluation.harness.page import publish, put
from evaluation.harness.runs import pass_over
from evaluation.harness.trees import Question, answer, table_of
from evaluation.irsim.study import BUDGET, HERE, recordings
from forewarn.monitoring.loading import load_bare

MARK = "evaluation.irsim.trees"
DECLARED: Mapping[str, Mapping[str, Any]] = {
    "no_contact": {},
    "keep_distance": {"predicates": ("moving", "too_near")},
    "slow_when_near": {"predicates": ("slow",), "bins": {"clearance": [0.4]}},
}
"""Properties, and what their formulas name; the rest of what is by hand is gone."""

ENDS = ("bumped", "goal_status")
CONSTANT = ("angle_min", "angle_step", "sector_min", "sector_step")


def question_of(name: str) -> Question:
    """Return what is asked of a property: to foresee it without the predicates by hand."""
    frame = yaml.safe_load((HERE / "monitor.yaml").read_text(encoding="utf-8"))
    declared, by_hand = DECLARED[name], frame["predicates"]
    for key in ("signals", "predicates", "bins"):
        frame.pop(key)
    named = {each: by_hand[each] for each in declared.get("predicates", ())}
    frame |= {"properties": {name: frame["properties"][name]}}
    frame |= {"predicates": named} if named else {}
    frame |= {"bins": declared["bins"]} if "bins" in declared else {}
    return Question(load_bare(HERE / "monitor.yaml"), frame, name, ("bumped",), (*ENDS, *CONSTANT))


def main(
    training: Path,
    test: Path,
    folder: Path,
    properties: Sequence[str] = tuple(DECLARED),
    write: bool = False,
) -> None:
    """Learn, judge, write."""
    hand = load_bare(HERE / "monitor.yaml")
    parts = [[pass_over(hand, path) for path in recordings(each)] for each in (training, test)]
    found: dict[str, Any] = {}
    for name in properties:
        found[name] = answer(question_of(name), *parts, folder, within(BUDGET))
        text = table_of({name: found[name]})
        publish(None, text, found[name], HERE / "trees.json", write=write, within=name)
    if write:
        put(MARK, table_of(found))


if __name__ == "__main__":
    command(main)
