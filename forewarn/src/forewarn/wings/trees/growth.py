"""Predicate trees learned from traces: greedily, by information gain (TriCEGAR 4.1.3, A.3).

A tree grows best first: of all leaves, the one whose split takes away most uncertainty about the
class is split next. Cut off at any number of leaves it is the tree that a limit of so many would
have given, so one growth serves the choice of the size by cross-validation.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import ConfigError
from forewarn.learning.thresholds import thresholds_between
from forewarn.wings.trees.candidates import (
    TEXT_KINDS,
    Examples,
    Flags,
    Scale,
    Truth,
    candidates,
    xlog2x,
)
from forewarn.wings.trees.nodes import MAX_DEPTH, MAX_LEAVES, Leaf, Node, Split

Rows = NDArray[np.int64]

MAX_THRESHOLDS = 256


@dataclass(frozen=True)
class Growth:
    """How a tree grows.

    `gain` is the least information gain of a split, in bits for each example of the leaf (gamma);
    `depth` limits conditions on a path, `leaf_size` the examples of a leaf from below. `reuse` says
    whether a variable may be asked about twice on a path; the paper's trees do not. Thresholds of a
    number are all midpoints of neighbouring values, or `thresholds` quantiles.
    """

    gain: float = 0.0
    depth: int = MAX_DEPTH
    leaf_size: int = 1
    leaves: int = 64
    reuse: bool = True
    thresholds: int = 64
    text: tuple[str, ...] = TEXT_KINDS

    def __post_init__(self) -> None:
        limits = (
            ("gain", self.gain, 0, np.inf),
            ("depth", self.depth, 1, MAX_DEPTH),
            ("leaf size", self.leaf_size, 1, np.inf),
            ("leaves", self.leaves, 1, MAX_LEAVES),
            ("thresholds", self.thresholds, 1, MAX_THRESHOLDS),
        )
        for name, value, low, high in limits:
            if not low <= value <= high:
                top = "" if high == np.inf else f" to {high}"
                raise ConfigError(f"{name} {value}", accepted=f"{low}{top or ' or more'}")


class Choice(NamedTuple):
    """The best split of a leaf, with its gain in bits for each example of the leaf.

    `truth`, shape (n,), is what the condition says of all examples: 1, 0, or -1 where it is
    unknown.
    """

    gain: float
    variable: str
    condition: str
    truth: Truth


@dataclass
class _Part:
    """A node while the tree grows; without a choice it is a leaf."""

    rows: Rows
    used: tuple[str, ...] = ()
    choice: Choice | None = None
    parts: list[_Part] = field(default_factory=list)


class Grown(NamedTuple):
    """A learned tree, whose leaves are named ``s0``, ``s1``, ... from left to right.

    `counts` are the examples of each class in each leaf, the most frequent class first; `splits`
    stand in the order in which they were made; `undecided` examples reach no leaf.
    """

    tree: Node
    counts: dict[str, dict[Any, int]]
    splits: tuple[Choice, ...]
    undecided: int


class Grower:
    """Grows trees over one set of examples; `rows` as in `candidates`."""

    def __init__(self, examples: Examples, growth: Growth, rows: Rows | None = None) -> None:
        names = list(dict.fromkeys(examples.classes))
        number = {name: i for i, name in enumerate(names)}
        self.names = names
        self.classes = np.array([number[name] for name in examples.classes], dtype=np.int64)
        self.growth = growth
        self._asked = candidates(examples, self.classes, growth.leaf_size, growth.text, rows)
        self._one_hot = np.zeros((len(self.classes), len(names)))
        self._one_hot[np.arange(len(self.classes)), self.classes] = 1.0

    def best_split(self, rows: Rows, used: Sequence[str] = ()) -> Choice | None:
        """Return the split of some examples with most gain; None if none has more than the least.

        Variables that are `used` are not asked about.
        """
        best: tuple[float, Scale | Flags, Any] | None = None
        for asked in self._asked:
            if asked.variable in used:
                continue
            found = (
                self._best_threshold(asked, rows)
                if isinstance(asked, Scale)
                else self._best_flag(asked, rows)
            )
            # Strictly more: of equals the first stands, in the order of the variables.
            if found is not None and (best is None or found[0] > best[0] + 1e-12):
                best = (found[0], asked, found[1])
        if best is None or best[0] <= max(self.growth.gain, 1e-12):
            return None
        gain, asked, which = best
        return Choice(gain, asked.variable, asked.condition(which), asked.truth(which))

    def _best_threshold(self, asked: Scale, rows: Rows) -> tuple[float, float] | None:
        values = asked.values[rows]
        known = ~np.isnan(values)
        values, classes = values[known], self.classes[rows[known]]
        thresholds = thresholds_between(values, self.growth.thresholds)
        if not len(thresholds):
            return None
        # Examples above a threshold are those of the bins behind it.
        bins = np.searchsorted(thresholds, values, side="left")
        size = len(self.names)
        table = np.bincount(bins * size + classes, minlength=(len(thresholds) + 1) * size)
        below = np.cumsum(table.reshape(-1, size), axis=0)[:-1]
        gains = self._gains(below, np.bincount(classes, minlength=size), len(rows))
        place = int(np.argmax(gains))
        return None if gains[place] <= 0 else (float(gains[place]), float(thresholds[place]))

    def _best_flag(self, asked: Flags, rows: Rows) -> tuple[float, int] | None:
        rows_known = rows[asked.known[rows]]
        if not len(rows_known):
            return None
        one_hot = self._one_hot[rows_known]
        inside = asked.holds[rows_known].T.astype(np.float64) @ one_hot
        gains = self._gains(inside, one_hot.sum(axis=0), len(rows))
        place = int(np.argmax(gains))
        return None if gains[place] <= 0 else (float(gains[place]), place)

    def _gains(self, part: Any, whole: Any, examples: int) -> NDArray[np.float64]:
        """Return the gain of cutting `part`, shape (p, c), off `whole`; 0 where it is too small.

        What is unknown tells nothing: the gain is weighed by the share of known examples.
        """
        inside, total = part.sum(axis=1), float(whole.sum())
        outside = total - inside
        remaining = (
            xlog2x(inside)
            - xlog2x(part).sum(axis=1)
            + xlog2x(outside)
            - xlog2x(whole - part).sum(axis=1)
        )
        gains = (xlog2x(total) - xlog2x(whole).sum() - remaining) / examples
        small = np.minimum(inside, outside) < self.growth.leaf_size
        gains[small] = 0.0
        return np.asarray(gains)

    def splits(self, root: _Part) -> Iterator[_Part]:
        """Split parts, best first, and yield each when it has been split."""
        order = count()
        waiting: list[tuple[float, int, _Part, Choice]] = []

        def consider(part: _Part, depth: int) -> None:
            if depth >= self.growth.depth:
                return
            choice = self.best_split(part.rows, () if self.growth.reuse else part.used)
            if choice is not None:
                heapq.heappush(waiting, (-choice.gain * len(part.rows), next(order), part, choice))

        depths = {id(root): 0}
        consider(root, 0)
        leaves = 1
        while waiting and leaves < self.growth.leaves:
            *_, part, choice = heapq.heappop(waiting)
            part.choice = choice
            used = (*part.used, choice.variable)
            truth = choice.truth[part.rows]
            part.parts = [_Part(part.rows[truth == outcome], used) for outcome in (1, 0)]
            leaves += 1
            for child in part.parts:
                depths[id(child)] = depths[id(part)] + 1
                consider(child, depths[id(child)])
            yield part

    def grow(self, rows: Rows | None = None) -> Grown:
        """Return the tree of some examples, of all by default."""
        root = _Part(np.arange(len(self.classes)) if rows is None else rows)
        made = [part.choice for part in self.splits(root) if part.choice is not None]
        counts: dict[str, dict[Any, int]] = {}
        tree = self._named(root, counts)
        decided = sum(sum(classes.values()) for classes in counts.values())
        return Grown(tree, counts, tuple(made), len(root.rows) - decided)

    def _named(self, part: _Part, counts: dict[str, dict[Any, int]]) -> Node:
        if part.choice is not None:
            then, otherwise = (self._named(child, counts) for child in part.parts)
            return Split(part.choice.condition, then, otherwise)
        name = f"s{len(counts)}"
        numbers = np.bincount(self.classes[part.rows], minlength=len(self.names))
        order = np.argsort(-numbers, kind="stable")
        counts[name] = {self.names[i]: int(numbers[i]) for i in order if numbers[i]}
        return Leaf(name)


def learn_tree(examples: Examples, growth: Growth) -> Grown:
    """Learn a predicate tree; raises RecordingError if a variable changes its type."""
    return Grower(examples, growth).grow()


class Size(NamedTuple):
    """A number of leaves, the mean logarithmic loss on held-out traces and its standard error.

    Both are in bits an example.
    """

    leaves: int
    loss: float
    error: float


def choose_size(
    examples: Examples,
    growth: Growth,
    folds: int = 5,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[int, list[Size]]:
    """Choose the number of leaves by cross-validation over whole traces; return it, and all losses.

    The smallest tree counts whose loss is within one standard error of the least (Breiman's rule).
    A trace is never both learned from and predicted. `progress` gets how many parts were predicted,
    and of how many.
    """
    runs = np.asarray(examples.runs)
    different = np.unique(runs)
    folds = min(folds, len(different))
    if folds < 2:
        raise ConfigError("one trace", accepted="two traces or more to choose the size by")
    fold = np.searchsorted(different, runs) % folds
    losses = np.zeros((growth.leaves, len(different)))
    for held in range(folds):
        train, test = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
        losses += _held_out(Grower(examples, growth, train), train, test, runs)
        if progress is not None:
            progress(held + 1, folds)
    steps = np.bincount(np.searchsorted(different, runs))
    mean = losses.sum(axis=1) / steps.sum()
    deviation = losses - mean[:, np.newaxis] * steps
    error = (
        np.sqrt((deviation**2).sum(axis=1) * len(different) / (len(different) - 1)) / steps.sum()
    )
    least = int(np.argmin(mean))
    chosen = int(np.flatnonzero(mean <= mean[least] + error[least])[0]) + 1
    sizes = [Size(i + 1, float(mean[i]), float(error[i])) for i in range(growth.leaves)]
    return chosen, sizes


def _held_out(grower: Grower, train: Rows, test: Rows, runs: NDArray[Any]) -> NDArray[np.float64]:
    """Return the loss of the test examples by number of leaves and trace, shape (leaves, runs)."""
    different = np.unique(runs)
    place = np.searchsorted(different, runs)
    loss = np.zeros((grower.growth.leaves, len(different)))
    root = _Part(train)
    tested: dict[int, Rows] = {id(root): test}

    def lost(rows: Rows, held: Rows) -> NDArray[np.float64]:
        size = len(grower.names)
        numbers = np.bincount(grower.classes[rows], minlength=size) + 1.0 / size
        bits = -np.log2(numbers[grower.classes[held]] / numbers.sum())
        return np.asarray(np.bincount(place[held], bits, len(different)), dtype=np.float64)

    loss[:] = lost(train, test)
    for leaves, part in enumerate(grower.splits(root), 1):
        assert part.choice is not None
        held = tested.pop(id(part))
        outcome = part.choice.truth[held]
        then, otherwise = part.parts
        tested[id(then)], tested[id(otherwise)] = held[outcome == 1], held[outcome == 0]
        # Where the condition is unknown, the leaf before goes on to predict.
        loss[leaves:] += (
            lost(then.rows, held[outcome == 1])
            + lost(otherwise.rows, held[outcome == 0])
            + lost(part.rows, held[outcome == -1])
            - lost(part.rows, held)
        )
    return loss
