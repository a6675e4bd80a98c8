"""What the risk of a property is to be made of, and the table that comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from forewarn.checking.credible import Question
from forewarn.learning.estimates.crossing import BY_NAME, Crossed, cross, logit
from forewarn.learning.estimates.problem import Bools, Floats, Problem, Sample, Setting
from forewarn.learning.estimates.stack import (
    OF_FIVE,
    TINY,
    choose_line,
    choose_weights,
    mixed,
    surely,
)
from forewarn.models import CountModel
from forewarn.models.estimates import PLAIN, Estimate, Line, Loss, Mixture, Part, source_of
from forewarn.models.shards import Judged

STACKED = ("chain", "shrunk", "pooled", "lagged")
FEWEST = {"stack": 5, "auto": 5, "shrunk": 2, "pooled": 2, "lagged": 2, "counted": 0}
"""Recordings with a violation without which there is nothing to choose by."""


def choose(model: CountModel, question: Question, judged: Judged, asked: str) -> Estimate:
    """Choose what a property's risk is made of, by what predicts other recordings best.

    Parameters
    ----------
    model : CountModel
        With what each recording gave.
    judged : Judged
        The property, as the recordings tell of it.
    asked : str
        The estimator of the monitor file.
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
        reason="",
        plain=_alone("chain", ()),
        recordings=problem.recordings,
        with_violations=violated,
        moments=int(rows.visits.sum()),
        source=source_of(model.shards),
    )
    if violated < FEWEST[asked]:
        reason = (
            f"a violation follows in {violated} recordings, and it takes {FEWEST[asked]} to judge "
            f"{asked}"
        )
        return replace(blank, reason=reason)
    whole = problem.sample(np.ones(problem.recordings, dtype=np.int64))
    names = STACKED if asked in {"stack", "auto"} else tuple(dict.fromkeys(("chain", asked)))
    if asked == "lagged" and not BY_NAME["lagged"].settings(problem):
        return replace(
            blank, reason="no steps of several ticks fit into the horizon, or its tables"
        )
    crossed = cross(problem, names, whole.risk)
    if crossed is None:
        if asked == "counted":
            return replace(blank, chosen="counted", plain=_alone("counted", ()))
        return replace(
            blank, reason="the recordings cannot be parted into folds that tell anything"
        )
    losses = tuple(crossed.loss(name, risk) for name, risk in crossed.risks.items())
    if asked in {"stack", "auto"}:
        return _stacked(replace(blank, losses=losses), crossed)
    everywhere = np.ones(len(crossed.places), dtype=bool)
    line = choose_line(crossed, crossed.risks[asked], everywhere)
    return replace(
        blank,
        chosen=asked,
        reason="as the monitor file says",
        losses=losses,
        plain=_alone(asked, crossed.chosen[asked]),
        calibration=line,
    )


def _alone(base: str, setting: Setting) -> Mixture:
    return Mixture(0.0, (Part(base, setting, 1.0),))


@dataclass(frozen=True, eq=False)
class _Chosen:
    name: str
    mixture: Mixture
    line: Line
    loss: Loss
    reason: str
    predicted: Floats


def _stacked(blank: Estimate, crossed: Crossed) -> Estimate:
    everywhere = np.ones(len(crossed.places), dtype=bool)
    plain = _best(blank, crossed, everywhere, 0)
    losses = (*blank.losses, plain.loss)
    scores = crossed.scores.shape[1]
    known = np.asarray(~np.isnan(crossed.scores).any(axis=1))
    scored = None
    if scores and (crossed.followed[known] > 0).any():
        scored = _best(blank, crossed, known, scores)
        losses = (*losses, scored.loss)
        if blank.asked == "auto" and _better_without(crossed, known, plain, scored):
            plain = replace(plain, reason=f"{plain.reason}; the scores add nothing to it")
            scored = None
    return replace(
        blank,
        chosen=plain.name if scored is None else "stack",
        reason=plain.reason if scored is None else scored.reason,
        plain=plain.mixture,
        calibration=plain.line,
        scored=None if scored is None else scored.mixture,
        scored_calibration=PLAIN if scored is None else scored.line,
        losses=losses,
    )


