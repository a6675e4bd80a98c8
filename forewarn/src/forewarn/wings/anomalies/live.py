"""Surprise as it happens: every transition of a live session, and the run that it belongs to.

A run is an episode: it begins with the first tick, after a terminal label, or after a reset. With
`anomaly.run`, it also ends after that time. After each transition it is compared with normal runs,
and has the same numbers as `forewarn anomalies` finds when the run is over.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from forewarn.models.file import dump_model
from forewarn.monitoring.run_anomaly import (
    NAN,
    NO_STEP,
    AnomalyRow,
    RunVerdict,
    SurprisingStep,
)
from forewarn.wings.anomalies.calibration import PROMISING, Calibration
from forewarn.wings.anomalies.calibration_file import dump_calibration
from forewarn.wings.anomalies.transitions import Transition, Walk

if TYPE_CHECKING:
    from forewarn.states.interface import Observed, StateSpace
    from forewarn.wings.anomalies.surprise import Predictor


class RunState(NamedTuple):
    """What is remembered of the present run.

    `walk`: where it stands.
    `number`: runs before it.
    `begun`: its first tick.
    `transitions`: how many were judged.
    `likelihood`: sum of the logarithms of their probabilities.
    `value`: what is compared with the limit: it never falls during a run.
    `since`: tick with which the run became anomalous; -1 if it is not.
    `worst`: the first of the most surprising transitions.
    `level`: the sum of evidence, where the rule adds it up.
    """

    walk: Walk
    number: int
    begun: int
    transitions: int = 0
    likelihood: float = 0.0
    value: float = NAN
    since: int = -1
    worst: SurprisingStep = NO_STEP
    level: float = 0.0

    def broken(self) -> RunState:
        """Return the state when an intervention shapes what follows: that is no surprise."""
        return self._replace(walk=self.walk.broken())


class Basis(NamedTuple):
    """What a run is compared with, and how that comes out.

    `limit`: above it the run is anomalous.
    `p_value`, `alpha`: the run's p-value, and the promised share of false alarms; NaN where nothing
        is promised.
    `test`, `statistic`: how it is compared, and by which figure.
    `runs`: normal runs that it is compared with.
    """

    limit: float
    p_value: float
    alpha: float
    test: str
    statistic: str
    runs: int


class LiveRuns(ABC):
    """Judges runs while they last.

    `longest`: moments after which another run begins; None is never.
    """

    longest: int | None

    @property
    @abstractmethod
    def digest(self) -> str:
        """Return a digest of all that gives the state of a run its meaning."""

    def enter(
        self,
        before: RunState | None,
        tick: int,
        observation: Observed,
        action: str | None,
        values: Sequence[Any] = (),
    ) -> tuple[RunState, AnomalyRow]:
        """Take in a tick; `before` is None at the beginning."""
        run, transition = self._entered(before, tick, observation, action)
        run, step = self._judged(run, transition, tick, observation, values)
        verdict = RunVerdict.ANOMALOUS if run.since >= 0 else RunVerdict.NORMAL
        basis = self._basis(run)
        return run, AnomalyRow(
            tick,
            int(verdict if run.transitions else RunVerdict.NOT_JUDGED),
            run.number,
            run.transitions,
            run.value,
            basis.limit,
            basis.p_value,
            basis.alpha,
            run.since,
            basis.test,
            basis.statistic,
            basis.runs,
            step,
            run.worst,
        )

    @abstractmethod
    def _judged(
        self,
        run: RunState,
        transition: Transition | None,
        tick: int,
        observation: Observed,
        values: Sequence[Any],
    ) -> tuple[RunState, SurprisingStep]:
        """Return the run after a tick, and what was judged at it, `NO_STEP` if nothing was."""

    @abstractmethod
    def _basis(self, run: RunState) -> Basis:
        """Return what a run is compared with."""

    @staticmethod
    def _advanced(
        run: RunState, step: SurprisingStep, tick: int, value: float, limit: float
    ) -> RunState:
        """Return the run after a step that was judged; `value` is what the limit is about."""
        # As `max` does: of equals the first stays.
        worst = run.worst if step.surprise <= run.worst.surprise else step
        since = tick if run.since < 0 and value > limit else run.since
        return run._replace(transitions=run.transitions + 1, value=value, since=since, worst=worst)

    def _entered(
        self, before: RunState | None, tick: int, observation: Observed, action: str | None
    ) -> tuple[RunState, Transition | None]:
        """Return the run that a tick belongs to, and the transition that the tick ended."""
        known = RunState(Walk(), 0, tick) if before is None else before
        walk, transition = known.walk.enter(tick, observation, action)
        if walk.episode != known.walk.episode:
            known = RunState(walk, known.number + 1, tick)
        elif self.longest is not None and tick - known.begun > self.longest:
            known = RunState(walk, known.number + 1, tick - 1)
        return known._replace(walk=walk), transition

    def dump(self, run: RunState) -> dict[str, Any]:
        """Return how far a run is, as plain data."""
        worst = run.worst
        step = worst._replace(surprise=_finite(worst.surprise), p_value=_finite(worst.p_value))
        return {
            "judged_by": self.digest,
            **run._asdict(),
            "walk": list(run.walk),
            "value": _finite(run.value),
            "worst": list(step),
        }

    def load(self, data: Mapping[str, Any], states: StateSpace) -> RunState | None:
        """Return what `dump` was given, None if another calibration judged that run.

        Raises ValueError, TypeError or KeyError if it makes no sense.
        """
        if data["judged_by"] != self.digest:
            return None
        walk = Walk(*data["walk"])
        if walk.state is not None:
            states.name(walk.state)  # it raises if there is no such state
        step = SurprisingStep(*data["worst"])
        worst = step._replace(
            surprise=_number(step.surprise),
            p_value=_number(step.p_value),
            expected=tuple(map(str, step.expected)),
            expected_probabilities=tuple(map(float, step.expected_probabilities)),
        )
        return RunState(
            walk,
            int(data["number"]),
            int(data["begun"]),
            int(data["transitions"]),
            float(data["likelihood"]),
            _number(data["value"]),
            int(data["since"]),
            worst,
            float(data["level"]),
        )


@dataclass(frozen=True, eq=False)
class Detector(LiveRuns):
    """Judges runs by the surprise of their transitions.

    `predictor`: of the model that normal runs were calibrated with; it stays when others are
        loaded.
    `calibration`: what normal runs look like.
    `longest`: moments after which another run begins; None is never.
    """

    predictor: Predictor
    calibration: Calibration
    longest: int | None = None

    @cached_property
    def digest(self) -> str:
        """Return a digest of all that gives the state of a run its meaning."""
        return hashlib.sha256(repr((self.calibration, self.longest)).encode()).hexdigest()

    @property
    def longest_normal(self) -> None:
        """Moments of the longest run that its promise is about: none are kept."""

    @property
    def needs_actions(self) -> bool:
        """Tell whether surprise rests on actions."""
        return bool(self.predictor.choices or self.predictor.outcomes)

    def pack(self) -> bytes:
        """Return the calibration and its model as one text, for a record."""
        content = {
            "calibration": dump_calibration(self.calibration),
            "model": dump_model(self.predictor.model),
        }
        return json.dumps(content).encode()

    def _judged(
        self,
        run: RunState,
        transition: Transition | None,
        tick: int,
        observation: Observed,
        values: Sequence[Any],
    ) -> tuple[RunState, SurprisingStep]:
        del observation, values
        if transition is None:
            return run, NO_STEP
        calibration, predictor = self.calibration, self.predictor
        surprise = predictor.surprise(transition).of(calibration.statistic)
        transitions, likelihood = run.transitions + 1, run.likelihood - surprise
        value, level = calibration.advance(run.value, run.level, transitions, surprise, likelihood)
        step = self._step(transition, surprise)
        run = self._advanced(run, step, tick, value, calibration.limit)
        return run._replace(likelihood=likelihood, level=level), step

    def _step(self, transition: Transition, surprise: float) -> SurprisingStep:
        expected = self.predictor.expected(transition, self.calibration.statistic)
        name = self.predictor.model.vocabulary.name
        return SurprisingStep(
            transition.tick,
            name(transition.state),
            transition.action or "",
            name(transition.following),
            surprise,
            float(self.calibration.step_p([surprise])[0]),
            expected.part,
            tuple(name for name, _ in expected.likeliest),
            tuple(share for _, share in expected.likeliest),
        )

    def _basis(self, run: RunState) -> Basis:
        calibration = self.calibration
        promised = calibration.test in PROMISING
        return Basis(
            calibration.limit,
            calibration.p_value(run.value) if promised and run.transitions else NAN,
            calibration.alpha if promised else NAN,
            calibration.test,
            calibration.statistic,
            len(calibration.greatest),
        )


def _finite(value: float) -> Any:
    return None if math.isnan(value) else value


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
