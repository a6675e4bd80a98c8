"""What a predicate tree may ask of the variables of a trace, by their type.

A condition is an expression of the monitor file; what it says of the examples is computed here
for many conditions at once and equals what the expression would say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import RecordingError
from forewarn.expressions.functions.texts import is_like
from forewarn.expressions.syntax import MAX_TEXT
from forewarn.learning.thresholds import written
from forewarn.wings.trees.collection_features import of_elements
from forewarn.wings.trees.embedding_features import weighed

Truth = NDArray[np.int8]
"""1 true, 0 false, -1 unknown."""

MOST_ITEMS = 64
"""Words, members or values of one variable that are tried: those with most gain at the root."""

MOST_CODES = 64
"""Different whole numbers in collections that may stand for kinds; more of them are quantities."""

MOST_COUNTED = 20_000
"""Different items of one variable that are counted to find them, the most frequent first."""

MOST_PATTERNS = 16
"""Forms of one text variable that are tried."""

LONGEST_PATTERN = 100
"""Characters of a text from which forms are made."""

TEXT_KINDS = ("value", "contains", "length", "pattern")
"""What is asked of a text by default."""

EMBEDDING = "embedding"
"""What may be asked of a text besides; it needs an optional extra."""


class Scale(NamedTuple):
    """Conditions ``source > threshold`` on a number; NaN where it is unknown."""

    variable: str
    source: str
    values: NDArray[np.float64]

    def condition(self, threshold: float) -> str:
        """Return the text of a condition; a whole threshold is written without a point."""
        return f"{self.source} > {written(threshold)}"

    def truth(self, threshold: float) -> Truth:
        """Return what it says of the examples, shape (n,)."""
        return np.where(np.isnan(self.values), -1, self.values > threshold).astype(np.int8)


class Flags(NamedTuple):
    """Conditions that hold or not, one column for each, shape (n, p); unknown rows not `known`."""

    variable: str
    conditions: tuple[str, ...]
    holds: NDArray[np.bool_]
    known: NDArray[np.bool_]

    def condition(self, place: int) -> str:
        """Return the text of a condition."""
        return self.conditions[place]

    def truth(self, place: int) -> Truth:
        """Return what it says of the examples, shape (n,)."""
        return np.where(self.known, self.holds[:, place], -1).astype(np.int8)


@dataclass(frozen=True)
class Examples:
    """Concrete states of traces, each with the class that a tree is to predict, and its trace.

    Variables have a value for each example, None where unknown: numbers, truth values, texts or
    collections (list, tuple, set or vector).
    """

    variables: Mapping[str, Sequence[Any]]
    classes: Sequence[Hashable]
    runs: Sequence[int]

    def __post_init__(self) -> None:
        if not self.classes:
            raise RecordingError("no examples", accepted="traces with at least one known state")
        sizes = {len(self.classes), len(self.runs), *map(len, self.variables.values())}
        if len(sizes) != 1:
            raise RecordingError("columns of unlike length", accepted="one value for each example")


def candidates(
    examples: Examples,
    classes: NDArray[np.int64],
    smallest: int,
    text: Sequence[str] = TEXT_KINDS,
    rows: NDArray[np.int64] | None = None,
) -> list[Scale | Flags]:
    """Return what may be asked of n examples with `classes` by number, shape (n,).

    On either side of a condition there are `smallest` examples at least. The examples `rows` (all
    by default) decide which words, members and values are tried. Raises RecordingError if a
    variable changes its type, InputError without the extra that embeddings need.
    """
    found: list[Scale | Flags] = []
    deciding = np.arange(len(classes)) if rows is None else rows

    def best(items: Sequence[tuple[Any, ...]]) -> list[Any]:
        rows = [items[row] for row in deciding.tolist()]
        runs = [examples.runs[row] for row in deciding.tolist()]
        return _best_items(rows, runs, classes[deciding], smallest)

    for name, values in examples.variables.items():
        known = np.array([value is not None for value in values], dtype=bool)
        kind = _kind(name, values, examples.runs)
        if kind == "number":
            numbers = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
            found.append(Scale(name, name, numbers))
        elif kind == "truth value":
            truths = np.array([bool(value) for value in values], dtype=bool)
            found.append(Flags(name, (name,), truths[:, np.newaxis], known))
        elif kind in ("text", "collection"):
            if kind == "collection" or "length" in text:
                lengths = np.array([np.nan if v is None else len(v) for v in values], np.float64)
                found.append(Scale(name, f"len({name})", lengths))
            found += _of_items(name, kind, values, known, best, text)
        if kind == "collection":
            found += [Scale(name, *one) for one in of_elements(name, values, deciding.tolist())]
        if kind == "text" and EMBEDDING in text:
            measures = weighed(name, values, classes, examples.runs, deciding, smallest)
            found += [Scale(name, *one) for one in measures]
    return found


def _kind(name: str, values: Sequence[Any], runs: Sequence[int]) -> str:
    """Return the type of a variable for people, empty if it is never known."""
    first: dict[str, int] = {}
    for value, run in zip(values, runs, strict=True):
        if value is not None:
            first.setdefault(_kind_of(value), run)
    if len(first) > 1:
        (one, run), (other, later) = list(first.items())[:2]
        raise RecordingError(
            f"{name} changes its type: {one} in run {run}, {other} in run {later}",
            accepted="a variable that is numeric, Boolean, text or a collection everywhere",
        )
    return next(iter(first), "")


def _kind_of(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "truth value"
    if isinstance(value, (int, float, np.number)):
        return "number"
    return "text" if isinstance(value, str) else "collection"


def _of_items(
    name: str,
    kind: str,
    values: Sequence[Any],
    known: NDArray[np.bool_],
    choose: Callable[[Sequence[tuple[Any, ...]]], list[Any]],
    text: Sequence[str],
) -> list[Flags]:
    found = []
    if kind == "collection":
        members = _members_of(values)
        # With an unknown element, NaN, it is not known what else is a member.
        known = known & np.array([all(item == item for item in row) for row in members], bool)
        members = [row if sure else () for row, sure in zip(members, known, strict=True)]
        best = choose(members)
        holds = [[item in row for item in best] for row in map(frozenset, members)]
        found.append(_flags(name, [f"{_literal(item)} in {name}" for item in best], holds, known))
    if kind == "text" and "value" in text:
        best = choose([() if value is None else (value,) for value in values])
        holds = [[item == value for item in best] for value in values]
        found.append(_flags(name, [f"{name} == {item!r}" for item in best], holds, known))
    if kind == "text" and "contains" in text:
        words = {v: tuple(set(re.findall(r"\w{2,}", v))) for v in set(values) if v is not None}
        best = choose([words.get(value, ()) for value in values])
        within = {value: [str(item) in value for item in best] for value in words}
        none = [False] * len(best)
        holds = [within.get(value, none) for value in values]
        found.append(_flags(name, [f"{item!r} in {name}" for item in best], holds, known))
    if kind == "text" and "pattern" in text:
        forms = {v: tuple(_patterns(v)) for v in set(values) if v is not None}
        best = choose([forms.get(value, ()) for value in values])[:MOST_PATTERNS]
        within = {value: [is_like(value, str(item)) for item in best] for value in forms}
        none = [False] * len(best)
        holds = [within.get(value, none) for value in values]
        found.append(_flags(name, [f"like({name}, {item!r})" for item in best], holds, known))
    return [flags for flags in found if flags.conditions]


def _patterns(text: str) -> set[str]:
    """Return forms that a text has: its digits left open, its folder, its ending, its host."""
    if len(text) > LONGEST_PATTERN or set("*?#\n") & set(text):
        return set()
    folder, _, file = text.rpartition("/")
    stem, _, ending = file.rpartition(".")
    _, at, host = text.rpartition("@")
    found = {re.sub("[0-9]+", "#", text)} - {text}
    found |= {f"{folder}/*"} if folder else set()
    found |= {f"*.{ending}"} if stem and re.fullmatch("[A-Za-z]{1,5}", ending) else set()
    return found | ({f"*@{host}"} if at and re.fullmatch(r"[\w.-]+", host) else set())


def _literal(item: Any) -> str:
    """Return a member of a collection as the language writes it."""
    return str(item).lower() if isinstance(item, bool) else repr(item)


def _flags(
    name: str, conditions: Sequence[str], holds: Sequence[Any], known: NDArray[np.bool_]
) -> Flags:
    shape = (len(known), len(conditions))
    return Flags(name, tuple(conditions), np.array(holds, dtype=bool).reshape(shape), known)


def _members_of(values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return what each collection may be asked to hold: texts, truth values, a few whole numbers.

    Numbers are measured, or they count something: that exactly this one is among them tells of the
    traces at hand alone. Only whole numbers of which there are few may be kinds of things.
    """
    rows = [() if value is None else _members(value) for value in values]
    items = {(type(item), item) for row in rows for item in row if item == item}
    whole = sum(kind is int for kind, _ in items)
    if whole <= MOST_CODES and not any(kind is float for kind, _ in items):
        return rows
    return [
        tuple(i for i in row if isinstance(i, (str, bool)) or i != i)  # NaN: it is not known
        for row in rows
    ]


