"""Learned scores among the signals of a monitor file: declared, and fitted if a model has them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from forewarn.errors import ConfigError, InputError
from forewarn.expressions.syntax import Expression
from forewarn.wings.scores.fit import DIRECTIONS, MOST_MOMENTS, LearnedScoreFit
from forewarn.wings.scores.score import Scoring

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.signals.clock import Clock
    from forewarn.wings.scores.section import LearnedScoreSpec

Parsed = Mapping[str, Expression]


def scorings(
    spec: MonitorSpec, clock: Clock, parsed: Parsed, fitted: Sequence[LearnedScoreFit]
) -> tuple[dict[str, Scoring], list[InputError]]:
    """Return the learned scores by name, and what is wrong with them.

    `parsed`: values of the signals.
    `fitted`: what was fitted; those of other names are left aside.
    """
    fits = {fit.name: fit for fit in fitted}
    errors: list[ConfigError] = []
    found: dict[str, Scoring] = {}
    learned = _learned(spec, parsed)
    for name, section in spec.learned_score.items():
        moments = clock.ticks(section.history)
        if not 0 <= moments <= MOST_MOMENTS or (section.history and not moments):
            problem = f"{section.history:g} {clock.unit} are {moments} moments"
            accepted = f"0, or {clock.duration(1):g} to {clock.duration(MOST_MOMENTS):g}"
            errors.append(
                ConfigError(problem, key=f"learned_score.{name}.history", accepted=accepted)
            )
            moments = 0
        errors += [
            ConfigError(
                f"{signal!r} depends on a learned score",
                key=f"learned_score.{name}.from[{index}]",
                accepted="signals that are not learned",
            )
            for index, signal in enumerate(section.signals or ())
            if signal in learned
        ]
        fit = fits.get(name)
        if fit is None:
            chosen = section.signals or tuple(
                one for one in spec.origin.signals if one in spec.signals and one not in learned
            )
            found[name] = Scoring(name, chosen, moments, named=section.signals is not None)
            continue
        errors += _misfits(spec, section, fit, moments)
        found[name] = Scoring(name, fit.signals, fit.moments, fit, section.signals is not None)
    return found, [error.located(file=spec.file) for error in errors]


def _learned(spec: MonitorSpec, parsed: Parsed) -> set[str]:
    """Return the signals that depend on a learned score."""
    found: set[str] = set()
    names = {*spec.learned_score}
    while names:
        found |= names
        names = {
            name
            for name, expression in parsed.items()
            if spec.signals[name].is_derived and name not in found and expression.names & found
        }
    return found - spec.learned_score.keys()


def _misfits(
    spec: MonitorSpec, section: LearnedScoreSpec, fit: LearnedScoreFit, moments: int
) -> Iterator[ConfigError]:
    """Yield in what a fit is not the one that the monitor file asks for."""
    signs = [section.directions.get(signal) for signal in fit.signals]
    directions = tuple(0 if sign is None else DIRECTIONS[sign] for sign in signs)
    missing = [signal for signal in fit.signals if signal not in spec.signals]
    asked = spec.properties.get(section.property)
    theirs = (fit.formula.split(), fit.horizon)
    pairs = [
        ("for", fit.foresees, section.property, fit.foresees != section.property),
        (
            "from",
            fit.signals,
            section.signals,
            bool(missing) or section.signals not in (None, fit.signals),
        ),
        ("history", f"{fit.moments} moments", f"{moments}", fit.moments != moments),
        ("directions", fit.directions, directions, fit.directions != directions),
    ]
    if asked is not None:
        ours = (asked.formula.split(), asked.horizon)
        horizon = "unbounded" if math.isinf(fit.horizon) else f"{fit.horizon:g}"
        target = f"{fit.formula!r} within {horizon}"
        pairs.append(("for", target, "another formula or horizon", ours != theirs))
    for key, before, now, differs in pairs:
        if differs:
            yield ConfigError(
                f"the model has a fit with {before}, the monitor file says {now}",
                key=f"learned_score.{fit.name}.{key}",
                accepted="what it was fitted with; or learn again",
            )
