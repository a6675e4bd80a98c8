"""The file of a refinement: what is saved is read again, what is damaged told with its place."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from forewarn.errors import ModelError
from forewarn.wings.trees.nodes import Leaf, Split
from forewarn.wings.trees.refined import (
    CriticalPart,
    Flow,
    GoalEstimate,
    LeafValue,
    Refined,
    Round,
    Way,
)
from forewarn.wings.trees.refinement_file import Refinement, load_refinement, save_refinement


@pytest.fixture
def found() -> Refinement:
    answer = GoalEstimate(0.5, 0.1, 1.0, 2, math.nan)
    refined = Refined(
        "real", Split("x > 1", Leaf("a"), Leaf("b")),
        (Round("s0", "x > 1", 0.5, 0.2, ("s0", "go", "(goal)"), 0.5, answer, answer),),
        answer, 0.5, (Way(("a", "go", "(goal)"), 0.5, 3, 2),),
        CriticalPart(("a",), 0.5, 0.1, True, 1, "tried"), (("b", "x > 2"),),
        (Flow("a", "go", "(goal)", 3),), {"a": LeafValue(3, 0.5, "go")},
    )  # fmt: skip
    return Refinement("Pmax(f) <= 0.1", refined)


@pytest.fixture
def content(found: Refinement, tmp_path: Path) -> dict[str, Any]:
    save_refinement(found, tmp_path / "sound.json")
    return dict(json.loads((tmp_path / "sound.json").read_text()))


def test_what_is_saved_is_read_again(found: Refinement, tmp_path: Path) -> None:
    save_refinement(found, tmp_path / "refined.json")
    # Not a number is not itself: what is written for it is.
    assert repr(load_refinement(tmp_path / "refined.json")) == repr(found)


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        (("format",), "forewarn-model", "format"),
        (("version",), 2, "version"),
        (("ending",), "well", "ending"),
        (("query",), 3, "query"),
        (("tree", "if"), 3, "tree.if"),
        (("answer", "leaves"), 0, "answer.leaves"),
        (("answer", "loss"), "much", "answer.loss"),
        (("rounds", 0, "gain"), None, "rounds[0].gain"),
        (("rounds", 0, "path", 1), 7, "rounds[0].path[1]"),
        (("rounds", 0, "before"), "none", "rounds[0].before"),
        (("paths", 0, "seen"), 4, "paths[0].seen"),
        (("critical", "minimal"), 1, "critical.minimal"),
        (("rejected", 0), ["b"], "rejected[0][1]"),
        (("flows", 0, "times"), 0, "flows[0].times"),
        (("leaves", "a", "starts"), -1, "leaves.a.starts"),
    ],
)
def test_what_is_damaged_is_told_with_its_place(
    content: dict[str, Any], tmp_path: Path, path: tuple[Any, ...], value: Any, key: str
) -> None:
    part: Any = content
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    file = tmp_path / "damaged.json"
    file.write_text(json.dumps(content))
    with pytest.raises(ModelError) as told:
        load_refinement(file)
    assert (told.value.file, told.value.key) == (str(file), key) and told.value.accepted


@pytest.mark.parametrize("text", ["", "[]", '{"format": "forewarn-refinement"}', "{"])
def test_what_is_no_refinement_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(ModelError) as told:
        load_refinement(file)
    assert told.value.file == str(file) and told.value.accepted
