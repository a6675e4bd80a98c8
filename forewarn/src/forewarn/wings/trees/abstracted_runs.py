"""Runs in a trie, with the leaf of the tree at each of their moments; a split changes its own part.

TriCEGAR's appendix B, whose handles link a leaf of the tree, a state of the process and the
endpoints of the trie that are abstracted to them. Here one number does: that of the state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from forewarn.models.trie import NOWHERE, ROOT, Concrete, Trie
from forewarn.wings.trees.concrete import Condition
from forewarn.wings.trees.nodes import Leaf, Node, Split, leaves

Compile = Callable[[str], Condition]


class Edge(NamedTuple):
    """A state of the process, what was done in it, and the state that followed."""

    state: int
    action: str
    following: int


class Divergence(NamedTuple):
    """How far a path of the process was seen in one run, and where those runs are then."""

    step: int
    endpoints: tuple[int, ...]
    real: bool


class AbstractedRuns:
    """A tree, the trie of whole runs, and the process that they make.

    States of the process are numbers: `names` has the leaf of each, `numbers` that of each leaf
    there is, `state_of` that of each endpoint, `NOWHERE` if a condition is unknown there.
    `compile_condition` turns a condition into a function of a concrete state: true, false, or None
    where it is unknown. Runs are states, each with the action that led there; `groups` has for each
    endpoint what the runs through it belong to, by default each to its own.
    """

    def __init__(
        self,
        tree: Node,
        runs: Sequence[Sequence[tuple[str, Concrete]]],
        compile_condition: Compile,
        groups: Sequence[Hashable] | None = None,
    ) -> None:
        self.tree = tree
        self.trie = Trie()
        self.names = [*leaves(tree)]
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.state_of = [NOWHERE]
        self.groups: list[list[Hashable]] = [[]]
        self._compile = compile_condition
        self._conditions: dict[str, Condition] = {}
        for group, run in zip(groups or range(len(runs)), runs, strict=True):
            endpoint = ROOT
            for action, state in run:
                endpoint, new = self.trie.enter(endpoint, action, state)
                if new:
                    leaf = self.leaf_of(state)
                    self.state_of.append(NOWHERE if leaf is None else self.numbers[leaf])
                    self.groups.append([])
                self.groups[endpoint].append(group)

    def leaf_of(self, state: Concrete) -> str | None:
        """Return the leaf of a concrete state; None where a condition on its path is unknown."""
        node = self.tree
        while isinstance(node, Split):
            outcome = self.condition(node.condition)(state)
            if outcome is None:
                return None
            node = node.then if outcome else node.otherwise
        return node.name

    def condition(self, text: str) -> Condition:
        """Return what tells whether a condition holds in a concrete state."""
        found = self._conditions.get(text)
        if found is None:
            found = self._conditions[text] = self._compile(text)
        return found

    def endpoints(self, leaf: str) -> list[int]:
        """Return the endpoints that are abstracted to a leaf."""
        wanted = self.numbers[leaf]
        return [endpoint for endpoint, state in enumerate(self.state_of) if state == wanted]

    def counts(self) -> Counter[Edge]:
        """Return how often each step of the process was taken."""
        trie, found = self.trie, Counter[Edge]()
        for endpoint in trie.endpoints():
            source, target = self.state_of[trie.parent[endpoint]], self.state_of[endpoint]
            if NOWHERE not in (source, target):
                found[Edge(source, trie.action[endpoint], target)] += trie.runs[endpoint]
        return found

    def split(self, leaf: str, condition: str, then: str, otherwise: str) -> None:
        """Split a leaf by a condition into two with names of their own."""
        moved = self.endpoints(leaf)
        self.tree = _replaced(self.tree, leaf, Split(condition, Leaf(then), Leaf(otherwise)))
        del self.numbers[leaf]
        for name in (then, otherwise):
            self.numbers[name] = len(self.names)
            self.names.append(name)
        states = {True: self.numbers[then], False: self.numbers[otherwise], None: NOWHERE}
        for endpoint in moved:
            self.state_of[endpoint] = states[self.condition(condition)(self.trie.state[endpoint])]

    def concretise(self, states: Sequence[int], actions: Sequence[str]) -> Divergence:
        """Look for a run from its start that goes through `states` by `actions` between them."""
        here = [e for e in self.trie.following(ROOT) if self.state_of[e] == states[0]]
        if not here:
            return Divergence(0, (), False)
        for step, (action, state) in enumerate(zip(actions, states[1:], strict=True), 1):
            following = [
                there
                for endpoint in here
                for there in self.trie.following(endpoint)
                if self.trie.action[there] == action and self.state_of[there] == state
            ]
            if not following:
                return Divergence(step, tuple(here), False)
            here = following
        return Divergence(len(states), tuple(here), True)

    def initial(self) -> Counter[int]:
        """Return how many runs began in each state of the process."""
        found = Counter[int]()
        for endpoint in self.trie.following(ROOT):
            found[self.state_of[endpoint]] += self.trie.runs[endpoint]
        del found[NOWHERE]
        return found


def _replaced(node: Node, leaf: str, by: Node) -> Node:
    if isinstance(node, Leaf):
        return by if node.name == leaf else node
    then, otherwise = _replaced(node.then, leaf, by), _replaced(node.otherwise, leaf, by)
    return Split(node.condition, then, otherwise)
