"""By which rule should `estimator: auto` add up estimates and scores? Asked of training runs alone.

    python -m evaluation.foresight.rules --folder out/study --points lander:0:25 walker:25:50

A point is a study, how many of its training runs are skipped, and how many are learned from; other
training runs judge, `--judged` of them at the most. No test run is read. Each point is learned once
by the documented command, with a danger score over all signals. Then each rule weighs what that
model crossed, and the monitor looks up the risks that come of it. A rule's loss at a point is how
far it is behind the best of the rules there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.agents.outcome import forewarn
from evaluation.foresight.study import NOT_GIVEN, question_of, stacked
from evaluation.harness.command import command
from evaluation.harness.compare import risk_traces
from evaluation.harness.page import put, table
from evaluation.harness.runs import Pass, pass_over, watch, with_risk
from forewarn.assessment.ranking import precision_recall
from forewarn.assessment.reliability import UNDECIDED, outcomes
from forewarn.checking.credible import Question as Asked
from forewarn.checking.labels import label_states
from forewarn.learning.estimates.choice import STACKED, mixture_of
from forewarn.learning.estimates.crossing import Crossed, cross, logit
from forewarn.learning.estimates.problem import Problem
from forewarn.learning.estimates.stack import choose_line, held_weights, mixed, prior, surely
from forewarn.logic.specification import CompiledSpec
from forewarn.models import CountModel, load_model
from forewarn.models.estimates import PLAIN, Estimate
from forewarn.monitoring.estimated import judged_property
from forewarn.monitoring.loading import load_compiled
from forewarn.recordings import open_recording

MARK = "evaluation.foresight.rules"
HOLDS = (math.inf, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
"""Among these the rule before chose by cross-validation; infinite is the mean as it is."""

SURE = 2.326
"""Standard errors over recordings from which on one alone is surely better than the sum."""

Floats = NDArray[np.float64]
Weighed = tuple[Floats, Floats]
"""Weights, the intercept first, and what each fold predicts by those of the others."""


@dataclass(frozen=True)
class Rule:
    """How to weigh.

    Attributes
    ----------
    share : float
        Of all scores together in the weights that others are held near.
    holds : sequence of float
        How strongly; of several the one is taken that predicts best.
    ahead : float or None
        One estimate or score alone is taken if it is ahead of the sum by more than so many standard
        errors, and scores are left out where these are ahead without; None for never.
    """

    share: float = 0.5
    holds: Sequence[float] = HOLDS
    ahead: float | None = None


RULES = {
    "one alone, or without scores, where ahead at all": Rule(ahead=0.0),
    "the same, where surely ahead": Rule(ahead=SURE),
    "a sum, the hold chosen": Rule(),
    "a sum, nothing fitted": Rule(holds=(math.inf,)),
    **{
        f"a sum, scores {share:g}, hold {hold:g}": Rule(share, (hold,))
        for share in (0.5, 0.6, 0.8)
        for hold in (3.0, 1.0, 0.3, 0.1)
    },
}


@dataclass(frozen=True, eq=False)
class Point:
    """What was learned from some training runs, and the runs that judge."""

    name: str
    compiled: CompiledSpec
    model: CountModel
    crossed: Crossed
    judged: Sequence[Pass]

    def figures(self, rule: Rule) -> tuple[float, float]:
        """Return area and Brier score of the risks by a rule."""
        (estimate,) = self.model.estimates
        model = replace(self.model, estimates=(estimated(estimate, self.crossed, rule),))
        name = estimate.judged.name
        runs = risk_traces(with_risk(self.compiled, model, self.judged), name)
        wrong = []
        for run in runs:
            followed, known = outcomes(run)
            known &= np.isin(run.status, UNDECIDED) & ~np.isnan(run.score)
            wrong.append((run.score - followed)[known] ** 2)
        return precision_recall(runs, "ignore").area, float(np.concatenate(wrong).mean())


def point_of(text: str, folder: Path, judged: int) -> Point:
    """Learn from the training runs of a point, unless the model is there."""
    study, skipped, size = text.split(":")
    question = question_of(study, folder)
    first, last = int(skipped), int(skipped) + int(size)
    known = question.training[first:last]
    others = [*question.training[last:], *question.training[:first]][:judged]
    place = folder / study / "rules"
    place.mkdir(exist_ok=True)
    names = pass_over(question.compiled, known[0]).signals
    file = stacked(question, [n for n in names if n not in NOT_GIVEN], place / "stacked.yaml")
    path = place / f"{first}-{size}.json"
    if not path.exists():
        forewarn("learn", *known, "-c", file, "-o", path)
    model = load_model(path)
    compiled = load_compiled(file, model)
    passes = []
    for run in others:
        with open_recording(run) as recording:
            passes.append(watch(compiled, recording))
    return Point(text, compiled, model, crossed_of(compiled, model, question.name), passes)


def problem_of(compiled: CompiledSpec, model: CountModel, name: str) -> Problem:
    """Return what a model's recordings tell of a property."""
    spec = compiled.spec
    automaton = compiled.automata[list(spec.properties).index(name)]
    classes = label_states(automaton, model.vocabulary, model.states)
    horizon = compiled.abstraction.clock.ticks(spec.properties[name].horizon)
    judged = judged_property(spec, name, automaton)
    return Problem(model, Asked(automaton, classes, horizon), judged)


