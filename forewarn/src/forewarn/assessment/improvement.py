"""Which further predicates would make the risk of a property better, and whether that is chance.

A predicate that is added splits the states. Half of the recordings choose: a greedy search adds the
condition that lowers the cross-validated log loss most. The other half judges each step of the
search: its recordings had no part in the choice, and each is judged by a chain that was not learned
from it. Recordings are dealt out by their digests, and those of a group, which are alike, by its
name: they are in one half, are left out together, and count as one where chance is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from forewarn.assessment.comparison import Estimate
from forewarn.assessment.ranking import curve_of
from forewarn.assessment.resampling import alike, interval, resampled
from forewarn.assessment.split_states import Cut, Recorded, Setting, Split
from forewarn.learning.folds import dealt
from forewarn.learning.thresholds import thresholds_between

#: A risk counts as at least so much, and at most 1 minus that, or one surprise would decide all.
FLOOR = 0.001
CUTS = 16
#: Parts of each half that are judged in turn.
FOLDS = 5
FLIPS = 9999
LEVEL = 0.05
#: Share of the ticks at which two cuts of a source differ, for both to be tried.
APART = 0.1

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Proposal(NamedTuple):
    """One step of the search: a condition on top of those before it.

    `chosen_by`: what it took off the log loss of the recordings that chose it, cross-validated
        (nats a tick); it flatters, for the best of many was taken.
    `gain`: what it takes off the log loss of the recordings that judge.
    `area`: what it adds there to the area under the precision-recall curve.
    `p_value`: of no gain, by flipping signs over the recordings that judge, those of a group
        together; with Holm's correction over all proposals.
    `states`: states of the chain with it.
    """

    cut: Cut
    chosen_by: float
    gain: Estimate
    area: Estimate
    p_value: float
    states: int

    @property
    def holds(self) -> bool:
        """Tell whether the gain is more than chance."""
        return self.p_value <= LEVEL and self.gain.value > 0


class Improvement(NamedTuple):
    """What the search found.

    `choosing`, `judging`: recordings of the two halves.
    `loss`, `area`: log loss and area of the states as they are, on the recordings that judge.
    `tried`: conditions that were tried by cross-validation.
    """

    choosing: tuple[str, ...]
    judging: tuple[str, ...]
    loss: float
    area: float
    states: int
    proposals: tuple[Proposal, ...]
    tried: int

    @property
    def confirmed(self) -> tuple[Proposal, ...]:
        """Return the first proposals, as far as each of them holds."""
        found = []
        for one in self.proposals:
            if not one.holds:
                break
            found.append(one)
        return tuple(found)


def improve(
    recorded: Sequence[Recorded],
    setting: Setting,
    *,
    most: int = 3,
    tries: int = 12,
    resamples: int = 300,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Improvement:
    """Search for conditions that lower the log loss of the risk.

    `most`: conditions that are proposed at the most.
    `tries`: conditions tried by cross-validation in each round: those that say most of what the
        risk so far gets wrong.

    The result is the same in whatever order the recordings come.
    """
    ordered = sorted(recorded, key=lambda one: (one.cluster, one.digest))
    half = dealt([one.cluster for one in ordered], 2)
    choosing, judging = (
        [one for one, its in zip(ordered, half, strict=True) if its == number] for number in (0, 1)
    )
    cuts: tuple[Cut, ...] = ()
    here = _Tried.of(choosing, (), setting, cuts)
    steps, tried = [], 0
    for round_ in range(most):
        found = list(_screened(choosing, here, cuts))[:tries]
        best: tuple[float, Cut, _Tried] | None = None
        for number, cut in enumerate(found):
            progress(round_ * tries + number, most * tries)
            there = _Tried.of(choosing, (), setting, (*cuts, cut))
            if best is None or there.loss < best[2].loss:
                best = here.loss - there.loss, cut, there
        tried += len(found)
        if best is None or best[0] <= 0:
            break
        cuts, here = (*cuts, best[1]), best[2]
        steps.append(best)
    judged = [_Tried.of(judging, choosing, setting, cuts[:count]) for count in range(len(cuts) + 1)]
    proposals = [
        _proposal(gained, cut, before, after, resamples)
        for (gained, cut, _), before, after in zip(steps, judged[:-1], judged[1:], strict=True)
    ]
    return Improvement(
        tuple(one.name for one in choosing),
        tuple(one.name for one in judging),
        judged[0].loss,
        judged[0].area,
        judged[0].states,
        tuple(_corrected(proposals)),
        tried,
    )


def _proposal(
    chosen_by: float, cut: Cut, before: _Tried, after: _Tried, resamples: int
) -> Proposal:
    gains = before.losses - after.losses
    groups = alike(one.cluster for one in before.recorded)

    def of_groups(
        figure: Callable[[_Tried, Sequence[int]], float], tried: _Tried, some: Sequence[list[int]]
    ) -> float:
        return figure(tried, [place for group in some for place in group])

    def drawn(figure: Callable[[_Tried, Sequence[int]], float]) -> Estimate:
        one, other = (
            resampled(groups, partial(of_groups, figure, tried), resamples=resamples, seed=1)
            for tried in (after, before)
        )
        value = of_groups(figure, after, groups) - of_groups(figure, before, groups)
        return Estimate(value, *interval(one - other, len(groups)))

    loss, area = drawn(_Tried.loss_of), drawn(_Tried.area_of)
    gain = Estimate(-loss.value, -loss.high, -loss.low)
    p_value = _flipped(np.array([gains[group].sum() for group in groups]))
    return Proposal(cut, chosen_by, gain, area, p_value, after.states)


def _flipped(gains: Floats) -> float:
    """Return the p-value of no gain: signs of the gains of recordings flip (Fisher's test)."""
    if len(gains) < 2 or not gains.any():
        return 1.0
    found = stats.permutation_test(
        (gains,),
        lambda values, axis: np.sum(values, axis=axis),
        permutation_type="samples",
        alternative="greater",
        vectorized=True,
        n_resamples=FLIPS,
        random_state=np.random.default_rng(1),
    )
    return float(found.pvalue)


def _corrected(proposals: Sequence[Proposal]) -> Iterator[Proposal]:
    """Yield the proposals with Holm's correction of their p-values (1979)."""
    order = sorted(range(len(proposals)), key=lambda i: proposals[i].p_value)
    adjusted, greatest = {}, 0.0
    for rank, place in enumerate(order):
        greatest = max(greatest, (len(order) - rank) * proposals[place].p_value)
        adjusted[place] = min(greatest, 1.0)
    for place, one in enumerate(proposals):
        yield one._replace(p_value=adjusted[place])


@dataclass(frozen=True)
class _Tried:
    """The risks of some recordings, each by a chain that was not learned from it.

    `risks`: at the judged ticks of each recording; NaN where the chain does not know the state.
    `base`: share of the ticks that a violation followed, in the recordings each chain was learned
        from.
    """

    recorded: tuple[Recorded, ...]
    risks: tuple[Floats, ...]
    base: tuple[float, ...]
    states: int

    @classmethod
    def of(
        cls,
        recorded: Sequence[Recorded],
        others: Sequence[Recorded],
        setting: Setting,
        cuts: Sequence[Cut],
    ) -> _Tried:
        """Learn from `others` and from the other folds, and judge each fold."""
        split = Split(setting, [*recorded, *others], cuts)
        clusters = [one.cluster for one in recorded]
        count = min(FOLDS, len({*clusters}))
        parts = dealt(clusters, max(count, 1))
        risks: list[Floats] = [np.zeros(0)] * len(recorded)
        base = [0.0] * len(recorded)
        states = 0
        for fold in range(count):
            test = [i for i, part in enumerate(parts) if part == fold]
            rest = [i for i in range(len(split.recorded)) if i not in test]
            model, table = split.learned(rest)
            share = split.share(rest)
            states = max(states, model.size)
            for i in test:
                risks[i], base[i] = split.risks(i, model, table), share
        return cls(tuple(recorded), tuple(risks), tuple(base), states)

    @property
    def loss(self) -> float:
        """Mean log loss of a judged tick."""
        return self.loss_of(range(len(self.recorded)))

    @property
    def area(self) -> float:
        """Area under the precision-recall curve."""
        return self.area_of(range(len(self.recorded)))

    @cached_property
    def losses(self) -> Floats:
        """Log loss of each recording, summed over its judged ticks."""
        return np.array([loss.sum() for loss in self._each])

    @cached_property
    def _each(self) -> list[Floats]:
        found = []
        for one, risk, base in zip(self.recorded, self.risks, self.base, strict=True):
            clipped = np.clip(np.where(np.isnan(risk), base, risk), FLOOR, 1.0 - FLOOR)
            followed = one.followed[one.judged]
            found.append(-np.log(np.where(followed, clipped, 1.0 - clipped)))
        return found

    def loss_of(self, places: Sequence[int]) -> float:
        """Return the mean log loss over some recordings."""
        ticks = sum(len(self.risks[i]) for i in places)
        return float(sum(self.losses[i] for i in places)) / max(ticks, 1)

    def area_of(self, places: Sequence[int]) -> float:
        """Return the area over some recordings; a state never seen counts as a warning."""
        scores = [np.where(np.isnan(self.risks[i]), np.inf, self.risks[i]) for i in places]
        truths = [self.recorded[i].followed[self.recorded[i].judged] for i in places]
        return curve_of(np.concatenate(scores), np.concatenate(truths)).area


def _screened(recorded: Sequence[Recorded], here: _Tried, cuts: Sequence[Cut]) -> Iterator[Cut]:
    """Yield the best two cuts of each source, those first that say most of what is wrong so far.

    What is wrong is the outcome minus the risk. Its sum where a condition holds, against what its
    share of the variance would be, is compared with its scatter over whole recordings, or groups of
    them: ticks of one recording depend on each other.
    """
    wrong = [
        one.followed[one.judged] - np.where(np.isnan(risk), base, risk)
        for one, risk, base in zip(recorded, here.risks, here.base, strict=True)
    ]
    residual = np.concatenate(wrong)
    clusters = np.unique([one.cluster for one in recorded], return_inverse=True)[1]
    owner = np.repeat(clusters, [len(part) for part in wrong])
    risk = np.concatenate([one.followed[one.judged] for one in recorded]) - residual
    weight = np.maximum(risk * (1.0 - risk), FLOOR)
    followed = np.concatenate([one.followed[one.judged] for one in recorded])
    found: list[tuple[float, Cut]] = []
    for source in sorted(recorded[0].values) if recorded else []:
        values = np.concatenate([one.values[source][one.judged] for one in recorded])
        known = np.isfinite(values)
        between = [
            *thresholds_between(values[known], CUTS),
            *thresholds_between(values[known & followed], CUTS),
        ]
        tried = sorted({float(f"{threshold:.4g}") for threshold in between})
        scored = [
            (_score(residual, weight, owner, values > threshold), Cut(source, threshold))
            for threshold in tried
            if Cut(source, threshold) not in cuts
        ]
        found += _unlike(scored, values)
    for _, cut in sorted(found, key=lambda one: (-one[0], one[1])):
        yield cut


def _unlike(scored: Sequence[tuple[float, Cut]], values: Floats) -> list[tuple[float, Cut]]:
    """Return the best cut of a source, and the best of those that hold at other moments."""
    ranked = sorted(scored, key=lambda one: (-one[0], one[1]))
    return [
        *ranked[:1],
        *[
            one
            for one in ranked[1:]
            if np.mean((values > one[1].threshold) != (values > ranked[0][1].threshold)) > APART
        ][:1],
    ]


def _score(residual: Floats, weight: Floats, owner: NDArray[np.int64], holds: Bools) -> float:
    share = weight[holds].sum() / weight.sum()
    each = np.bincount(owner, residual * (holds - share))
    spread = np.sqrt(np.sum(each**2))
    return float(abs(each.sum()) / spread) if spread > 0 else 0.0
