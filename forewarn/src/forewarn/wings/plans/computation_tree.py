"""Executions of a task merged into a computation tree, where they agree from the start.

A node is what was seen so far; executions with the same states share it. An execution that ends
stays in its last state for ever, as is usual for CTL on finite runs.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.checking.ctl import CtlFormula, Mask, evaluate
from forewarn.errors import CheckingError

if TYPE_CHECKING:
    from forewarn.signals.clock import Clock

MOST_NODES = 5_000_000

Indices = NDArray[np.int64]
Names = Callable[[str, Indices], Mask]
"""Tells for a name in a formula in which of some states it holds."""


class Tree(NamedTuple):
    """A computation tree with n nodes, each an element of the arrays, shape (n,).

    A parent comes before its children; it is -1 where executions begin. `visits` and `ends` count
    the executions that pass a node, and that end there.
    """

    parent: Indices
    state: Indices
    visits: Indices
    ends: Indices

    @property
    def executions(self) -> int:
        """How many executions were merged."""
        return int(self.ends.sum())


class TreeBuilder:
    """Merges executions one by one; what it holds grows with the nodes, not with the executions."""

    def __init__(self, most_nodes: int = MOST_NODES) -> None:
        self.most_nodes = most_nodes
        self._children: dict[tuple[int, int], int] = {}
        self._parent, self._state = array("q"), array("q")
        self._visits, self._ends = array("q"), array("q")
        self._first: dict[int, str] = {}

    def add(self, states: Iterable[int], name: str = "") -> int:
        """Merge one execution and return the node where it ends; an empty one has none, -1."""
        node = -1
        for state in states:
            key = node, state
            following = self._children.get(key)
            if following is None:
                following = len(self._parent)
                if following >= self.most_nodes:
                    raise CheckingError(
                        f"the tree has more than {self.most_nodes} nodes",
                        accepted="fewer executions, fewer or coarser names, or a greater limit",
                    )
                self._children[key] = following
                self._parent.append(node)
                self._state.append(state)
                self._visits.append(0)
                self._ends.append(0)
            node = following
            self._visits[node] += 1
        if node >= 0:
            self._ends[node] += 1
            self._first.setdefault(node, name)
        return node

    def tree(self) -> Tree:
        """Return the tree of what was merged so far."""
        parts = (self._parent, self._state, self._visits, self._ends)
        return Tree(*(np.array(part, dtype=np.int64) for part in parts))

    def first(self, node: int) -> str:
        """Return the name of the first execution that ended at a node."""
        return self._first.get(node, "")


def graph_of(tree: Tree) -> tuple[sparse.csr_matrix, Indices]:
    """Return the edges of a tree, and the state of each of their nodes.

    The first n nodes are those of the tree. Where executions end within it, one more node stays in
    that state: waiting there and going on later is nothing that any of them did.
    """
    n = len(tree.parent)
    inner = np.zeros(n, dtype=bool)
    inner[tree.parent[tree.parent >= 0]] = True
    stops = np.flatnonzero(inner & (tree.ends > 0))
    extra = n + np.arange(len(stops))
    leaves = np.flatnonzero(~inner)
    children = np.flatnonzero(tree.parent >= 0)
    rows = np.concatenate([tree.parent[children], stops, extra, leaves])
    columns = np.concatenate([children, extra, extra, leaves])
    size = n + len(stops)
    edges = sparse.csr_matrix(
        (np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(size, size)
    )
    return edges, np.concatenate([tree.state, tree.state[stops]])


def holds_at_the_start(
    tree: Tree, formula: CtlFormula, names: Names, clock: Clock | None = None
) -> bool:
    """Tell whether a formula holds wherever executions begin."""
    edges, states = graph_of(tree)
    found = evaluate(formula, lambda name: names(name, states), edges, clock)
    return bool(found[: len(tree.parent)][tree.parent < 0].all())


class Branch(NamedTuple):
    """One way through a tree; `executions` went exactly this way."""

    end: int
    states: Indices
    executions: int


def branches(tree: Tree) -> Iterator[Branch]:
    """Yield every way that executions went, each once."""
    for end in np.flatnonzero(tree.ends > 0).tolist():
        path, node = [], end
        while node >= 0:
            path.append(tree.state[node])
            node = int(tree.parent[node])
        yield Branch(end, np.array(path[::-1], dtype=np.int64), int(tree.ends[end]))


def judge_branches(
    tree: Tree, formula: CtlFormula, names: Names, clock: Clock | None = None
) -> Iterator[tuple[Branch, bool]]:
    """Yield each branch and whether the formula holds of it alone."""
    kept = list(branches(tree))
    states, edges, starts = _side_by_side(kept)
    found = evaluate(formula, lambda name: names(name, states), edges, clock)
    yield from zip(kept, found[starts].tolist(), strict=True)


def _side_by_side(kept: list[Branch]) -> tuple[Indices, sparse.csr_matrix, Indices]:
    states = np.concatenate([branch.states for branch in kept])
    lengths = np.array([len(branch.states) for branch in kept])
    ends = np.cumsum(lengths) - 1
    following = np.arange(1, len(states) + 1)
    following[ends] = ends
    ones = np.ones(len(states), dtype=np.int8)
    edges = sparse.csr_matrix((ones, (np.arange(len(states)), following)))
    return states, edges, ends - lengths + 1


def breaks_at(
    branch: Branch, formula: CtlFormula, names: Names, clock: Clock | None = None
) -> int | None:
    """Return the position at which a branch breaks ``AG p``, or a conjunction of such, first.

    None if the formula is of another form, or holds.
    """
    states, edges, _ = _side_by_side([branch])
    if formula.operator == "&":
        found = [breaks_at(branch, part, names, clock) for part in formula.operands]
        return min((at for at in found if at is not None), default=None)
    if formula.operator not in ("AG", "EG") or formula.interval is not None:
        return None
    inner = evaluate(formula.operands[0], lambda name: names(name, states), edges, clock)
    broken = np.flatnonzero(~inner)
    return int(broken[0]) if len(broken) else None