def _members(value: Iterable[Any]) -> tuple[Any, ...]:
    items = value.tolist() if isinstance(value, np.ndarray) else value
    return tuple({item for item in items if isinstance(item, (str, bool, int, float))})


def _best_items(
    rows: Sequence[tuple[Any, ...]], runs: Sequence[int], classes: NDArray[np.int64], smallest: int
) -> list[Any]:
    """Return the items that tell most about the class, best first.

    What one trace alone has says which trace it is: it tells nothing about others.
    """
    frequent = Counter(item for row in rows for item in row if len(str(item)) <= MAX_TEXT)
    common = _in_several(rows, runs) if len({*runs}) > 1 else frequent.keys()
    listed = [
        (item, count)
        for item, count in frequent.most_common(MOST_COUNTED)
        if smallest <= count <= len(rows) - smallest and item in common
    ]
    if not listed:
        return []
    index = {item: i for i, (item, _) in enumerate(listed)}
    found = np.array(
        [(index[item], row) for row, items in enumerate(rows) for item in items if item in index]
    )
    pairs, counts = np.unique(
        np.stack([found[:, 0], classes[found[:, 1]]]), axis=1, return_counts=True
    )
    total = np.bincount(classes)
    inside = _entropies(pairs[0], counts, len(listed))
    # The examples without the item: all classes, those of the item taken off.
    whole = np.sum(xlog2x(total))
    outside = np.full(len(listed), whole)
    np.add.at(outside, pairs[0], xlog2x(total[pairs[1]] - counts) - xlog2x(total[pairs[1]]))
    rest = np.array([len(rows) - count for _, count in listed])
    remaining = inside + xlog2x(rest) - outside
    order = np.argsort(remaining, kind="stable")[:MOST_ITEMS]
    return [listed[i][0] for i in order]


def _in_several(rows: Sequence[tuple[Any, ...]], runs: Sequence[int]) -> set[Any]:
    """Return the items that more than one trace has."""
    first: dict[Any, int] = {}
    return {
        item
        for row, run in zip(rows, runs, strict=True)
        for item in row
        if first.setdefault(item, run) != run
    }


def xlog2x(counts: Any) -> NDArray[np.float64]:
    """Return ``x log2 x`` element by element, 0 where x is 0."""
    numbers = np.asarray(counts, dtype=np.float64)
    return np.asarray(numbers * np.log2(np.where(numbers > 0, numbers, 1.0)))


def _entropies(group: NDArray[Any], counts: NDArray[Any], groups: int) -> NDArray[np.float64]:
    """Return size times entropy, in bits, of each group of class counts, shape (groups,)."""
    size = np.bincount(group, counts, groups)
    return np.asarray(xlog2x(size) - np.bincount(group, xlog2x(counts), groups))
