"""Learned trees on the seven scenarios, against their predicates by hand and gradient boosting.

    python -m evaluation.study.trees --folder out/study [--write]

The folder has the runs of `make study`. A tree is grown on the training runs by ``forewarn
abstract``, from all signals that are numbers or truths; its size is chosen on training runs left
out. The test runs are those of the study.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from evaluation.harness.command import command
from evaluation.harness.compare import within
from evaluation.harness.page import publish, put
from evaluation.harness.runs import pass_over
from evaluation.harness.trees import Question, answer, table_of
from evaluation.study.analysis import BUDGETS, HERE, LIMITS, traces_in
from forewarn.monitoring.loading import load_bare

TRUTHS = ("collided", "traffic_jam", "in_junction", "before_line", "must_stop", "free")
PLACES = ("ego_x", "ego_y", "heading", "collided")
MARK = "evaluation.study.trees"


def question_of(name: str) -> Question:
    """Return what is asked of a scenario: its property, without the predicates by hand."""
    path = HERE / f"{name}.yaml"
    hand = load_bare(path)
    frame = yaml.safe_load(path.read_text(encoding="utf-8"))
    for key in ("signals", "predicates", "bins"):
        frame.pop(key, None)
    laws = [part for part in frame["include"] if not isinstance(part, str)]
    frame["include"] = [{**part, "file": str((HERE / part["file"]).resolve())} for part in laws]
    return Question(hand, frame, next(iter(hand.spec.properties)), TRUTHS, PLACES)


def main(
    folder: Path,
    scenarios: Sequence[str] = tuple(BUDGETS),
    write: bool = False,
) -> None:
    """Learn, judge, write."""
    found: dict[str, Any] = {}
    for name in scenarios:
        question = question_of(name)
        parts = [
            [pass_over(question.hand, path) for path in traces_in(folder / name, part, None)]
            for part in ("train", "test")
        ]
        choose = within(BUDGETS[name], **LIMITS)
        found[name] = answer(question, *parts, folder / name / "trees", choose)
        text = table_of({name: found[name]})
        publish(None, text, found[name], HERE / "trees.json", folder, write=write, within=name)
    if write:
        put(MARK, table_of(found))


if __name__ == "__main__":
    command(main)
