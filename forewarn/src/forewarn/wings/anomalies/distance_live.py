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
    SurprisingStep,
)
from forewarn.wings.anomalies.live import Basis, LiveRuns, RunState
from forewarn.wings.anomalies.normal_file import dump_normal
from forewarn.wings.anomalies.normal_fit import as_number
from forewarn.wings.anomalies.normal_moments import KEY, NormalMoments

if TYPE_CHECKING:
    from forewarn.states.interface import Observed, StateSpace
    from forewarn.wings.anomalies.transitions import Transition

MOST_NAMED = 3
"""Signals that are named of a moment, those farthest from normal."""
WHOLE = "signals"


@dataclass(frozen=True, eq=False)
class DistanceDetector(LiveRuns):
    """Judges runs by the distance of their moments from normal ones.

    `normal`: of the model that was loaded first; it stays when others are loaded.
    `alpha`: promised share of false alarms.
    `slots`: where the values of its signals are among those of a moment.
    `vocabulary`: names the states.
    `longest`: moments after which another run begins; None is never.
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
        """Moments of the longest normal run: the promise is about runs as long."""
        return self.normal.longest

    @property
    def needs_actions(self) -> bool:
        """Tell whether it rests on actions: never."""
        return False

    def pack(self) -> bytes:
        """Return the normal moments as one text, for a record."""
        return json.dumps({KEY: dump_normal([self.normal])}).encode()

    def _judged(
        self,
        run: RunState,
        transition: Transition | None,
        tick: int,
        observation: Observed,
        values: Sequence[Any],
    ) -> tuple[RunState, SurprisingStep]:
        del transition
        if observation.active is not True or observation.intervened is not False:
            return run, NO_STEP
        step = self._step(tick, observation, values)
        if step is NO_STEP:
            return run, NO_STEP
        value = run.value if step.surprise <= run.value else step.surprise
        return self._advanced(run, step, tick, value, self.limit), step

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

    def _basis(self, run: RunState) -> Basis:
        return Basis(
            self.limit,
            self.normal.p_value(run.value) if run.transitions else math.nan,
            self.alpha,
            "conformal",
            DISTANCE,
            len(self.normal.greatest),
        )
