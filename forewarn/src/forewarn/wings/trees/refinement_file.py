"""The file of a refinement: its rounds, counterexamples and the process that it ended with."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from forewarn.checking.critical import CriticalPart
from forewarn.errors import ConfigError, ModelError, located
from forewarn.files.outputs import write_output
from forewarn.models.checked_json import MAX_CHILDREN, Reader, read_json
from forewarn.models.process import Flow
from forewarn.wings.trees.nodes import MAX_LEAVES, Node, dump_tree, parse_tree
from forewarn.wings.trees.refined import (
    Ending,
    GoalEstimate,
    LeafValue,
    Refined,
    Round,
    Way,
)

FORMAT = "forewarn-refinement"
NOUN = "file of `forewarn refine --save`"
VERSION = 1
MAX_PATH = 1 << 20
MAX_COUNT = 1 << 53


class Refinement(NamedTuple):
    """A refinement, and the bound that it was for."""

    query: str
    refined: Refined


def refinement_record(found: Refinement) -> dict[str, Any]:
    """Return a refinement as JSON holds it; what is no number is null."""
    refined = found.refined
    return {
        "query": found.query,
        "ending": refined.ending,
        "answer": _answer_record(refined.answer),
        "borne_out": refined.real,
        "rounds": [
            {
                **one._asdict(),
                "before": _answer_record(one.before),
                "after": _answer_record(one.after),
            }
            for one in refined.rounds
        ],
        "paths": [way._asdict() for way in refined.paths],
        "critical": None if refined.critical is None else refined.critical._asdict(),
        "rejected": refined.rejected,
        "tree": dump_tree(refined.tree),
        "flows": [flow._asdict() for flow in refined.flows],
        "leaves": {name: one._asdict() for name, one in refined.leaves.items()},
    }


def _answer_record(answer: GoalEstimate) -> dict[str, Any]:
    known = answer._asdict()
    return known if math.isfinite(answer.loss) else {**known, "loss": None}


def save_refinement(found: Refinement, path: Path) -> None:
    """Write a refinement; raises InputError."""
    content = {"format": FORMAT, "version": VERSION, **refinement_record(found)}
    write_output(path, json.dumps(content, allow_nan=False) + "\n", ModelError)


def load_refinement(path: Path) -> Refinement:
    """Read a refinement.

    Raises
    ------
    ModelError
        If the file cannot be read or is no refinement; with file, key and value.
    """
    try:
        content = read_json(path)
    except ModelError as error:
        raise ModelError(error.problem, accepted=f"a {NOUN}", file=path, key=error.key) from error
    with located(file=path):
        return _parse(Reader(content, ""))


def _parse(reader: Reader) -> Refinement:
    reader.expect("format", FORMAT)
    reader.integer("version", VERSION, VERSION)
    refined = Refined(
        reader.choice("ending", get_args(Ending)),
        _tree(reader),
        tuple(map(_round, reader.children("rounds"))),
        _answer(reader.child("answer")),
        reader.number("borne_out"),
        tuple(map(_way, reader.children("paths"))),
        None if reader.get("critical", "an object, or null") is None else _critical(reader),
        tuple(_rejected(reader)),
        tuple(map(_flow, reader.children("flows"))),
        _leaves(reader.child("leaves")),
    )
    return Refinement(reader.text("query"), refined)


def _tree(reader: Reader) -> Node:
    try:
        return parse_tree(reader.get("tree", "a tree"))
    except ConfigError as error:
        raise ModelError(error.problem, key=error.key, accepted=error.accepted) from error


def _answer(reader: Reader) -> GoalEstimate:
    loss = reader.get("loss", "a number, or null")
    return GoalEstimate(
        reader.number("estimate"),
        reader.number("lower"),
        reader.number("upper"),
        reader.integer("leaves", 1, MAX_LEAVES),
        math.nan if loss is None else reader.number("loss"),
    )


def _round(reader: Reader) -> Round:
    return Round(
        reader.text("leaf"),
        reader.text("condition"),
        reader.number("gain"),
        reader.number("lost"),
        reader.texts("path", MAX_PATH),
        reader.number("probability"),
        _answer(reader.child("before")),
        _answer(reader.child("after")),
    )


def _way(reader: Reader) -> Way:
    path = reader.texts("path", MAX_PATH)
    return Way(
        path,
        reader.number("probability"),
        reader.integer("runs", 0, MAX_COUNT),
        reader.integer("seen", 0, len(path)),
    )


def _critical(reader: Reader) -> CriticalPart:
    part = reader.child("critical")
    return CriticalPart(
        part.texts("states", MAX_PATH),
        part.number("probability"),
        part.number("bound"),
        part.truth("minimal"),
        part.integer("at_least", 0, MAX_COUNT),
        part.text("method"),
    )


def _rejected(reader: Reader) -> Sequence[tuple[str, str]]:
    found = []
    for i, item in enumerate(reader.items("rejected", MAX_CHILDREN)):
        if not isinstance(item, list) or len(item) != 2:
            raise ModelError(f"{item!r:.80}", accepted="[leaf, condition]", key=f"rejected[{i}]")
        leaf, condition = Reader({f"rejected[{i}]": item}, "").texts(f"rejected[{i}]", 2)
        found.append((leaf, condition))
    return found


def _flow(reader: Reader) -> Flow:
    return Flow(
        reader.text("state"),
        reader.text("action"),
        reader.text("following"),
        reader.integer("times", 1, MAX_COUNT),
    )


def _leaves(reader: Reader) -> dict[str, LeafValue]:
    found = {}
    for name in reader.value:
        part = reader.child(name)
        found[name] = LeafValue(
            part.integer("starts", 0, MAX_COUNT), part.number("value"), part.text("action")
        )
    return found
