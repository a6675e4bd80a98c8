"""Which condition splits a leaf: the one that best predicts what follows, tried on other runs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from forewarn.expressions.syntax import parse_expression
from forewarn.models.trie import Concrete
from forewarn.wings.trees.abstracted_runs import AbstractedRuns
from forewarn.wings.trees.candidates import Examples
from forewarn.wings.trees.growth import Choice, Grower, Growth
from forewarn.wings.trees.nodes import MAX_DEPTH, paths
from forewarn.wings.trees.refined import BEFORE, Trace

MOST_EXAMPLES = 20_000


class LeafSplitter:
    """Finds splits of the leaves of a tree as it is when asked, and tries them on held-out runs."""

    def __init__(
        self,
        runs: AbstractedRuns,
        variables: Sequence[str],
        held_out: Sequence[Trace],
    ) -> None:
        self._runs = runs
        self._variables = tuple(variables)
        self._held_out = held_out

    def best(self, leaf: str, growth: Growth) -> Choice | None:
        """Return the condition that best predicts what follows the states of a leaf."""
        trie = self._runs.trie
        rows: list[tuple[Concrete, Hashable, Hashable]] = []
        for endpoint in self._runs.endpoints(leaf):
            for there in trie.following(endpoint):
                edge = (trie.action[there], self._runs.state_of[there])
                groups = self._runs.groups[there]
                rows += [(trie.state[endpoint], edge, group) for group in groups]
            if len(rows) > MOST_EXAMPLES:
                break
        states, kinds, owners = zip(*rows, strict=True) if rows else ((), (), ())
        if len({*kinds}) < 2:
            return None
        known = self._known(leaf)
        columns = zip(self._variables, zip(*states, strict=True), strict=False)
        asked = {name: column for name, column in columns if name in known}
        number = {group: i for i, group in enumerate(dict.fromkeys(owners))}
        numbers = [number[group] for group in owners]
        examples = Examples(asked, kinds, numbers)
        path = self._path(leaf)
        if len(path) >= MAX_DEPTH or not asked:
            return None
        used = [] if growth.reuse else [n for text in path for n in parse_expression(text).names]
        return Grower(examples, growth).best_split(np.arange(len(rows)), used)

    def _known(self, leaf: str) -> set[str]:
        """Return the variables that are known at all moments of a leaf.

        A split on another one loses the moments at which it is unknown, and their steps: a bound
        would then hold only because those steps are missing.
        """
        trie = self._runs.trie
        states = [trie.state[endpoint] for endpoint in self._runs.endpoints(leaf)]
        columns = zip(self._variables, zip(*states, strict=True), strict=False)
        return {name for name, column in columns if all(v is not None and v == v for v in column)}

    def _path(self, leaf: str) -> list[str]:
        """Return the conditions of the tree on the path to a leaf."""
        [path] = [path for found, path in paths(self._runs.tree) if found.name == leaf]
        return [text for text, _ in path if text not in BEFORE]

    def helps(self, leaf: str, condition: str) -> bool:
        """Tell whether a split predicts better how held-out runs go on: action and next leaf."""
        runs, trie = self._runs, self._runs.trie
        says = runs.condition(condition)
        whole: Counter[Hashable] = Counter()
        parts: dict[bool | None, Counter[Hashable]] = {}
        for endpoint in runs.endpoints(leaf):
            part = parts.setdefault(says(trie.state[endpoint]), Counter())
            for there in trie.following(endpoint):
                edge = (trie.action[there], runs.leaf_of(trie.state[there]))
                whole[edge] += trie.runs[there]
                part[edge] += trie.runs[there]
        if None in parts:  # moments at which it is unknown would be lost
            return False
        before = after = 0.0
        for state, action, following in self._tested():
            if runs.leaf_of(state) == leaf:
                edge, outcome = (action, runs.leaf_of(following)), says(state)
                before += _bits(whole, edge)
                after += _bits(whole if outcome is None else parts.get(outcome, whole), edge)
        return after < before - 1e-9

    def _tested(self) -> Iterator[tuple[Concrete, str, Concrete]]:
        for run in self._held_out:
            for (_, state), (action, following) in itertools.pairwise(run):
                yield state, action, following

    def loss(self) -> float:
        """Return the logarithmic loss (bits) of the actions of held-out runs; NaN without any."""
        counts: dict[str | None, Counter[Hashable]] = {}
        for edge, number in self._runs.counts().items():
            leaf = self._runs.names[edge.state]
            counts.setdefault(leaf, Counter())[edge.action] += number
        bits = [
            _bits(counts.get(self._runs.leaf_of(state), Counter()), action)
            for state, action, _ in self._tested()
        ]
        return float(np.mean(bits)) if bits else float("nan")

    def names(self, leaf: str) -> tuple[str, str]:
        """Return the names of the leaves that a leaf is split into."""
        stem = leaf
        while {f"{stem}_y", f"{stem}_n"} & self._runs.numbers.keys():
            stem += "_"
        return f"{stem}_y", f"{stem}_n"


def _bits(counts: Counter[Hashable], kind: Hashable) -> float:
    """Return the logarithmic loss of what followed, with mass for what was never seen."""
    total, kinds = sum(counts.values()), len(counts)
    return float(-np.log2((counts[kind] + 0.5) / (total + 0.5 * (kinds + 1))))