def _better_without(crossed: Crossed, known: Bools, plain: _Chosen, scored: _Chosen) -> bool:
    """Tell whether scores are to be left out.

    They answer alone in states that no table knows. So if they predict better by themselves than
    the share of all moments does, they stay until recordings show that they lose; else they have to
    show that they add something.
    """
    gained = np.where(known, crossed.lost(scored.predicted) - crossed.lost(plain.predicted), 0.0)
    share = np.full(len(known), crossed.followed[known].sum() / crossed.visits[known].sum())
    weights = np.array(scored.mixture.scores)
    alone = mixed(np.nan_to_num(crossed.scores), np.append(0.0, weights / max(weights.sum(), TINY)))
    if crossed.lost(alone)[known].sum() < crossed.lost(share)[known].sum():
        return surely(crossed, gained, OF_FIVE)  # without scores the best of five was taken
    return bool(gained.sum() >= 0)


def _best(blank: Estimate, crossed: Crossed, where: Bools, scores: int) -> _Chosen:
    """Return the stack, or the base alone that predicts better than it where scores say nothing."""
    names = list(crossed.risks)
    columns = [logit(crossed.risks[name]) for name in names]
    if scores:
        columns += list(np.nan_to_num(crossed.scores).T)
    logits = np.column_stack(columns)
    weights, predicted, hold = choose_weights(crossed, logits, where, scores)
    loss = crossed.loss("stack with scores" if scores else "stack", predicted, where)
    reason = "the plain mean of logits: no other weights predict better"
    if hold < np.inf:
        reason = f"weights fitted, held near the plain mean by {hold:g}"
    for index in range(scores if blank.asked == "auto" else 0):
        risk = mixed(logits, np.eye(len(weights))[1 + len(names) + index])
        alone = crossed.loss(f"score {blank.judged.scores[index]}", risk, where)
        if alone.log_loss < loss.log_loss:
            weights, predicted, loss = np.eye(len(weights))[1 + len(names) + index], risk, alone
            reason = f"{alone.name} alone predicts better than a stack with it"
    mixture = _mixture(weights, names, crossed)
    single = min(blank.losses, key=lambda one: one.log_loss)
    if blank.asked == "auto" and not scores and single.log_loss < loss.log_loss:
        name = single.name
        line = choose_line(crossed, crossed.risks[name], where)
        reason = f"{name} alone predicts better than the stack"
        mixture = _alone(name, crossed.chosen[name])
        return _Chosen(name, mixture, line, loss, reason, crossed.risks[name])
    line = choose_line(crossed, predicted, where)
    return _Chosen("stack", mixture, line, loss, reason, predicted)


def _mixture(weights: Floats, names: Sequence[str], crossed: Crossed) -> Mixture:
    """Return intercept, estimates and scores with their weights, without estimates of weight 0."""
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
    tables = [BY_NAME[part.base].table(sample, part.setting) for part in mixture.parts]
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
    """Say in one sentence what a risk is made of."""
    mixture = estimate.plain if estimate.scored is None else estimate.scored
    line = estimate.calibration if estimate.scored is None else estimate.scored_calibration
    if estimate.is_chain:
        return f"the chain's risk: {estimate.reason}" if estimate.reason else "the chain's risk"
    told = []
    for part in mixture.parts:
        if part.weight == 0:
            continue
        setting = BY_NAME[part.base].words(part.setting)
        weight = "" if estimate.chosen != "stack" else f" {part.weight:.2f}"
        told.append(f"{part.base}{weight}" + (f" ({setting})" if setting else ""))
    told += [
        f"score {name} {weight:.2f}"
        for name, weight in zip(estimate.judged.scores, mixture.scores, strict=False)
    ]
    sentence = f"a stack of logits: {', '.join(told)}" if estimate.chosen == "stack" else told[0]
    if line != PLAIN:
        sentence += f"; calibrated, log-odds times {line.slope:.2f} {line.intercept:+.2f}"
    chosen = f"; {estimate.reason}" if estimate.asked in {"auto", "stack"} else ""
    return (
        f"{sentence} (from {estimate.recordings} recordings, {estimate.with_violations} with "
        f"violations{chosen})"
    )
