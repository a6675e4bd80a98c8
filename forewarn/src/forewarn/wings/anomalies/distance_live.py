"""Runs judged while they last by how far their moments are from those of normal runs."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from forewarn.monitoring.run_anomaly import (
    DISTANCE,
    NO_STEP,
    PART_KNOWN,
    AnomalyRow,
    RunVerdict,
    SurprisingStep,
)
from forewarn.wings.anomalies.live import LiveRuns, RunState
from forewarn.wings.anomalies.normal_file import dump_normal
from forewarn.wings.anomalies.normal_fit import as_number
from forewarn.wings.anomalies.normal_moments import KEY, NormalMoments

if TYPE_CHECKING:
    from forewarn.states.interface import Observed, StateSpace

MOST_NAMED = 3
"""Signals that are named of a moment, those farthest from normal."""
WHOLE = "signals"


@dataclass(frozen=True, eq=False)
class DistanceDetector(LiveRuns):
    """Judges runs by the distance of their moments from normal ones.

    Attributes
    ----------
    normal : NormalMoments
        Of the model that was loaded first; it stays when others are loaded.
    alpha : float
        Promised share of false alarms.
    slots : tuple of int
        Where the values of its signals are among those of a moment.
    vocabulary : StateSpace
        Names the states.
    longest : int or None
        Moments after which another run begins; None is never.
    """

    normal: NormalMoments
    alpha: float
    slots: tuple[int, ...]
    vocabulary: StateSpace
    longest: int | None = None

    @cached_property
    def limit(self) -> float:
        """The distance above which a run is anomalous."""
        return self.normal.limit(self.alpha)

    @cached_property
    def digest(self) -> str:
        """Return a digest of all that gives the state of a run its meaning."""
        return hashlib.sha256(self.pack() + repr((self.alpha, self.longest)).encode()).hexdigest()

    @property
    def longest_normal(self) -> int:
        """Moments of the longest run that its promise is about."""
        return self.normal.longest

    @property
    def needs_actions(self) -> bool:
        """Tell whether it rests on actions: never."""
        return False

    def pack(self) -> bytes:
        """Return the normal moments as one text, for a record."""
        return json.dumps({KEY: dump_normal([self.normal])}).encode()

    def enter(
        self,
        before: RunState | None,
        tick: int,
        observation: Observed,
        action: str | None,
        values: Sequence[Any] = (),
    ) -> tuple[RunState, AnomalyRow]:
        """Take in a tick; `before` is None at the beginning."""
        run, _ = self.entered(before, tick, observation, action)
        step = NO_STEP
        if observation.active is True and observation.intervened is False:
            step = self._step(tick, observation, values)
        if step.tick >= 0:
            run = self._judged(run, step, tick)
        return run, self._row(run, tick, step)

    def _step(self, tick: int, observation: Observed, values: Sequence[Any]) -> SurprisingStep:
        found = self.normal.nearest([as_number(values[slot]) for slot in self.slots])
        if math.isnan(found.distance):
            return NO_STEP
        named = found.shares[:MOST_NAMED]
        return SurprisingStep(
            tick,
            following=self.vocabulary.observed_name(observation),
            surprise=found.distance,
            p_value=self.normal.p_value(found.distance),
            part=PART_KNOWN if found.unknown else WHOLE,
            expected=tuple(name for name, _ in named),
            expected_probabilities=tuple(share for _, share in named),
        )

    def _judged(self, run: RunState, step: SurprisingStep, tick: int) -> RunState:
        # As `max` does: of equals the first stays.
        worst = run.worst if step.surprise <= run.worst.surprise else step
        since = tick if run.since < 0 and step.surprise > self.limit else run.since
        return run._replace(
            transitions=run.transitions + 1, value=worst.surprise, since=since, worst=worst
        )

    def _row(self, run: RunState, tick: int, step: SurprisingStep) -> AnomalyRow:
        verdict = RunVerdict.ANOMALOUS if run.since >= 0 else RunVerdict.NORMAL
        return AnomalyRow(
            tick,
            int(verdict if run.transitions else RunVerdict.NOT_JUDGED),
            run.number,
            run.transitions,
            run.value,
            self.limit,
            self.normal.p_value(run.value) if run.transitions else math.nan,
            self.alpha,
            run.since,
            "conformal",
            DISTANCE,
            len(self.normal.greatest),
            step,
            run.worst,
        )
