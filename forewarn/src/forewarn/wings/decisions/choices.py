"""Graph analysis of decision processes: who can be made to reach whom, and end components."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from forewarn.checking.reachability import Certain

if TYPE_CHECKING:
    from forewarn.models.process import DecisionProcess, Mask

Choices = NDArray[np.int64]


class Attraction(NamedTuple):
    """States that are drawn towards a goal, which is among them, shape (n,).

    `choice`, shape (n,), leads a step nearer; -1 in the goal and elsewhere.
    """

    states: Mask
    choice: Choices


class ChoiceGraph:
    """Edges of a decision process in both directions; each analysis is linear in their number."""

    def __init__(self, process: DecisionProcess) -> None:
        self.process = process
        pattern = process.pattern
        self._ways = np.diff(process.groups)
        backward = sparse.csc_matrix(pattern)
        self._start, self._choices = backward.indptr, backward.indices

    def _entering(self, states: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the choices with one of `states` among their successors, each once."""
        first, length = self._start[states], np.diff(self._start)[states]
        if states.size == 1:
            return np.asarray(self._choices[first[0] : first[0] + length[0]], dtype=np.int64)
        offsets = np.repeat(first - np.cumsum(length) + length, length)
        return np.asarray(
            np.unique(self._choices[offsets + np.arange(offsets.size)]), dtype=np.int64
        )

    def attract(
        self, goal: Mask, through: Mask, allowed: Mask | None = None, *, forced: bool = False
    ) -> Attraction:
        """Return the states of `through` that may reach `goal`, or that cannot but approach it.

        Only choices that are `allowed` may be taken. `forced` asks for the states all of whose
        choices have a successor that is drawn already, in place of one of them.
        """
        owner = self.process.owner
        reached, choice = goal.copy(), np.full(goal.size, -1, dtype=np.int64)
        left = self._ways.copy()
        done = np.zeros(owner.size, dtype=bool) if allowed is None else ~allowed
        frontier = np.flatnonzero(goal)
        while frontier.size:
            touched = self._entering(frontier)
            touched = touched[~done[touched]]
            done[touched] = True
            owners = owner[touched]
            np.subtract.at(left, owners, 1)
            fresh = through[owners] & ~reached[owners]
            if forced:
                fresh &= left[owners] == 0
            # The first choice among equals, so that the answer does not depend on the numbering.
            choice[owners[fresh][::-1]] = touched[fresh][::-1]
            frontier = np.unique(owners[fresh])
            reached[frontier] = True
        return Attraction(reached, choice)

    def certain_max(self, targets: Mask, through: Mask) -> tuple[Certain, Choices]:
        """Return where the greatest probability is 0 and where it is 1, and how to attain the 1.

        The 1 is the greatest set whose states can approach the targets by choices that never
        leave it (de Alfaro 1997).
        """
        through = through & ~targets
        possible = self.attract(targets, through).states
        one = possible
        while True:
            stays = ~self.process.touches(~one)
            inner = self.attract(targets, through & one, stays)
            if (inner.states == one).all():
                return Certain(~possible, one), inner.choice
            one = inner.states

    def certain_min(self, targets: Mask, through: Mask) -> Certain:
        """Return where the least probability is 0 and where it is 1."""
        through = through & ~targets
        zero = ~self.attract(targets, through, forced=True).states
        return Certain(zero, ~self.attract(zero, ~targets).states)

    def end_components(self, within: Mask) -> NDArray[np.int64]:
        """Return the number of each state's maximal end component, -1 without, shape (n,).

        An end component is a set of states in which some policy stays for ever and gets everywhere
        (de Alfaro 1997, algorithm 3.1).
        """
        pattern, owner = self.process.pattern, self.process.owner
        label = np.where(within, 0, -1)
        coo = pattern.tocoo()
        while True:
            inside = label[owner] >= 0
            leaving = (label[coo.col] != label[owner[coo.row]]) & (coo.data > 0)
            inside[coo.row[leaving]] = False
            kept = inside[coo.row]
            edges = sparse.csr_matrix(
                (np.ones(int(kept.sum())), (owner[coo.row[kept]], coo.col[kept])),
                shape=(label.size, label.size),
            )
            _, parts = csgraph.connected_components(edges, directed=True, connection="strong")
            alive = np.zeros(label.size, dtype=bool)
            alive[owner[inside]] = True
            following = np.where(alive, parts, -1)
            if (alive == (label >= 0)).all() and _same_parts(label, following):
                return _renumbered(following)
            label = following


def _same_parts(one: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    pairs = np.unique(np.stack([one, other]), axis=1).shape[1]
    return bool(pairs == np.unique(one).size == np.unique(other).size)


def _renumbered(label: NDArray[np.int64]) -> NDArray[np.int64]:
    found, numbers = np.unique(label, return_inverse=True)
    return np.asarray(numbers.reshape(-1) - int(found[0] < 0), dtype=np.int64)