def crossed_of(compiled: CompiledSpec, model: CountModel, name: str) -> Crossed:
    """Return what the estimates predict of recordings that they were not made from."""
    problem = problem_of(compiled, model, name)
    whole = problem.sample(np.ones(problem.recordings, dtype=np.int64)).risk
    found = cross(problem, STACKED, whole)
    assert found is not None
    return found


def estimated(blank: Estimate, crossed: Crossed, rule: Rule) -> Estimate:
    """Return what a rule makes a risk of."""
    everywhere = np.ones(len(crossed.places), dtype=bool)
    plain, without = _sum(crossed, everywhere, 0, rule)
    known = np.asarray(~np.isnan(crossed.scores).any(axis=1))
    scored, within = _sum(crossed, known, crossed.scores.shape[1], rule)
    left = rule.ahead is not None and _ahead(crossed, known, without, within, rule.ahead)
    line = choose_line(crossed, without, everywhere)
    found = replace(
        blank, chosen="stack", plain=mixture_of(crossed, plain), calibration=line, scored=None
    )
    if left:
        return replace(found, scored_calibration=PLAIN)
    scored_line = choose_line(crossed, within, known)
    return replace(found, scored=mixture_of(crossed, scored), scored_calibration=scored_line)


def _sum(crossed: Crossed, where: NDArray[np.bool_], scores: int, rule: Rule) -> Weighed:
    columns = [logit(risk) for risk in crossed.risks.values()]
    mean = prior(len(columns), scores, rule.share)
    first = len(columns) if scores else 0
    logits = np.column_stack([*columns, *np.nan_to_num(crossed.scores).T[:scores]])
    tried = [_held(crossed, logits, where, mean, hold) for hold in rule.holds]
    lost = [crossed.lost(predicted)[where].sum() for _, predicted in tried]
    weights, predicted = tried[int(np.argmin(lost))]
    alone = [mixed(one[:, None], np.array([0.0, 1.0])) for one in logits.T]
    best = first + int(np.argmin([crossed.lost(one)[where].sum() for one in alone[first:]]))
    if rule.ahead is not None and _ahead(crossed, where, alone[best], predicted, rule.ahead):
        return np.eye(len(weights))[1 + best], alone[best]
    return weights, predicted


def _held(
    crossed: Crossed, logits: Floats, where: NDArray[np.bool_], mean: Floats, hold: float
) -> Weighed:
    if math.isinf(hold):
        weights = np.append(0.0, mean)
        return weights, mixed(logits, weights)
    return held_weights(crossed, logits, where, mean, hold)


def _ahead(
    crossed: Crossed, where: NDArray[np.bool_], one: Floats, other: Floats, errors: float
) -> bool:
    """Tell whether one predicts better than the other by more than so many standard errors."""
    gained = np.where(where, crossed.lost(other) - crossed.lost(one), 0.0)
    return surely(crossed.by_recording(gained), errors)


def losses_of(points: Sequence[Point], rules: dict[str, Rule]) -> dict[str, Floats]:
    """Return for each rule how far its area, and in percent its Brier score, is behind the best.

    Of shape (points, 2).
    """
    found = np.array([[one.figures(rule) for one in points] for rule in rules.values()])
    area = found[:, :, 0].max(axis=0) - found[:, :, 0]
    brier = 100 * (found[:, :, 1] / found[:, :, 1].min(axis=0) - 1)
    return dict(zip(rules, np.stack((area, brier), axis=2), strict=True))


def text_of(names: Sequence[str], losses: dict[str, Floats]) -> str:
    """Return the table: mean and worst of both, and the area's loss at each point."""
    head = ("Rule", "area: mean, worst", "Brier score: mean, worst", f"area at {', '.join(names)}")
    rows = []
    for name, lost in losses.items():
        (area, brier), (worst, most) = lost.mean(axis=0), lost.max(axis=0)
        each = " ".join(f"{1000 * value:.0f}" for value in lost[:, 0])
        rows.append([name, f"{area:.4f}, {worst:.4f}", f"{brier:.1f} %, {most:.1f} %", each])
    return table(head, rows)


def main(folder: Path, points: Sequence[str], judged: int = 100, write: bool = False) -> None:
    """Learn, weigh by each rule, judge, write."""
    found = [point_of(text, folder, judged) for text in points]
    text = text_of(points, losses_of(found, RULES))
    print(text)
    if write:
        put(MARK, text)


if __name__ == "__main__":
    command(main)
