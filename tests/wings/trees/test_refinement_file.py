"""The file of a refinement: what is saved is read again, what is damaged told with its place."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.errors import ModelError
from forewarn.wings.trees.nodes import Leaf, Split
from forewarn.wings.trees.refined import (
    ENDINGS,
    CriticalPart,
    Flow,
    GoalEstimate,
    LeafValue,
    Refined,
    Round,
    Way,
)
from forewarn.wings.trees.refinement_file import Refinement, load_refinement, save_refinement

names = st.text(min_size=1, max_size=8)
chances = st.floats(0, 1)
numbers = st.integers(0, 1 << 40)
answers = st.builds(
    GoalEstimate, chances, chances, chances, st.integers(1, 1024), chances | st.just(math.nan)
)
trees = st.recursive(
    st.builds(Leaf, st.just("s")), lambda part: st.builds(Split, names, part, part), max_leaves=6
)
paths = st.lists(names, max_size=6).map(tuple)
refinements = st.builds(
    Refined,
    st.sampled_from([*ENDINGS]),
    trees,
    st.lists(
        st.builds(Round, names, names, chances, chances, paths, chances, answers, answers),
        max_size=3,
    ).map(tuple),
    answers,
    chances,
    st.lists(st.builds(Way, paths, chances, numbers, st.just(0)), max_size=3).map(tuple),
    st.none() | st.builds(CriticalPart, paths, chances, chances, st.booleans(), numbers, names),
    st.lists(st.tuples(names, names), max_size=3).map(tuple),
    st.lists(st.builds(Flow, names, names, names, st.integers(1, 1 << 40)), max_size=4).map(tuple),
    st.dictionaries(names, st.builds(LeafValue, numbers, chances, names), max_size=4),
)


def numbered(tree: Any, count: list[int]) -> Any:
    """Return the tree with a name of its own for each leaf."""
    if isinstance(tree, Leaf):
        count.append(1)
        return Leaf(f"s{len(count)}")
    return Split(tree.condition, numbered(tree.then, count), numbered(tree.otherwise, count))


@settings(max_examples=examples(25))
@given(refined=refinements, query=names)
def test_what_is_saved_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, refined: Refined, query: str
) -> None:
    found = Refinement(query, refined._replace(tree=numbered(refined.tree, [])))
    path = tmp_path_factory.getbasetemp() / "refined.json"
    save_refinement(found, path)
    # Not a number is not itself: what is written for it is.
    assert repr(load_refinement(path)) == repr(found)


@pytest.fixture
def content(tmp_path: Path) -> dict[str, Any]:
    answer = GoalEstimate(0.5, 0.1, 1.0, 2, math.nan)
    refined = Refined(
        "real", Split("x > 1", Leaf("a"), Leaf("b")),
        (Round("s0", "x > 1", 0.5, 0.2, ("s0", "go", "(goal)"), 0.5, answer, answer),),
        answer, 0.5, (Way(("a", "go", "(goal)"), 0.5, 3, 2),),
        CriticalPart(("a",), 0.5, 0.1, True, 1, "tried"), (("b", "x > 2"),),
        (Flow("a", "go", "(goal)", 3),), {"a": LeafValue(3, 0.5, "go")},
    )  # fmt: skip
    save_refinement(Refinement("Pmax(f) <= 0.1", refined), tmp_path / "sound.json")
    found: dict[str, Any] = json.loads((tmp_path / "sound.json").read_text())
    return found


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
