"""Surprise as it happens: every transition of a live session, and the run that it belongs to.

A run is an episode: it begins with the first tick, after a terminal label, or after a reset. With
`anomaly.run`, it also ends after that time. After each transition it is compared with normal runs,
and has the same numbers as `forewarn anomalies` finds when the run is over.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from forewarn.learning.transitions import Transition, Walk
from forewarn.monitoring.anomalies import PROMISING, Calibration

if TYPE_CHECKING:
    from forewarn.monitoring.surprise import Predictor
    from forewarn.states.interface import Observed

NAN = math.nan


class RunVerdict(IntEnum):
    """What is said of the present run."""

    NOT_JUDGED = 0
    NORMAL = 1
    ANOMALOUS = 2


class SurprisingStep(NamedTuple):
    """The fields of a Surprise message, in its order; see there for meanings and units."""

    tick: int = -1
    state: str = ""
    action: str = ""
    following: str = ""
    surprise: float = NAN
    p_value: float = NAN
    part: str = ""
    expected: tuple[str, ...] = ()
    expected_probabilities: tuple[float, ...] = ()


class AnomalyRow(NamedTuple):
    """The fields of an Anomaly message, in its order; see there for meanings and units."""

    tick: int
    verdict: int
    run: int
    transitions: int
    value: float
    limit: float
    p_value: float
    false_alarm_rate: float
    since: int
    test: str
    statistic: str
    normal_runs: int
    step: SurprisingStep
    worst: SurprisingStep


NO_STEP = SurprisingStep()


def in_words(row: AnomalyRow) -> str:
    """Return what is said of a run, in one sentence for people."""
    worst = row.worst
    if row.verdict == RunVerdict.NOT_JUDGED:
        return f"run {row.run}: no transition between known states yet"
    sure = f"p = {row.p_value:.3g}"
    if math.isnan(row.p_value):
        sure = f"{row.value:.3g} against {row.limit:.3g}"
    judged = "anomalous" if row.verdict == RunVerdict.ANOMALOUS else "like normal ones"
    done = f", {worst.action!r}" if worst.action else ""
    likeliest = ", ".join(
        f"{name} {share:.0%}"
        for name, share in zip(worst.expected, worst.expected_probabilities, strict=True)
    )
    return (
        f"run {row.run}: {judged} ({row.test}, {sure}); most surprising: "
        f"{worst.state!r}{done}, then {worst.following!r} (p = {worst.p_value:.3g}), "
        f"expected {worst.part}: {likeliest}"
    )


class RunState(NamedTuple):
    """What is remembered of the present run.

    Attributes
    ----------
    walk : Walk
        Where it stands.
    number : int
        Runs before it.
    begun : int
        Its first tick.
    transitions : int
        How many were judged.
    likelihood : float
        Sum of the logarithms of their probabilities.
    value : float
        What is compared with the limit: it never falls during a run.
    since : int
        Tick with which the run became anomalous; -1 if it is not.
    worst : SurprisingStep
        The first of the most surprising transitions.
    level : float
        The sum of evidence, where the rule adds it up.
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


@dataclass(frozen=True, eq=False)
class Detector:
    """Judges runs while they last.

    Attributes
    ----------
    predictor : Predictor
        Of the model that normal runs were calibrated with; it stays when others are loaded.
    calibration : Calibration
        What normal runs look like.
    longest : int or None
        Moments after which another run begins; None is never.
    """

    predictor: Predictor
    calibration: Calibration
    longest: int | None = None

    @cached_property
    def digest(self) -> str:
        """Return a digest of all that gives the state of a run its meaning."""
        return hashlib.sha256(repr((self.calibration, self.longest)).encode()).hexdigest()

    def enter(
        self, before: RunState | None, tick: int, observation: Observed, action: str | None
    ) -> tuple[RunState, AnomalyRow]:
        """Take in a tick; `before` is None at the beginning."""
        known = RunState(Walk(), 0, tick) if before is None else before
        walk, transition = known.walk.enter(tick, observation, action)
        if walk.episode != known.walk.episode:
            known = RunState(walk, known.number + 1, tick)
        elif self.longest is not None and tick - known.begun > self.longest:
            known = RunState(walk, known.number + 1, tick - 1)
        run, step = known._replace(walk=walk), NO_STEP
        if transition is not None:
            run, step = self._judged(run, transition, tick)
        return run, self._row(run, tick, step)

    def _judged(
        self, run: RunState, transition: Transition, tick: int
    ) -> tuple[RunState, SurprisingStep]:
        calibration, predictor = self.calibration, self.predictor
        surprise = predictor.surprise(transition).of(calibration.statistic)
        transitions, likelihood = run.transitions + 1, run.likelihood - surprise
        value, level = calibration.advance(run.value, run.level, transitions, surprise, likelihood)
        step = self._step(transition, surprise)
        # As `max` does: of equals the first stays.
        worst = run.worst if surprise <= run.worst.surprise else step
        since = tick if run.since < 0 and value > calibration.limit else run.since
        return run._replace(
            transitions=transitions,
            likelihood=likelihood,
            value=value,
            since=since,
            worst=worst,
            level=level,
        ), step

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

    def _row(self, run: RunState, tick: int, step: SurprisingStep) -> AnomalyRow:
        calibration = self.calibration
        promised = calibration.test in PROMISING
        verdict = RunVerdict.ANOMALOUS if run.since >= 0 else RunVerdict.NORMAL
        return AnomalyRow(
            tick,
            int(verdict if run.transitions else RunVerdict.NOT_JUDGED),
            run.number,
            run.transitions,
            run.value,
            calibration.limit,
            calibration.p_value(run.value) if promised and run.transitions else NAN,
            calibration.alpha if promised else NAN,
            run.since,
            calibration.test,
            calibration.statistic,
            len(calibration.greatest),
            step,
            run.worst,
        )
