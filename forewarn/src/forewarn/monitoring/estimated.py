"""Risk tables of properties whose risk is not the chain's alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forewarn.checking.interface import RiskTable
from forewarn.errors import ModelError, plural
from forewarn.learning.estimates.choice import calibrated_scores, choose, in_words, mixture_table
from forewarn.learning.estimates.clustered import clustered_bounds
from forewarn.learning.estimates.problem import Problem
from forewarn.models.estimates import PLAIN, Estimate, Line, Mixture, Part, source_of
from forewarn.models.shards import PropertyKey, judged_in, matching_outcomes

if TYPE_CHECKING:
    from forewarn.checking.credible import RiskQuery
    from forewarn.config.file import MonitorSpec
    from forewarn.config.sections import BoundsSpec
    from forewarn.logic.automaton import Automaton
    from forewarn.logic.specification import CompiledSpec
    from forewarn.models.counts import CountModel

ALONE = Mixture(0.0, (Part("chain", (), 1.0),))
DRAWN_SHARE = 4
FEWEST_DRAWN = 20


class Estimated(NamedTuple):
    """The risk of one property by an estimate."""

    table: RiskTable
    scored: RiskTable | None  # The same where all scores are at even odds; None without scores
    weights: tuple[float, ...]  # Of the log-odds of each score


def judged_property(spec: MonitorSpec, name: str, automaton: Automaton) -> PropertyKey:
    """Return what identifies the outcomes of a property."""
    section = spec.properties[name]
    return PropertyKey(
        name,
        " ".join(section.formula.split()),
        section.horizon,
        automaton_digest(automaton),
        spec.scores_of(name),
    )


def asks_what_followed(spec: MonitorSpec, name: str) -> bool:
    """Tell whether a property's risk or its bounds need what followed in each recording."""
    return spec.properties[name].estimator != "chain" or spec.bounds.kind == "clustered"


def automaton_digest(automaton: Automaton) -> str:
    """Return the SHA-256 of an automaton's states and steps."""
    digest = hashlib.sha256(repr((automaton.atoms, automaton.initial)).encode())
    for part in (automaton.letter_class, automaton.transitions):
        digest.update(repr(part.shape).encode() + np.ascontiguousarray(part, "<i8").tobytes())
    return digest.hexdigest()


def estimates_of(
    compiled: CompiledSpec, model: CountModel, questions: Sequence[RiskQuery]
) -> list[Estimate | None]:
    """Return what each property's risk is made of; None where it is the chain's, unasked.

    What the model keeps is taken if it was chosen from the recordings that the model has now, and
    chosen again if not: after a merge, say.

    Raises ModelError if the model does not tell what followed, as the property's estimator needs.
    """
    stored = {(one.judged, one.asked): one for one in model.estimates}
    recorded, source = judged_in(model.shards), source_of(model.shards)
    found: list[Estimate | None] = []
    for (name, section), question in zip(compiled.spec.properties.items(), questions, strict=True):
        if section.estimator == "chain":
            found.append(None)
            continue
        judged = judged_property(compiled.spec, name, question.automaton)
        kept = stored.get((judged, section.estimator))
        if kept is not None and kept.source == source:
            found.append(kept)
        elif matching_outcomes(recorded, judged) is not None or section.estimator == "ensemble":
            found.append(choose(model, question, judged, section.estimator))
        else:
            raise ModelError(
                f"estimator {section.estimator} needs a model learned with the formula, horizon "
                f"and scores of {name!r}",
                key=f"properties.{name}.estimator",
                accepted="a model learned with this monitor file; or estimator: chain",
            )
    return found


def estimated_table(
    model: CountModel, question: RiskQuery, estimate: Estimate, chain: RiskTable, bounds: BoundsSpec
) -> Estimated:
    """Return the tables of an estimate that is not the chain as it is."""
    problem = Problem(model, question, estimate.judged)
    whole = problem.sample(np.ones(problem.recordings, dtype=np.int64))
    mixtures = [(estimate.plain, estimate.calibration)]
    if estimate.scored is not None:
        mixtures.append((estimate.scored, estimate.scored_calibration))
    tables = [mixture_table(whole, *mixture) for mixture in mixtures]
    remarks = (in_words(estimate),)
    made = [
        RiskTable(table, horizon=chain.horizon, notes=chain.notes, remarks=remarks)
        for table in tables
    ]
    if bounds.kind != "none":
        made = _bounded(problem, mixtures, made, bounds)
    if estimate.scored is None:
        return Estimated(made[0], None, ())
    weights = calibrated_scores(estimate.scored, estimate.scored_calibration)
    return Estimated(made[0], made[1], weights)


def clustered_chain(
    model: CountModel,
    question: RiskQuery,
    judged: PropertyKey,
    chain: RiskTable,
    bounds: BoundsSpec,
) -> RiskTable:
    """Return the chain's table with bounds that account for recordings that differ."""
    if matching_outcomes(judged_in(model.shards), judged) is None:
        raise ModelError(
            "bounds of the kind clustered need a model learned with the formula and horizon of "
            f"{judged.name!r}",
            key="bounds.kind",
            accepted="a model learned with this monitor file; or credible, sound or none",
        )
    problem = Problem(model, question, judged)
    (table,) = _bounded(problem, [(ALONE, PLAIN)], [chain], bounds)
    return table


def _bounded(
    problem: Problem,
    mixtures: Sequence[tuple[Mixture, Line]],
    tables: Sequence[RiskTable],
    bounds: BoundsSpec,
) -> list[RiskTable]:
    drawn = max(FEWEST_DRAWN, bounds.samples // DRAWN_SHARE)
    between = clustered_bounds(
        problem,
        tuple(mixtures),
        tuple(table.values for table in tables),
        samples=drawn,
        confidence=bounds.confidence,
    )
    counted = f" ({problem.counted})" if problem.counted else ""
    remark = (
        f"{100 * bounds.confidence:.4g} % bounds by bootstrap over "
        f"{plural(problem.recordings, 'recording')}{counted}"
    )
    return [
        replace(
            table,
            lower=lower,
            upper=upper,
            kind="clustered",
            confidence=bounds.confidence,
            remarks=(*table.remarks, remark),
        )
        for table, (lower, upper) in zip(tables, between, strict=True)
    ]
