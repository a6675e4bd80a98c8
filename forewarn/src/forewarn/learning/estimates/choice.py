"""What the risk of a property is to be made of, and the table that comes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from forewarn.checking.credible import RiskQuery
from forewarn.errors import plural
from forewarn.learning.estimates.crossing import Crossed, base_of, cross, logit
from forewarn.learning.estimates.ensemble import choose_line, held_weights, mixed, prior
from forewarn.learning.estimates.problem import Bools, Floats, Problem, Sample, Setting
from forewarn.models.counts import CountModel
from forewarn.models.estimates import PLAIN, Estimate, Line, Loss, Mixture, Part, source_of
from forewarn.models.shards import PropertyKey

MEMBERS = ("chain", "bayes", "logistic", "multi_step")
PENALTY = "with few violations, the weights stay close to preset ones"
FEWEST = 2
"""Recordings with a violation without which there is nothing to choose by."""

FEWEST_GROUPS = 5
"""Groups with a violation without which `ensemble` adds nothing up.

Groups differ from each other more than recordings do.
"""

FEWEST_SCORED = 5
"""Recordings with a violation without which scores do not count.

A score has more settings than the states have: fitted to fewer, its risks came out too high or too
low (evaluation/RESULTS.md).
"""


def choose(model: CountModel, question: RiskQuery, judged: PropertyKey, asked: str) -> Estimate:
    """Choose what a property's risk is made of, by what predicts other recordings best.

    `model`: with what each recording gave.
    `judged`: the property, as the recordings tell of it.
    `asked`: the estimator of the monitor file.
    """
    problem = Problem(model, question, judged)
    followed = np.zeros(problem.recordings)
    rows = problem.rows
    np.add.at(followed, rows.recording, rows.followed)
    violated = int((followed > 0).sum())
    blank = Estimate(
        judged=judged,
        asked=asked,
        chosen="chain",
        reason=problem.counted,
        plain=_alone("chain", ()),
        recordings=problem.recordings,
        with_violations=violated,
        moments=int(rows.visits.sum()),
        source=source_of(model.shards),
    )
    fewest = FEWEST_GROUPS if asked == "ensemble" and problem.counted else FEWEST
    if violated < fewest and asked != "frequency":
        return replace(blank, reason=_reasons(problem.counted, _too_few(violated, fewest, asked)))
    if not blank.moments:
        reason = "every recording ends before the horizon of its moments"
        return replace(blank, reason=reason)
    whole = problem.sample(np.ones(problem.recordings, dtype=np.int64))
    names = MEMBERS if asked == "ensemble" else tuple(dict.fromkeys(("chain", asked)))
    if asked == "multi_step" and not base_of("multi_step").settings(problem):
        return replace(blank, reason="the horizon is too short for steps of several ticks")
    crossed = cross(problem, names, whole.risk)
    if crossed is None:
        if asked == "frequency":
            return replace(blank, chosen="frequency", plain=_alone("frequency", ()))
        return replace(blank, reason="too few recordings for cross-validation")
    losses = tuple(crossed.loss(name, risk) for name, risk in crossed.risks.items())
    if asked == "ensemble":
        return _stacked(replace(blank, losses=losses), crossed)
    everywhere = np.ones(len(crossed.places), dtype=bool)
    line = choose_line(crossed, crossed.risks[asked], everywhere)
    return replace(
        blank,
        chosen=asked,
        losses=losses,
        plain=_alone(asked, crossed.chosen[asked]),
        calibration=line,
    )


def _too_few(violated: int, fewest: int, what: str) -> str:
    recordings = plural(violated, "recording")
    return f"only {recordings} with a violation ({what}: {fewest} or more)"


def _reasons(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))


def _alone(base: str, setting: Setting) -> Mixture:
    return Mixture(0.0, (Part(base, setting, 1.0),))


class _Sum(NamedTuple):
    mixture: Mixture
    line: Line
    loss: Loss


def _stacked(blank: Estimate, crossed: Crossed) -> Estimate:
    """Return the sum of all estimates, and that of estimates and scores where these are known."""
    everywhere = np.ones(len(crossed.places), dtype=bool)
    plain = _sum(crossed, everywhere, 0)
    losses = [*blank.losses, plain.loss]
    scores = np.nan_to_num(crossed.scores).T
    known = np.asarray(~np.isnan(crossed.scores).any(axis=1))
    scored, unusable = None, ""
    names = ", ".join(blank.judged.scores)
    if len(scores) and blank.with_violations < FEWEST_SCORED:
        few = _too_few(blank.with_violations, FEWEST_SCORED, "scores")
        unusable = f"{few}: {names} left out"
    elif len(scores) and not (crossed.followed[known] > 0).any():
        unusable = f"no score was in [0, 1] before a violation: {names} left out"
    elif len(scores):
        scored = _sum(crossed, known, len(scores))
        losses += [
            crossed.loss(f"score {name}", mixed(odds[:, None], np.array([0.0, 1.0])), known)
            for name, odds in zip(blank.judged.scores, scores, strict=True)
        ]
        losses.append(scored.loss)
    return replace(
        blank,
        chosen="ensemble",
        reason=_reasons(blank.reason, unusable),
        plain=plain.mixture,
        calibration=plain.line,
        scored=None if scored is None else scored.mixture,
        scored_calibration=PLAIN if scored is None else scored.line,
        losses=tuple(losses),
    )


def _sum(crossed: Crossed, where: Bools, scores: int) -> _Sum:
    names = list(crossed.risks)
    columns = [logit(crossed.risks[name]) for name in names]
    if scores:
        columns += list(np.nan_to_num(crossed.scores).T)
    mean = prior(len(names), scores, crossed.violated(where))
    weights, predicted = held_weights(crossed, np.column_stack(columns), where, mean)
    loss = crossed.loss("ensemble with scores" if scores else "ensemble", predicted, where)
    return _Sum(mixture_of(crossed, weights), choose_line(crossed, predicted, where), loss)


def mixture_of(crossed: Crossed, weights: Floats) -> Mixture:
    """Return intercept, estimates and scores with their weights, without estimates of weight 0.

    `weights` (shape (1 + estimates + scores,)): the intercept first.
    """
    names = list(crossed.risks)
    parts = [
        Part(name, crossed.chosen[name], float(weight))
        for name, weight in zip(names, weights[1:], strict=False)
    ]
    kept = [part for part in parts if part.weight > 0] or parts[:1]
    return Mixture(float(weights[0]), tuple(kept), tuple(weights[1 + len(names) :].tolist()))


def mixture_table(sample: Sample, mixture: Mixture, line: Line = PLAIN) -> Floats:
    """Return the risk of all product states, shape (n, m).

    Where the sample's chain is certain, or knows nothing, it decides. Scores are left at even odds.
    """
    chain = sample.risk
    tables = [sample.table(base_of(part.base), part.setting) for part in mixture.parts]
    if mixture.intercept == 0.0 and [part.weight for part in mixture.parts] == [1.0]:
        found = tables[0]
    else:
        odds = np.full(chain.shape, mixture.intercept)
        for part, table in zip(mixture.parts, tables, strict=True):
            odds = odds + part.weight * logit(np.nan_to_num(table, nan=0.5))
        found = _share(odds)
    if line != PLAIN:
        inner = np.clip(found, 1e-300, 1 - 1e-16)
        odds = np.log(inner) - np.log1p(-inner)
        found = _share(line.slope * odds + line.intercept)
    return np.where((chain > 0) & (chain < 1), found, chain)


def _share(odds: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -700, 700))), dtype=np.float64)


def calibrated_scores(mixture: Mixture, line: Line) -> tuple[float, ...]:
    """Return the weights of scores, once the line has calibrated their sum with the table."""
    return tuple(line.slope * weight for weight in mixture.scores)


def in_words(estimate: Estimate) -> str:
    """Say in one sentence what a risk is made of: a subject, a verb, and the data."""
    if estimate.is_chain:
        because = f": {estimate.reason}" if estimate.reason else ""
        return f"the risk is the Markov chain's{because}"
    mixture, _ = _used(estimate)
    names = [part.base for part in mixture.parts if part.weight > 0]
    names += [f"score {name}" for name in estimate.judged.scores[: len(mixture.scores)]]
    names = names or [mixture.parts[0].base]
    several = f"combines {len(names)} estimates"
    made = several if len(names) > 1 else f"is estimated by {names[0]}"
    return (
        f"the risk {made}, from {plural(estimate.recordings, 'recording')}, "
        f"{estimate.with_violations} with violations"
        f"{'; ' if estimate.reason else ''}{estimate.reason}"
    )


def details_in_words(estimate: Estimate) -> str:
    """Say how much each estimate and score weighs, and why; empty where the chain is taken."""
    if estimate.is_chain:
        return ""
    mixture, line = _used(estimate)
    parts = [_in_words(part, estimate.chosen) for part in mixture.parts if part.weight > 0]
    parts += [
        f"score {name} {weight:.2f}"
        for name, weight in zip(estimate.judged.scores, mixture.scores, strict=False)
    ]
    summed, held = "", ""
    if estimate.chosen == "ensemble":
        summed, held = "weighted sum of log-odds: ", PENALTY
    calibrated = ""
    if line != PLAIN:
        calibrated = f"calibrated: log-odds times {line.slope:.2f} {line.intercept:+.2f}"
    return _reasons(f"{summed}{', '.join(parts)}", calibrated, held)


def _used(estimate: Estimate) -> tuple[Mixture, Line]:
    if estimate.scored is None:
        return estimate.plain, estimate.calibration
    return estimate.scored, estimate.scored_calibration


def _in_words(part: Part, chosen: str) -> str:
    setting = base_of(part.base).words(part.setting)
    weight = f" {part.weight:.2f}" if chosen == "ensemble" else ""
    return f"{part.base}{weight}" + (f" ({setting})" if setting else "")
