"""Rules that find anomalous runs. They are calibrated on normal runs.

The likelihood of a run is the sum of the logarithms of smoothed probabilities (`Predictor`), so
that one transition that was never seen does not make all unlikely runs alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import special

from forewarn.errors import RecordingError
from forewarn.wings.anomalies.step_evidence import StepShares, conformal_p, cusum, evidence

if TYPE_CHECKING:
    from forewarn.wings.anomalies.surprise import What

Floats = NDArray[np.float64]
Rule = Literal["conformal", "prefix", "cusum", "normal", "quantile", "checkpoints"]
RULES: tuple[Rule, ...] = get_args(Rule)
PROMISING: tuple[Rule, ...] = ("conformal", "prefix", "cusum")
LIVE_RULES: tuple[Rule, ...] = (*PROMISING, "checkpoints")
"""Rules that judge a run while it lasts."""

_LEAST_SPREAD = 1e-9  # runs that are all alike: the least deviation counts


class Checkpoint(NamedTuple):
    """Likelihoods of past runs of at least `steps` transitions, cut to so many.

    `runs`: how many they were, two or more.
    `mean`, `deviation`: of their log-likelihoods; the deviation of a sample (``n - 1``).
    """

    steps: int
    runs: int
    mean: float
    deviation: float

    def fall(self, likelihood: float) -> float:
        """Return how many standard deviations a likelihood is below the mean, at least 0."""
        spread = max(self.deviation, _LEAST_SPREAD * max(1.0, abs(self.mean)))
        return max((self.mean - likelihood) / spread, 0.0)


class Finding(NamedTuple):
    """What a rule says of one run.

    `p_value`: of the conformal rules: at most alpha for a share of at most alpha of normal runs.
    `value`, `limit`: what was compared: a surprise or deviation that is above the limit, or a
        likelihood below.
    `since`: index of the transition with which a live monitor would have known; None if only the
        end of the run showed it, or nothing did.
    """

    anomalous: bool
    p_value: float | None
    value: float
    limit: float
    since: int | None


@dataclass(frozen=True)
class Calibration:
    """What normal runs look like to a model.

    `model`: digest of the predictor (`Predictor.digest`).
    `abstraction`: digest of the abstraction.
    `period`: transitions from one checkpoint to the next.
    `alpha`: share of false alarms, at most a half.
    `recordings`: digests of the recordings.
    `greatest`: greatest surprise of each run, rising.
    `likelihoods`: log-likelihood of each run, rising.
    `checkpoints`: over all runs.
    `reference`: over every other run, the first one among them.
    `deviations`: how far each of the remaining runs fell below `reference` (`deviation`), rising.
    `steps` (tuple of (surprise, weight)): every surprise that occurred, rising; each run weighs 1,
        whatever its length.
    `reference_steps` (tuple of (surprise, weight)): those of every other run, the first one among
        them.
    `sums`: the greatest sum of evidence that each of the remaining runs reached (`cusum`), rising.
    """

    model: str
    abstraction: str
    statistic: What
    test: Rule
    period: int
    alpha: float
    recordings: tuple[str, ...]
    greatest: tuple[float, ...]
    likelihoods: tuple[float, ...]
    checkpoints: tuple[Checkpoint, ...]
    reference: tuple[Checkpoint, ...]
    deviations: tuple[float, ...]
    steps: tuple[tuple[float, float], ...]
    reference_steps: tuple[tuple[float, float], ...]
    sums: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raise RecordingError if the rule could not tell of any run."""
        runs, least = len(self.greatest), least_runs(self.test, self.alpha)
        if runs < least:
            raise RecordingError(
                f"{runs} normal runs with transitions: the test {self.test} could not tell of any "
                f"run at alpha {self.alpha:g}",
                accepted=f"{least} or more to calibrate on, or another rule or alpha",
            )
        used = {"prefix": self.reference, "checkpoints": self.checkpoints}
        if not used.get(self.test, True):
            raise RecordingError(
                f"too few normal runs have {self.period} transitions: the test {self.test} has no "
                "checkpoint",
                accepted="longer runs to calibrate on, or checkpoints after fewer steps (--period)",
            )

    def step_p(self, surprises: Sequence[float]) -> Floats:
        """Return the p-value of each surprise among those of a step of a random normal run."""
        return self._steps.p_values(surprises)

    @cached_property
    def _steps(self) -> StepShares:
        return StepShares.of(self.steps, len(self.greatest))

    @cached_property
    def _reference_steps(self) -> StepShares:
        return StepShares.of(self.reference_steps, (len(self.greatest) + 1) // 2)

    @property
    def scores(self) -> tuple[float, ...]:
        """What `score` gives for past runs."""
        by_rule = {"conformal": self.greatest, "prefix": self.deviations, "cusum": self.sums}
        return by_rule.get(self.test) or tuple(-value for value in self.likelihoods)

    def score(self, surprises: Sequence[float]) -> float:
        """Return how anomalous a run is: the same for a past run and a new one."""
        if self.test in PROMISING:
            return float(self.path(surprises)[-1])
        return math.fsum(surprises)

    def judge(self, surprises: Sequence[float]) -> Finding:
        """Judge a run by the surprise of each of its transitions, at least one."""
        if self.test in LIVE_RULES:
            path = self.path(surprises)
            value = float(path[-1])
            p_value = self.p_value(value) if self.test in PROMISING else None
            return Finding(value > self.limit, p_value, value, self.limit, _first(path, self.limit))
        likelihood = -math.fsum(surprises)
        past = np.array(self.likelihoods)
        if self.test == "normal":
            limit = float(past.mean() - special.ndtri(1.0 - self.alpha) * past.std(ddof=1))
        else:
            limit = float(past[math.floor(self.alpha * past.size)])
        return Finding(likelihood < limit, None, likelihood, limit, None)

    def path(self, surprises: Sequence[float]) -> Floats:
        """Return what a rule that judges a run while it lasts compares, after each transition."""
        if self.test == "conformal":
            return np.asarray(np.maximum.accumulate(surprises))
        if self.test == "cusum":
            return cusum(self._reference_steps, surprises)
        return deviation(self._at.values(), surprises)

    def advance(
        self, value: float, level: float, transitions: int, surprise: float, likelihood: float
    ) -> tuple[float, float]:
        """Return the next value of `path`, and the sum of evidence, from those before it.

        `value`: the value before; NaN at the first transition.
        `level`: the sum before, 0 at the first; it stays so unless the rule adds evidence up.
        `transitions`: number of this transition, from 1.
        `surprise`, `likelihood`: of this transition, and of all so far.
        """
        if self.test == "cusum":
            p_value = float(self._reference_steps.p_values([surprise])[0])
            surprise = level = max(level + evidence(p_value), 0.0)
        elif self.test != "conformal":
            checkpoint = self._at.get(transitions)
            surprise = 0.0 if checkpoint is None else checkpoint.fall(likelihood)
        return value if surprise <= value else surprise, level

    @cached_property
    def _at(self) -> Mapping[int, Checkpoint]:
        """Checkpoints of the rule by their transitions."""
        used = self.reference if self.test == "prefix" else self.checkpoints
        return {one.steps: one for one in used}

    @property
    def _past(self) -> tuple[float, ...]:
        return self.scores

    @cached_property
    def limit(self) -> float:
        """What a value of `path` has to exceed for a run to be anomalous."""
        if self.test == "checkpoints":
            return float(special.ndtri(1.0 - self.alpha))
        runs = len(self._past)
        allowed = sum(k / (runs + 1) <= self.alpha for k in range(1, runs + 1))
        return self._past[-allowed]

    def p_value(self, value: float) -> float:
        """Return the conformal p-value of a value of `path`."""
        return conformal_p(self._past, value)


def find_checkpoints(runs: Sequence[Sequence[float]], period: int) -> tuple[Checkpoint, ...]:
    """Return mean and deviation of prefix likelihoods (TriCEGAR, appendix C).

    `runs`: surprises of each run.
    """
    totals = [-np.cumsum(run) for run in runs]
    found = []
    for steps in range(period, max(map(len, runs), default=0) + 1, period):
        prefixes = np.array([total[steps - 1] for total in totals if total.size >= steps])
        if prefixes.size < 2:
            break
        found.append(
            Checkpoint(steps, prefixes.size, float(prefixes.mean()), float(prefixes.std(ddof=1)))
        )
    return tuple(found)


def deviation(checkpoints: Iterable[Checkpoint], surprises: Sequence[float]) -> Floats:
    """Return how many standard deviations a run has been below the mean at worst, so far.

    It is 0 before the first checkpoint, and for runs that are never below; shape (transitions,).
    """
    likelihoods = -np.cumsum(surprises)
    found = np.zeros(likelihoods.size)
    for one in checkpoints:
        if one.steps <= found.size:
            found[one.steps - 1] = one.fall(float(likelihoods[one.steps - 1]))
    return np.asarray(np.maximum.accumulate(found))


def least_runs(test: Rule, alpha: float) -> int:
    """Return how many normal runs a rule needs before it can tell of any run."""
    conformal = math.ceil(1.0 / alpha) - 1
    while 1.0 / (conformal + 1) > alpha:
        conformal += 1
    least = {
        "conformal": conformal,
        "prefix": max(4, 2 * conformal),
        "cusum": max(8, 2 * conformal),  # of fewer steps no p-value is small enough to count
        "quantile": conformal,
    }
    return least.get(test, 2)


def calibrate(
    runs: Sequence[Sequence[float]],
    *,
    model: str,
    abstraction: str,
    statistic: What,
    test: Rule,
    period: int,
    alpha: float,
    recordings: Sequence[str],
) -> Calibration:
    """Learn from normal runs what is anomalous.

    `runs`: surprises of each run; runs without a transition are left out. The model must not have
        been learned from them: its own runs surprise a model less than new ones do.

    Raises RecordingError if they are too few, or too short for checkpoints.
    """
    runs = [run for run in runs if len(run)]
    reference, reference_steps = find_checkpoints(runs[::2], period), _weighted(runs[::2])
    shares = StepShares.of(reference_steps, len(runs[::2]))
    return Calibration(
        model,
        abstraction,
        statistic,
        test,
        period,
        alpha,
        tuple(recordings),
        tuple(sorted(max(run) for run in runs)),
        tuple(sorted(-math.fsum(run) for run in runs)),
        find_checkpoints(runs, period),
        reference,
        tuple(sorted(float(deviation(reference, run)[-1]) for run in runs[1::2])),
        _weighted(runs),
        reference_steps,
        tuple(sorted(float(cusum(shares, run)[-1]) for run in runs[1::2])),
    )


def _weighted(runs: Sequence[Sequence[float]]) -> tuple[tuple[float, float], ...]:
    """Return every surprise that occurred, rising, with its weight; each run weighs 1."""
    weights: dict[float, float] = {}
    for run in runs:
        for value in run:
            weights[value] = weights.get(value, 0.0) + 1.0 / len(run)
    return tuple(sorted(weights.items()))


def _first(path: Floats, limit: float) -> int | None:
    beyond = np.flatnonzero(path > limit)
    return int(beyond[0]) if beyond.size else None
