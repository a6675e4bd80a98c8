"""What each group of recordings has counted, and each of its recordings by itself."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.learning.counting import TransitionCounter, count_matrix
from forewarn.learning.recording_report import RecordingReport
from forewarn.models.counts import CountModel, Provenance
from forewarn.models.process import ordered
from forewarn.states.interface import StateSpace

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GroupTable:
    """Transitions of each recording, in the order of their digests.

    `groups`: names of the groups, sorted: periods follow each other.
    `member` (shape (r,)): the group of each recording.
    `row`, `column` (shape (c,)): the state and the next state of each kind of transition: positions
        in a model.
    `counts` (shape (r, c)): how often each recording has each.
    """

    groups: tuple[str, ...]
    member: Ints
    row: Ints
    column: Ints
    counts: sparse.csr_matrix

    @cached_property
    def by_group(self) -> Ints:
        """Transitions of each group, shape (g, c)."""
        marks = sparse.csr_matrix(
            (np.ones(len(self.member), dtype=np.int64), (self.member, np.arange(len(self.member)))),
            shape=(len(self.groups), len(self.member)),
        )
        return np.asarray((marks @ self.counts).todense(), dtype=np.int64)


@dataclass
class _Group:
    """What a group has counted so far."""

    total: TransitionCounter
    provenance: list[Provenance] = field(default_factory=list)


class GroupCounts:
    """Adds up recordings by group; memory grows by some bytes for each kind of transition of each.

    `vocabulary`: the states of the abstraction.
    """

    def __init__(self, vocabulary: StateSpace) -> None:
        self._vocabulary = vocabulary
        self._groups: dict[str, _Group] = {}
        self._kinds: dict[tuple[int, int], int] = {}
        self._members: list[tuple[str, str]] = []
        self._ends = array("q", [0])
        self._places, self._numbers = array("i"), array("q")

    def add(self, group: str, report: RecordingReport) -> None:
        """Add what a recording gave, whose counts are still here."""
        found = self._groups.setdefault(group, _Group(TransitionCounter(self._vocabulary)))
        found.total.include([report.counts])
        found.provenance.append(report.provenance)
        for kind, number in report.counts.transitions.items():
            self._places.append(self._kinds.setdefault(kind, len(self._kinds)))
            self._numbers.append(number)
        self._ends.append(len(self._places))
        self._members.append((report.provenance.digest, group))

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups, sorted."""
        return tuple(sorted(self._groups))

    def table(self, index: Mapping[int, int]) -> GroupTable:
        """Return the transitions of each recording over the positions of states in `index`."""
        names = self.groups
        order = sorted(range(len(self._members)), key=self._members.__getitem__)
        counts = sparse.csr_matrix(
            (
                np.array(self._numbers, dtype=np.int64),
                np.array(self._places, dtype=np.int32),
                np.array(self._ends, dtype=np.int64),
            ),
            shape=(len(self._members), len(self._kinds)),
        )
        kinds = sorted((index[i], index[j], place) for (i, j), place in self._kinds.items())
        found = np.array(kinds, dtype=np.int64).reshape(-1, 3)
        member = [names.index(self._members[at][1]) for at in order]
        return GroupTable(
            names,
            np.array(member, dtype=np.int64),
            found[:, 0],
            found[:, 1],
            sparse.csr_matrix(counts[order][:, found[:, 2]]),
        )

    def model(self, group: str, fleet: CountModel) -> CountModel:
        """Return the counts of a group over the states of the model of all recordings."""
        found = self._groups[group]
        counted = found.total.result
        digests = {source.digest or source.recording for source in found.provenance}
        return replace(
            fleet,
            counts=count_matrix(Counter(counted.transitions), fleet.index),
            starts=np.array([counted.starts[state] for state in fleet.states], dtype=np.int64),
            provenance=tuple(found.provenance),
            intervened=counted.intervened,
            recalibration=(),
            steps=ordered(counted.steps),
            shards=tuple(shard for shard in fleet.shards if shard.recording in digests),
            estimates=(),
        )
