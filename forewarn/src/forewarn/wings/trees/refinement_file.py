"""The file of a refinement: its rounds, counterexamples and the process that it ended with."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.checking.critical import CriticalPart
from forewarn.errors import ConfigError, ModelError, located
from forewarn.files.outputs import write_output
from forewarn.models.checked_json import Reader, read_json
from forewarn.models.process import Flow
from forewarn.models.records import checked
from forewarn.wings.trees.nodes import Node, dump_tree, parse_tree
from forewarn.wings.trees.refined import Ending, GoalEstimate, LeafValue, Refined, Round, Way

FORMAT = "forewarn-refinement"
NOUN = "file of `forewarn refine --save`"
VERSION = 1


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
    """Read a refinement; raises ModelError with file, key and value."""
    try:
        content = read_json(path)
    except ModelError as error:
        raise ModelError(error.problem, accepted=f"a {NOUN}", file=path, key=error.key) from error
    with located(file=path):
        return _parse(Reader(content, ""))


class _Stored(NamedTuple):
    """What the file says beside its format; see `Refined`."""

    query: str
    ending: Ending
    tree: Any
    rounds: tuple[Round, ...]
    answer: GoalEstimate
    borne_out: float
    paths: tuple[Way, ...]
    critical: CriticalPart | None
    rejected: tuple[tuple[str, str], ...]
    flows: tuple[Flow, ...]
    leaves: dict[str, LeafValue]


def _parse(reader: Reader) -> Refinement:
    reader.expect("format", FORMAT)
    reader.integer("version", VERSION, VERSION)
    content = {k: v for k, v in reader.value.items() if k not in ("format", "version")}
    stored = checked(_Stored, content)
    fields = stored._asdict() | {"tree": _tree(stored.tree), "real": stored.borne_out}
    found = Refined(**{name: fields[name] for name in Refined._fields})
    for i, way in enumerate(found.paths):
        if way.seen > len(way.path):
            key = f"paths[{i}].seen"
            raise ModelError(f"{way.seen}", accepted=f"at most {len(way.path)}", key=key)
    return Refinement(stored.query, found)


def _tree(tree: Any) -> Node:
    try:
        return parse_tree(tree)
    except ConfigError as error:
        raise ModelError(error.problem, key=error.key, accepted=error.accepted) from error
