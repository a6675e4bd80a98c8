"""What one recording gives to a model: the shard of it that is kept, and that models add up."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from forewarn.learning.counting import Counts
from forewarn.models.counts import Provenance
from forewarn.models.run_ends import RunEnd
from forewarn.models.shards import Outcomes, PropertyKey
from forewarn.signals.snapshots import Snapshot
from forewarn.states.abstraction import Abstraction
from forewarn.states.interface import Observed

NOTHING: Counter[Any] = Counter()
"""In the place of counts that are gone, one for all recordings: there may be millions."""


class OutcomeObserver(Protocol):
    """Watches a recording while it is counted, and tells what followed its moments."""

    def add(self, snapshot: Snapshot, observation: Observed) -> None:
        """Take in a moment that counts, and those that repeat it, and what is seen of it."""

    def result(self) -> ObservedOutcomes:
        """Return what followed, once the recording is over."""


class ObservedOutcomes(NamedTuple):
    """What a watcher has seen; states are positions in `codes`.

    `outcomes`: what followed, for properties whose risk needs it.
    `ends`: how the runs of each property end.
    """

    codes: Sequence[int]
    outcomes: Mapping[PropertyKey, Outcomes]
    ends: Mapping[str, tuple[RunEnd, ...]]


class OutcomeObservers(Protocol):
    """Makes the watcher of each recording."""

    @property
    def key(self) -> str:
        """A text that identifies the watchers: where it is the same, they tell the same."""

    def __call__(self, abstraction: Abstraction) -> OutcomeObserver:
        """Return a watcher of one recording, which is read through `abstraction`."""


@dataclass(frozen=True)
class RecordingReport:
    """What one recording gave.

    `inactive`, `invalid`: ticks outside `active_when`, and ticks in a state that a constraint
        excludes.
    `stale`: ticks at which each signal was unknown because it was old or absent.
    `failures`: reasons why values are unknown, with the number of ticks.
    `watched`: what followed its moments, if outcomes were observed.
    `whole`: whether all its counts are here; not once they were added up (`summed`).
    `group`: name of the group of recordings that it belongs to; empty if it is in none. A store
        does not keep it: it may change.
    """

    provenance: Provenance
    counts: Counts
    inactive: int = 0
    invalid: int = 0
    stale: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    warnings: tuple[str, ...] = ()
    watched: ObservedOutcomes | None = None
    whole: bool = True
    group: str = ""

    @property
    def likeness(self) -> str:
        """A digest of length and counts; empty if nothing was counted."""
        counts, source = self.counts, self.provenance
        if not counts.transitions:
            return ""
        parts = (counts.transitions, counts.triples, counts.starts, counts.steps)
        content = (source.duration, counts.ticks, *(sorted(part.items()) for part in parts))
        return hashlib.sha256(repr(content).encode()).hexdigest()

    def summed(self) -> RecordingReport:
        """Return what is still to be known of a recording when its counts have been added up.

        Where its moments were watched, the model keeps its transitions by themselves.
        """
        counts = self.counts._replace(triples=NOTHING, starts=NOTHING, steps=NOTHING)
        if self.watched is None or not self.watched.outcomes:
            counts = counts._replace(transitions=NOTHING)
        counts = counts._replace(refused=counts.refused or NOTHING)
        return replace(
            self,
            counts=counts,
            stale=self.stale or NOTHING,
            failures=self.failures or NOTHING,
            whole=False,
        )
