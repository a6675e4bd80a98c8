"""Tree, trie of traces and process, linked so that one step or one split changes only its own part.

TriCEGAR's appendix B. A *handle* links a leaf of the tree, a state of the process and the endpoints
of the trie that are abstracted to them. Its invariants are:

- I1: every handle's leaf is a leaf of the tree and its vertex a state of the process, and the maps
  from leaf and vertex lead back to the handle;
- I2: every endpoint of a handle maps to it, and its concrete state is abstracted to its leaf;
- I3: each leaf and each vertex has exactly one handle;
- I4: the states of the process are exactly the vertices of the handles.

`LinkedAbstraction.check` tests them all; a step costs microseconds and does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from forewarn.errors import CheckingError
from forewarn.models.trie import NOWHERE, ROOT, Concrete, Trie
from forewarn.wings.trees.concrete import Condition
from forewarn.wings.trees.nodes import Leaf, Node, Split, leaves

Compile = Callable[[str], Condition]


@dataclass
class Handle:
    """A leaf, a state of the process, and the endpoints that are abstracted to them.

    `node` is the number of the leaf's node in the tree.
    """

    leaf: str
    vertex: int
    node: int
    endpoints: set[int] = field(default_factory=set)


class Ways(NamedTuple):
    """A node that was split: its condition, and the numbers of the nodes where it holds or not."""

    condition: str
    then: int
    otherwise: int


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


class LinkedAbstraction:
    """A tree, the trie of the traces, and the counts of the process that they make.

    `compile_condition` turns a condition of the tree into a function of a concrete state: true,
    false, or None where it is unknown.
    """

    def __init__(self, tree: Node, compile_condition: Compile) -> None:
        self.trie = Trie()
        self.counts: Counter[Edge] = Counter()
        self.by_leaf: dict[str, Handle] = {}
        self.by_vertex: dict[int, Handle] = {}
        self.undecided: set[int] = set()
        self._nodes: list[Leaf | Ways] = [Leaf("")]
        self._vertex_of: list[int] = [NOWHERE]
        self._compile = compile_condition
        self._conditions: dict[str, Condition] = {}
        self._next = 0
        waiting = [(tree, 0)]
        while waiting:
            node, number = waiting.pop()
            if isinstance(node, Split):
                then, otherwise = self._divide(number, node.condition)
                waiting += [(node.otherwise, otherwise), (node.then, then)]
            else:
                self._add_handle(node.name, number)

    @property
    def tree(self) -> Node:
        """The tree as it is now, built each time; of any depth."""
        built: dict[int, Node] = {}
        # Nodes stand behind the one that was split into them.
        for number in reversed(range(len(self._nodes))):
            node = self._nodes[number]
            built[number] = (
                Split(node.condition, built.pop(node.then), built.pop(node.otherwise))
                if isinstance(node, Ways)
                else node
            )
        return built[0]

    def _divide(self, number: int, condition: str) -> tuple[int, int]:
        """Put two nodes below one; return their numbers."""
        then = len(self._nodes)
        self._nodes[number] = Ways(condition, then, then + 1)
        self._nodes += [Leaf(""), Leaf("")]
        return then, then + 1

    def _add_handle(self, leaf: str, node: int) -> None:
        if leaf in self.by_leaf:
            raise CheckingError(f"two leaves are named {leaf!r}", accepted="each name once")
        handle = Handle(leaf, self._next, node)
        self._next += 1
        self._nodes[node] = Leaf(leaf)
        self.by_leaf[leaf] = self.by_vertex[handle.vertex] = handle

    def leaf_of(self, state: Concrete, below: int = 0) -> str | None:
        """Return the leaf of a concrete state; None where a condition on its path is unknown.

        The node `below` is known to be on its path.
        """
        node = self._nodes[below]
        while isinstance(node, Ways):
            outcome = self.condition(node.condition)(state)
            if outcome is None:
                return None
            node = self._nodes[node.then if outcome else node.otherwise]
        return node.name

    def condition(self, text: str) -> Condition:
        """Return what tells whether a condition holds in a concrete state."""
        found = self._conditions.get(text)
        if found is None:
            found = self._conditions[text] = self._compile(text)
        return found

    def vertex(self, endpoint: int) -> int | None:
        """Return the state of the process of an endpoint; None if it is not known, or the root."""
        vertex = self._vertex_of[endpoint]
        return None if vertex == NOWHERE else vertex

    def step(self, endpoint: int, action: str, state: Concrete) -> int:
        """Add one step of a run, from where it is (`ROOT` at first), and return where it is now."""
        there, new = self.trie.enter(endpoint, action, state)
        if new:
            self._vertex_of.append(NOWHERE)
            self._place(there)
        self._count(there, 1)
        return there

    def _place(self, endpoint: int, below: int = 0) -> None:
        leaf = self.leaf_of(self.trie.state[endpoint], below)
        if leaf is None:
            self._vertex_of[endpoint] = NOWHERE
            self.undecided.add(endpoint)
        else:
            handle = self.by_leaf[leaf]
            self._vertex_of[endpoint] = handle.vertex
            handle.endpoints.add(endpoint)

    def _count(self, endpoint: int, times: int) -> None:
        """Count the step that leads to an endpoint."""
        source, target = self._vertex_of[self.trie.parent[endpoint]], self._vertex_of[endpoint]
        if source != NOWHERE and target != NOWHERE:
            edge = Edge(source, self.trie.action[endpoint], target)
            self.counts[edge] += times
            if not self.counts[edge]:
                del self.counts[edge]

    def split(self, leaf: str, condition: str, then: str, otherwise: str) -> None:
        """Split a leaf by a condition; only its endpoints and their steps change."""
        handle = self.by_leaf.get(leaf)
        if handle is None:
            raise CheckingError(f"no leaf {leaf!r}", accepted=", ".join(self.by_leaf))
        taken = {name for name in (then, otherwise) if name != leaf and name in self.by_leaf}
        if taken or then == otherwise:
            raise CheckingError(f"leaf name {min(taken, default=then)!r}", accepted="two new names")
        moved = sorted(handle.endpoints)
        edges = dict.fromkeys(moved)
        for endpoint in moved:
            edges.update(dict.fromkeys(self.trie.following(endpoint)))
        for edge in edges:
            self._count(edge, -self.trie.runs[edge])
        del self.by_leaf[leaf], self.by_vertex[handle.vertex]
        for name, node in zip((then, otherwise), self._divide(handle.node, condition), strict=True):
            self._add_handle(name, node)
        for endpoint in moved:
            self._place(endpoint, handle.node)
        for edge in edges:
            self._count(edge, self.trie.runs[edge])

    def concretise(self, states: Sequence[int], actions: Sequence[str]) -> Divergence:
        """Look for a run from its start that goes through `states` by `actions` between them."""
        here = [e for e in self.trie.following(ROOT) if self._vertex_of[e] == states[0]]
        if not here:
            return Divergence(0, (), False)
        for step, (action, state) in enumerate(zip(actions, states[1:], strict=True), 1):
            following = [
                there
                for endpoint in here
                for there in self.trie.following(endpoint)
                if self.trie.action[there] == action and self._vertex_of[there] == state
            ]
            if not following:
                return Divergence(step, tuple(here), False)
            here = following
        return Divergence(len(states), tuple(here), True)

    def initial(self) -> Counter[int]:
        """Return how many runs began in each state of the process."""
        found = Counter[int]()
        for endpoint in self.trie.following(ROOT):
            found[self._vertex_of[endpoint]] += self.trie.runs[endpoint]
        del found[NOWHERE]
        return found

    def check(self) -> None:
        """Test the invariants I1 to I4, and the counts against the trie; raises CheckingError."""
        names = leaves(self.tree)
        _hold("I3: one handle for each leaf", sorted(names) == sorted(self.by_leaf))
        _hold("I3: one handle for each vertex", len(self.by_leaf) == len(self.by_vertex))
        for leaf, handle in self.by_leaf.items():
            _hold("I1: the map from the leaf leads back", handle.leaf == leaf)
            _hold("I1: the node is the leaf", self._nodes[handle.node] == Leaf(leaf))
            _hold("I1: the map from the vertex leads back", self.by_vertex[handle.vertex] is handle)
            for endpoint in handle.endpoints:
                vertex = self._vertex_of[endpoint]
                _hold("I2: an endpoint maps to its handle", vertex == handle.vertex)
                _hold("I2: abstracted to the leaf", self.leaf_of(self.trie.state[endpoint]) == leaf)
        placed = sum(len(handle.endpoints) for handle in self.by_leaf.values())
        _hold("I2: all endpoints are placed", placed + len(self.undecided) == len(self.trie))
        used = {vertex for edge in self.counts for vertex in (edge.state, edge.following)}
        _hold("I4: states of the process are vertices of handles", used <= self.by_vertex.keys())
        counted: Counter[Edge] = Counter()
        for endpoint in self.trie.endpoints():
            source, target = self._vertex_of[self.trie.parent[endpoint]], self._vertex_of[endpoint]
            if NOWHERE not in (source, target):
                edge = Edge(source, self.trie.action[endpoint], target)
                counted[edge] += self.trie.runs[endpoint]
        _hold("the counts are those of the trie", counted == self.counts)


def _hold(invariant: str, holds: bool) -> None:
    if not holds:
        raise CheckingError(f"{invariant}: does not hold", accepted="a structure that is linked")


def link(
    tree: Node, runs: Sequence[Sequence[tuple[str, Concrete]]], compile_condition: Compile
) -> LinkedAbstraction:
    """Return the linked structure of whole runs: states, each with the action that led there."""
    linked = LinkedAbstraction(tree, compile_condition)
    for run in runs:
        endpoint = ROOT
        for action, state in run:
            endpoint = linked.step(endpoint, action, state)
    return linked
