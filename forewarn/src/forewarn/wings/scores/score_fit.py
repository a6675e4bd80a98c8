"""Fit a learned score: boosted trees and lines, judged on recordings that they did not see.

How many trees there are, how steep a line may be and what each counts is what predicts recordings
best that were left out, fold by fold (`members`). The fits of a fold then judge its
recordings: where these are counted, and where cuts are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.ranking import curve_of
from forewarn.config.sections import PropertySpec
from forewarn.errors import ConfigError
from forewarn.learning.folds import parted
from forewarn.models.run_ends import RunEnd, judge_ends
from forewarn.wings.scores.boosted_trees import MOST_TREES, need_sklearn
from forewarn.wings.scores.fit import LearnedScoreFit, features_of, lags_of
from forewarn.wings.scores.members import Data, columns_of, fit_members
from forewarn.wings.scores.score import Scoring, compiled_trees

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FOLDS = range(10, 21)
"""Numbers of folds that are tried: the first with violations, and ticks without, beside each.

Folds are not of the same size: of 25 recordings the largest of five held 9, so that its fit saw 16,
and too few trees were chosen (evaluation/RESULTS.md, walker).
"""
MANY = 100
FOLDS_OF_MANY = range(5, 21)
"""The same from so many recordings on: the largest fold has about a quarter of them."""

MOST_NUMBERS = 16_000_000
"""Numbers that are fitted to: features of all rows. With more, every second tick is left out."""

MOST_WEIGHED = 5000
BINS = 6


class Rows(NamedTuple):
    """What one recording gives a learned score to learn from.

    `digest`: digest of the recording.
    `ticks` (shape (n,)): numbers of the ticks that were judged.
    `features` (shape (n, features)): of all signals that may be used; NaN where unknown.
    `followed` (shape (n,)): a violation followed within the horizon.
    `certain` (shape (n,)): that is known in any case; elsewhere it is if violations end the runs
        (`settled`).
    `censored`: ticks whose outcome is not known in either case.
    `runs`: the runs of the recording.
    `others`: signals with a value that is no number.
    `group`: name of the group of recordings that it belongs to; empty if it is in none.
    """

    digest: str
    ticks: NDArray[np.int64]
    features: Floats
    followed: Bools
    certain: Bools
    censored: int
    others: frozenset[str]
    runs: tuple[RunEnd, ...] = ()
    group: str = ""

    @property
    def cluster(self) -> str:
        """What is left out as a whole: the group, or the recording alone."""
        return self.group or self.digest

    def of_certain(self) -> Rows:
        """Return the rows that are known in any case."""
        found = self._chosen(self.certain)
        return found._replace(censored=self.censored + len(self.ticks) - len(found.ticks))

    def _chosen(self, kept: Bools) -> Rows:
        """Return some rows, as copies: else all that a recording gave would stay."""
        return self._replace(
            ticks=self.ticks[kept],
            features=self.features[kept],
            followed=self.followed[kept],
            certain=self.certain[kept],
        )


def settled(parts: Sequence[Rows], horizon: int | None) -> list[Rows]:
    """Return the rows of recordings, once it is judged how their runs end.

    `horizon`: of the property, in ticks.
    """
    if judge_ends([run for part in parts for run in part.runs], horizon).concluded:
        return [*parts]
    return [part.of_certain() for part in parts]


@dataclass(frozen=True, eq=False)
class FittedScore:
    """A learned score, and how it came about.

    `scores` (shape (n,)): what it says of each tick that was fitted to, by the trees that did not
        see the recording.
    `followed` (shape (n,)): whether a violation followed.
    `censored`: ticks whose outcome is not known.
    `stride`: one of so many ticks was fitted to.
    `left_out`: signals that it does not use: texts, arrays, and what was never known.
    `rounds`: how many trees of each kind there are.
    `members`: what trees and lines count in the sum of log-odds.
    """

    fit: LearnedScoreFit
    scores: Floats
    followed: Bools
    censored: int
    stride: int
    left_out: tuple[str, ...]
    rounds: tuple[int, ...]
    members: Mapping[str, float]

    @property
    def brier(self) -> float:
        """Mean squared error of the scores."""
        return float(np.mean((self.scores - self.followed) ** 2))

    @property
    def area(self) -> float:
        """Area under the curve of precision and recall."""
        return curve_of(self.scores, self.followed).area

    @property
    def facts(self) -> dict[str, Any]:
        """How it came about, for ``--json``."""
        return {
            "ticks": len(self.scores),
            "followed": int(self.followed.sum()),
            "censored": self.censored,
            "stride": self.stride,
            "left_out": self.left_out,
            "brier": self.brier,
            "pr_area": self.area,
        }


Tell = Callable[[int, int], None]


def _silent(done: int, of: int) -> None:
    """Show no progress."""


def thinned(
    recordings: Iterable[Sequence[Rows]], most: int = MOST_NUMBERS
) -> tuple[list[list[Rows]], int]:
    """Collect the rows of recordings; from too many, every second, fourth, ... tick is kept.

    `recordings`: what each recording gives each of the scores.
    `most`: how many numbers are kept at the most.

    `parts`: the same, in the order of the digests.
    `stride`: ticks are kept whose number it divides.
    """
    found: list[list[Rows]] = []
    stride = 1
    seen: set[str] = set()
    for parts in recordings:
        if parts[0].digest in seen:
            continue  # a copy, which is not counted either
        seen.add(parts[0].digest)
        found.append([_every(part, stride) for part in parts])
        while sum(one.features.size for kept in found for one in kept) > most:
            stride *= 2
            found = [[_every(one, stride) for one in kept] for kept in found]
    return sorted(found, key=lambda kept: kept[0].digest), stride


def _every(part: Rows, stride: int) -> Rows:
    return part._chosen(part.ticks % stride == 0)


def fit_score(
    scoring: Scoring,
    directions: Sequence[int],
    name: str,
    section: PropertySpec,
    parts: Sequence[Rows],
    stride: int = 1,
    tell: Tell | None = None,
) -> FittedScore:
    """Fit a learned score to the rows of recordings.

    `scoring`: the score, not fitted: signals that may be used, and the history.
    `directions`: for each of its signals 1, -1 or 0; see `LearnedScoreFit`.
    `name`, `section`: the property.
    `parts`: in the order of the digests.
    `tell`: called with how many of how many fits are done.

    Raises ConfigError if a signal is no number or never known, or there is only one class.
    """
    version = need_sklearn().__version__
    from threadpoolctl import threadpool_limits

    tell = tell or _silent
    lags = lags_of(scoring.moments)
    width = len(features_of("x", lags))
    used, left_out = _usable(scoring, parts, width)
    columns = [scoring.signals.index(one) * width + k for one in used for k in range(width)]
    x = np.concatenate([part.features for part in parts])[:, columns]
    y = np.concatenate([part.followed for part in parts])
    folds, own = _folds(scoring.name, name, parts)
    fold = np.repeat(own, [len(part.ticks) for part in parts])
    signs = [directions[scoring.signals.index(one)] for one in used]
    violated = len({part.cluster for part in parts if part.followed.any()})
    rising = np.repeat(signs, width).tolist()  # where the past is given, so do the changes
    data = Data(x, y, rising, columns_of(width, signs, violated))
    # With so little data threads mostly wait for each other, and burn a processor while they do.
    with threadpool_limits(1):
        chosen = fit_members(data, fold, folds, violated, MOST_TREES, tell)
    counted = chosen.rounds, chosen.weights, ~np.isnan(x).any(axis=0)
    blank = LearnedScoreFit(
        name=scoring.name,
        foresees=name,
        formula=section.formula,
        horizon=section.horizon,
        signals=used,
        moments=scoring.moments,
        lags=lags,
        directions=tuple(signs),
        ensemble=chosen.whole.ensemble(*counted),
        recordings=tuple(part.digest for part in parts),
        groups=tuple(part.group for part in parts) if any(part.group for part in parts) else (),
        fitted_with=f"scikit-learn {version}",
        unseeing=tuple(one.ensemble(*counted) for one in chosen.unseeing),
    )
    fit = replace(blank, cuts=cuts_of(chosen.scores[y]), weights=_weights(blank, x))
    tell(folds + 1, folds + 1)
    censored = sum(part.censored for part in parts)
    return FittedScore(
        fit, chosen.scores, y, censored, stride, left_out, chosen.rounds, chosen.shares
    )


def cuts_of(scores: Floats) -> tuple[float, ...]:
    """Return cuts between which equal shares of the violations lie, readable and rising.

    `scores` (shape (n,)): scores of the ticks that a violation followed.
    """
    found = np.quantile(scores, np.arange(1, BINS) / BINS, method="lower")
    rounded = {float(f"{cut:.2g}") for cut in found.tolist()}
    return tuple(sorted(cut for cut in rounded if 0 < cut < 1))


def _usable(
    scoring: Scoring, parts: Sequence[Rows], width: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    others = frozenset[str]().union(*(part.others for part in parts))
    used = []
    for index, signal in enumerate(scoring.signals):
        values = [part.features[:, index * width] for part in parts]
        known = any(np.isfinite(column).any() for column in values)
        if signal not in others and known:
            used.append(signal)
        elif scoring.named:
            what = "is no number in some recordings" if signal in others else "is never known"
            raise ConfigError(
                f"{signal!r} {what}",
                key=f"learned_score.{scoring.name}.from[{index}]",
                accepted="signals that are numbers or Booleans, and known at times",
            )
    if not used:
        raise ConfigError(
            "no signal is a number that is known at times",
            key=f"learned_score.{scoring.name}",
            accepted="at least one signal that is a number or a Boolean",
        )
    return tuple(used), tuple(one for one in scoring.signals if one not in used)


def _folds(score: str, name: str, parts: Sequence[Rows]) -> tuple[int, list[int]]:
    """Return a number of folds such that something can be fitted without each, and who is where."""
    clusters = {part.cluster for part in parts}
    violations = len({part.cluster for part in parts if part.followed.any()})
    tried = FOLDS if len(clusters) < MANY else FOLDS_OF_MANY
    # No more than there are groups: each left out by itself is the most that can be done.
    for folds in range(min(tried.start, len(clusters)), min(tried.stop, len(clusters) + 1)):
        fold = parted([part.cluster for part in parts], folds)
        beside = (
            [part.followed for part, own in zip(parts, fold, strict=True) if own != index]
            for index in {*fold}
        )
        if len({*fold}) > 1 and all(_parted(others) for others in beside):
            return folds, fold
    raise ConfigError(
        f"{violations} of {len(clusters)} recordings (those of a group count as one) lead to a "
        f"violation of {name}: too few to fit a score without one of them",
        key=f"learned_score.{score}.for",
        accepted="recordings of at least two violations, in different recordings, and of what is "
        "no violation",
    )


def _parted(outcomes: Sequence[Bools]) -> bool:
    return any(part.any() for part in outcomes) and any((~part).any() for part in outcomes)


def _weights(fit: LearnedScoreFit, x: Floats) -> tuple[float, ...]:
    """Return the mean of how much each signal moves the logit, over some thousand rows."""
    trees = compiled_trees(len(fit.signals), fit.lags, fit.ensemble)
    chosen = x[:: max(1, len(x) // MOST_WEIGHED)]
    shares = [trees.explain(np.ascontiguousarray(row)) for row in chosen]
    return tuple(np.abs(np.array(shares)).mean(axis=0)[1:].tolist())
