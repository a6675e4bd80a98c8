"""Which runs are anomalous to a model: rules that are calibrated on normal runs.

The likelihood of a run is the sum of the logarithms of smoothed probabilities (`Predictor`), so
that one transition that was never seen does not make all unlikely runs alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import special

from forewarn.errors import RecordingError
from forewarn.monitoring.surprise import What

Floats = NDArray[np.float64]
Rule = Literal["conformal", "prefix", "normal", "quantile", "checkpoints"]
RULES: tuple[Rule, ...] = get_args(Rule)

_LEAST_SPREAD = 1e-9  # runs that are all alike: the least deviation counts


class Checkpoint(NamedTuple):
    """Likelihoods of past runs of at least `steps` transitions, cut to so many.

    Attributes
    ----------
    runs : int
        How many they were, two or more.
    mean, deviation : float
        Of their log-likelihoods; the deviation of a sample (``n - 1``).
    """

    steps: int
    runs: int
    mean: float
    deviation: float


class Finding(NamedTuple):
    """What a rule says of one run.

    Attributes
    ----------
    p_value : float or None
        Of the conformal rules: at most alpha for a share of at most alpha of normal runs.
    value, limit : float
        What was compared: a surprise or deviation that is above the limit, or a likelihood below.
    since : int or None
        Index of the transition with which a live monitor would have known; None if only the end
        of the run told, or nothing did.
    """

    anomalous: bool
    p_value: float | None
    value: float
    limit: float
    since: int | None


@dataclass(frozen=True)
class Calibration:
    """What normal runs look like to a model.

    Attributes
    ----------
    model : str
        Digest of the predictor (`Predictor.digest`).
    abstraction : str
        Digest of the abstraction.
    every : int
        Transitions from one checkpoint to the next.
    alpha : float
        Share of false alarms, at most a half.
    recordings : tuple of str
        Digests of the recordings.
    greatest : tuple of float
        Greatest surprise of each run, rising.
    likelihoods : tuple of float
        Log-likelihood of each run, rising.
    checkpoints : tuple of Checkpoint
        Over all runs.
    reference : tuple of Checkpoint
        Over every other run, the first one among them.
    deviations : tuple of float
        How far each of the remaining runs fell below `reference` (`deviation`), rising.
    steps : tuple of (surprise, weight)
        Every surprise that occurred, rising; each run weighs 1, whatever its length.
    """

    model: str
    abstraction: str
    what: What
    rule: Rule
    every: int
    alpha: float
    recordings: tuple[str, ...]
    greatest: tuple[float, ...]
    likelihoods: tuple[float, ...]
    checkpoints: tuple[Checkpoint, ...]
    reference: tuple[Checkpoint, ...]
    deviations: tuple[float, ...]
    steps: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        """Raise RecordingError if the rule could not tell of any run."""
        runs, least = len(self.greatest), least_runs(self.rule, self.alpha)
        if runs < least:
            raise RecordingError(
                f"{runs} normal runs with transitions: the rule {self.rule} could not tell of any "
                f"run at alpha {self.alpha:g}",
                accepted=f"{least} or more to calibrate on, or another rule or alpha",
            )
        used = {"prefix": self.reference, "checkpoints": self.checkpoints}
        if not used.get(self.rule, True):
            raise RecordingError(
                f"too few normal runs have {self.every} transitions: the rule {self.rule} has no "
                "checkpoint",
                accepted="longer runs to calibrate on, or checkpoints after fewer steps (--every)",
            )

    def step_p(self, surprises: Sequence[float]) -> Floats:
        """Return the p-value of each surprise among those of a step of a random normal run."""
        values = np.array([value for value, _ in self.steps])
        above = np.concatenate([np.cumsum([weight for _, weight in self.steps][::-1])[::-1], [0.0]])
        # Weights are shares of runs: their sum is the number of runs but for rounding.
        greater = above[np.searchsorted(values, surprises, side="left")]
        found = (1.0 + greater) / (len(self.greatest) + 1.0)
        return np.asarray(np.minimum(found, 1.0), dtype=np.float64)

    @property
    def scores(self) -> tuple[float, ...]:
        """What `score` gives for past runs."""
        by_rule = {"conformal": self.greatest, "prefix": self.deviations}
        return by_rule.get(self.rule) or tuple(-value for value in self.likelihoods)

    def score(self, surprises: Sequence[float]) -> float:
        """Return how anomalous a run is: the same for a past run and a new one."""
        if self.rule == "conformal":
            return max(surprises)
        if self.rule == "prefix":
            return float(deviation(self.reference, surprises)[-1])
        return math.fsum(surprises)

    def judge(self, surprises: Sequence[float]) -> Finding:
        """Judge a run by the surprise of each of its transitions, at least one."""
        if self.rule == "conformal":
            return self._beyond(np.maximum.accumulate(surprises), self.greatest)
        falls = deviation(self.reference, surprises)
        if self.rule == "prefix":
            return self._beyond(falls, self.deviations)
        likelihood = -math.fsum(surprises)
        if self.rule == "checkpoints":
            limit = float(special.ndtri(1.0 - self.alpha))
            falls = deviation(self.checkpoints, surprises)
            worst = float(falls[-1])
            return Finding(worst > limit, None, worst, limit, _first(falls, limit))
        past = np.array(self.likelihoods)
        if self.rule == "normal":
            limit = float(past.mean() - special.ndtri(1.0 - self.alpha) * past.std(ddof=1))
        else:
            limit = float(past[math.floor(self.alpha * past.size)])
        return Finding(likelihood < limit, None, likelihood, limit, None)

    def _beyond(self, path: Floats, past: tuple[float, ...]) -> Finding:
        """Judge a rising path by its end, among the ends of past runs."""
        value = float(path[-1])
        p_value = conformal_p(past, value)
        allowed = sum(k / (len(past) + 1) <= self.alpha for k in range(1, len(past) + 1))
        limit = past[-allowed]
        return Finding(p_value <= self.alpha, p_value, value, limit, _first(path, limit))


def conformal_p(past: Sequence[float], value: float) -> float:
    """Return ``(1 + #{past >= value}) / (n + 1)``.

    If the value is exchangeable with the n past ones, it is at most alpha with a probability of at
    most alpha, for every alpha (Vovk, Gammerman and Shafer, 2005, proposition 2.4).

    Parameters
    ----------
    past : sequence of float, shape (n,)
        Rising.
    """
    above = len(past) - int(np.searchsorted(np.asarray(past), value, side="left"))
    return (1 + above) / (len(past) + 1)


def find_checkpoints(runs: Sequence[Sequence[float]], every: int) -> tuple[Checkpoint, ...]:
    """Return mean and deviation of prefix likelihoods (TriCEGAR, appendix C).

    Parameters
    ----------
    runs : sequence of sequences of float
        Surprises of each run.
    """
    totals = [-np.cumsum(run) for run in runs]
    found = []
    for steps in range(every, max(map(len, runs), default=0) + 1, every):
        prefixes = np.array([total[steps - 1] for total in totals if total.size >= steps])
        if prefixes.size < 2:
            break
        found.append(
            Checkpoint(steps, prefixes.size, float(prefixes.mean()), float(prefixes.std(ddof=1)))
        )
    return tuple(found)


def deviation(checkpoints: Sequence[Checkpoint], surprises: Sequence[float]) -> Floats:
    """Return how many standard deviations a run has been below the mean at worst, so far.

    It is 0 before the first checkpoint, and for runs that are never below; shape (transitions,).
    """
    likelihoods = -np.cumsum(surprises)
    found = np.zeros(likelihoods.size)
    for one in checkpoints:
        if one.steps <= found.size:
            spread = max(one.deviation, _LEAST_SPREAD * max(1.0, abs(one.mean)))
            found[one.steps - 1] = (one.mean - likelihoods[one.steps - 1]) / spread
    return np.asarray(np.maximum.accumulate(np.maximum(found, 0.0)))


def least_runs(rule: Rule, alpha: float) -> int:
    """Return how many normal runs a rule needs before it can tell of any run."""
    conformal = math.ceil(1.0 / alpha) - 1
    while 1.0 / (conformal + 1) > alpha:
        conformal += 1
    return {"conformal": conformal, "prefix": max(4, 2 * conformal), "quantile": conformal}.get(
        rule, 2
    )


def calibrate(
    runs: Sequence[Sequence[float]],
    *,
    model: str,
    abstraction: str,
    what: What,
    rule: Rule,
    every: int,
    alpha: float,
    recordings: Sequence[str],
) -> Calibration:
    """Learn from normal runs what is anomalous.

    Parameters
    ----------
    runs : sequence of sequences of float
        Surprises of each run; runs without a transition are left out. The model must not have been
        learned from them: its own runs surprise a model less than new ones do.

    Raises
    ------
    RecordingError
        If they are too few, or too short for checkpoints.
    """
    runs = [run for run in runs if len(run)]
    weights: dict[float, float] = {}
    for run in runs:
        for value in run:
            weights[value] = weights.get(value, 0.0) + 1.0 / len(run)
    reference = find_checkpoints(runs[::2], every)
    return Calibration(
        model,
        abstraction,
        what,
        rule,
        every,
        alpha,
        tuple(recordings),
        tuple(sorted(max(run) for run in runs)),
        tuple(sorted(-math.fsum(run) for run in runs)),
        find_checkpoints(runs, every),
        reference,
        tuple(sorted(float(deviation(reference, run)[-1]) for run in runs[1::2])),
        tuple(sorted(weights.items())),
    )


def _first(path: Floats, limit: float) -> int | None:
    beyond = np.flatnonzero(path > limit)
    return int(beyond[0]) if beyond.size else None
