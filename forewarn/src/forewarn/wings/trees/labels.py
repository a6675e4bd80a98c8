"""Labels that few runs have, learned as an expression over the variables at the end of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import RecordingError, plural
from forewarn.files.inputs import open_plain
from forewarn.learning.observing import observe
from forewarn.logic.specification import CompiledSpec
from forewarn.models.estimation import clopper_pearson
from forewarn.recordings.groups import Grouping
from forewarn.recordings.parts import MARK
from forewarn.recordings.registry import open_recording
from forewarn.wings.trees.candidates import Examples
from forewarn.wings.trees.growth import Grower, Grown, Growth, choose_size
from forewarn.wings.trees.nodes import Split, paths

LEAST = 3
"""Runs of each kind that there have to be, so that one can be held out."""

SURE = 0.95
MOST_BYTES = 1 << 24


class End(NamedTuple):
    """How a run ended: the last known values of its variables, its label or None, its group."""

    values: dict[str, Any]
    label: bool | None
    group: str
    digest: str


class LearnedLabel(NamedTuple):
    """An expression for a label, empty if no condition separates the runs.

    Of `runs` with a label so many were predicted `right` when held out; `lower` and `upper` bound
    that share (Clopper and Pearson, 95 %) with as many trials as there are groups. Folds share
    runs, so they are an approximation. A constant would tell the share `common` rightly.
    """

    expression: str
    right: int
    runs: int
    lower: float
    upper: float
    common: float
    unlabelled: int


def name_of_run(path: Path) -> str:
    """Return the name of a run: what its lines say, or the name of its file."""
    address = path.name.partition(MARK)[2].partition("=")[2]
    return unquote(address) if address else path.name


def read_labels(file: Path, label: str) -> dict[str, bool]:
    """Return the labels of runs: lines of JSON such as ``{"run": "a17", "solved": true}``."""
    accepted = f'lines like {{"run": "a17", "{label}": true}}, each run once'
    try:
        with open_plain(file) as stream:
            text = stream.read(MOST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(f"cannot be read ({error})", file=file, accepted=accepted) from error
    found: dict[str, bool] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            name, value = str(row["run"]), row[label]
        except (ValueError, KeyError, TypeError, RecursionError):
            name, value = "", None
        if not isinstance(value, bool) or name in found:
            raise RecordingError(
                "is no label of a run, or of one that has one already",
                file=f"{file}:{number}",
                accepted=accepted,
            )
        found[name] = value
    return found


def end_of(
    path: Path,
    compiled: CompiledSpec,
    variables: Sequence[str],
    label: str | None,
    allow_missing: bool,
    grouping: Grouping | None,
    progress: Callable[[float], None] | None = None,
) -> End:
    """Return how a run ended; `label` is a signal that is the label where it is known.

    Raises RecordingError if the recording cannot be read, or its label is no truth value.
    """
    spec, abstraction = compiled.spec, compiled.abstraction
    slots = [(name, abstraction.signals.index(name)) for name in variables]
    where = None if label is None else abstraction.signals.index(label)
    values: dict[str, Any] = dict.fromkeys(variables)
    known: Any = None
    with open_recording(path) as recording:
        digest = recording.digest()
        group = digest if grouping is None else grouping.of(recording)
        for tick in observe(recording, spec, abstraction, progress, allow_missing=allow_missing):
            at_once = tick.seen.values
            for name, slot in slots:
                if at_once[slot] is not None:
                    values[name] = at_once[slot]
            if where is not None and at_once[where] is not None:
                known = at_once[where]
    if known is not None and not isinstance(known, bool):
        raise RecordingError(
            f"the label {label} is {known!r}", file=path, accepted="a truth value, or unknown"
        )
    return End(values, known, group, digest)


def learn_label(ends: Sequence[End], growth: Growth, folds: int = 5) -> LearnedLabel:
    """Learn an expression for the label of runs, and how often it is right on runs held out.

    The size of the tree is chosen by cross-validation, also within each fold; runs of a group are
    in the same part. Raises RecordingError if there are too few runs of a kind, or in too few
    groups.
    """
    # The order in which they were given decides nothing.
    ordered = sorted(ends, key=attrgetter("group", "digest"))
    labelled = [end for end in ordered if end.label is not None]
    truth = np.array([bool(end.label) for end in labelled], dtype=bool)
    order = {name: i for i, name in enumerate(dict.fromkeys(end.group for end in labelled))}
    group = np.array([order[end.group] for end in labelled], dtype=np.int64)
    kinds = [np.unique(group[kind]) for kind in (truth, ~truth)]
    number = min(kinds[0].size, kinds[1].size)
    if number < LEAST:
        alike = f", in {plural(len(order), 'group')} of runs that are alike"
        where = "" if len(order) == truth.size else alike
        raise RecordingError(
            f"{int(truth.sum())} runs have the label, {int((~truth).sum())} have it not, "
            f"{len(ends) - len(labelled)} are not labelled{where}",
            accepted=f"{LEAST} runs or more of each kind{where and ', in so many groups'}",
        )
    names = list(labelled[0].values)
    examples = Examples(
        {name: [end.values[name] for end in labelled] for name in names},
        truth.tolist(),
        group.tolist(),
    )
    fold = _folds(kinds, min(folds, number))[group]
    right = 0
    for held in np.unique(fold):
        train = np.flatnonzero(fold != held)
        grown = _grown(examples, growth, train, folds)
        right += sum(_predicted(grown, row) == truth[row] for row in np.flatnonzero(fold == held))
    grown = _grown(examples, growth, np.arange(len(labelled)), folds)
    total = len(labelled)
    trials = len(order)
    lower, upper = clopper_pearson(right * trials / total, trials, (1.0 - SURE) / 2)
    common = float(max(truth.mean(), 1 - truth.mean()))
    return LearnedLabel(
        _expression(grown), int(right), total, float(lower), float(upper), common, len(ends) - total
    )


def _folds(kinds: Sequence[NDArray[np.int64]], number: int) -> NDArray[np.int64]:
    """Deal groups out to folds in turn, first those that have the label, then all others."""
    fold = np.empty(np.union1d(*kinds).size, dtype=np.int64)
    for groups in (kinds[0], np.setdiff1d(kinds[1], kinds[0])):
        fold[groups] = np.arange(groups.size) % number
    return fold


def _grown(examples: Examples, growth: Growth, rows: NDArray[np.int64], folds: int) -> Grown:
    part = Examples(
        {name: [values[i] for i in rows] for name, values in examples.variables.items()},
        [examples.classes[i] for i in rows],
        [examples.runs[i] for i in rows],
    )
    leaves, _ = choose_size(part, growth, folds)
    return Grower(examples, replace(growth, leaves=leaves), rows).grow(rows)


def _predicted(grown: Grown, row: int) -> bool | None:
    """Return what a tree says of an example; None where a condition on its path is unknown."""
    truths = {choice.condition: choice.truth for choice in grown.splits}
    node = grown.tree
    while isinstance(node, Split):
        outcome = int(truths[node.condition][row])
        if outcome < 0:
            return None
        node = node.then if outcome else node.otherwise
    return _says(grown.counts[node.name])


def _says(kinds: Mapping[Any, int]) -> bool:
    return kinds.get(True, 0) > kinds.get(False, 0)


def _expression(grown: Grown) -> str:
    """Return the leaves in which the label is more common as one condition, empty if all agree."""
    labelled = [_says(kinds) for kinds in grown.counts.values()]
    if all(labelled) or not any(labelled):
        return ""
    ways = [
        " and ".join(f"({text})" if outcome else f"not ({text})" for text, outcome in path)
        for leaf, path in paths(grown.tree)
        if _says(grown.counts[leaf.name])
    ]
    return " or ".join(f"({way})" for way in ways) if len(ways) > 1 else ways[0]
