"""Learned scores in a model file: plain data, checked as a whole before any of it is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from forewarn.errors import ModelError
from forewarn.models.sections import ModelSection
from forewarn.wings.scores.fit import MOST_MOMENTS, Ensemble, LearnedScoreFit

if TYPE_CHECKING:
    from forewarn.models.checked_json import Reader

MOST_NODES = 1 << 20
MOST_SIGNALS = 1 << 10
MOST_CUTS = 1 << 8
MOST_RECORDINGS = 1 << 20
WHOLE = ("roots", "feature", "left", "right", "missing_left", "needed")
NUMBERS = ("threshold", "value")


def dump_scores(fits: Sequence[LearnedScoreFit]) -> list[dict[str, Any]]:
    """Return learned scores as JSON can hold them."""
    found = []
    for fit in fits:
        record = fit.record
        ensemble = record["ensemble"]
        ensemble["line"] = [number for row in ensemble["line"] for number in row]
        record["horizon"] = None if math.isinf(fit.horizon) else fit.horizon
        found.append({**record, "digest": fit.digest})
    return found


def parse_scores(readers: Sequence[Reader]) -> tuple[LearnedScoreFit, ...]:
    """Return learned scores from JSON.

    Raises ModelError naming key path, value and what is accepted.
    """
    fits = tuple(map(_fit, readers))
    names = [fit.name for fit in fits]
    if len({*names}) != len(names):
        raise ModelError(
            f"{names!r} names a score twice", key="learned_score", accepted="each name once"
        )
    return fits


def _fit(reader: Reader) -> LearnedScoreFit:
    signals = reader.names("signals")
    if not 0 < len(signals) <= MOST_SIGNALS:
        raise reader.wrong("signals", reader.value["signals"], f"1 to {MOST_SIGNALS} names")
    moments = reader.integer("moments", 0, MOST_MOMENTS)
    lags = reader.whole_numbers("lags", 1, moments, moments)
    if any(b <= a for a, b in pairwise(lags)):
        raise reader.wrong("lags", reader.value["lags"], "rising numbers of moments")
    directions = reader.whole_numbers("directions", -1, 1, len(signals))
    if len(directions) != len(signals):
        raise reader.wrong(
            "directions", reader.value["directions"], f"{len(signals)} of -1, 0 and 1"
        )
    cuts = reader.numbers("cuts", MOST_CUTS)
    if any(b <= a for a, b in pairwise((0.0, *cuts, 1.0))):
        raise reader.wrong("cuts", reader.value["cuts"], "rising numbers between 0 and 1")
    weights = reader.numbers("weights", MOST_SIGNALS)
    if len(weights) != len(signals) or any(weight < 0 for weight in weights):
        raise reader.wrong("weights", reader.value["weights"], f"{len(signals)} numbers from 0 on")
    recordings = reader.texts("recordings", MOST_RECORDINGS)
    groups = reader.texts("groups", MOST_RECORDINGS) if "groups" in reader.value else ()
    if groups and len(groups) != len(recordings):
        raise reader.wrong("groups", reader.value["groups"], f"none, or {len(recordings)} names")
    fit = LearnedScoreFit(
        name=reader.text("name"),
        foresees=reader.text("foresees"),
        formula=reader.text("formula"),
        horizon=reader.horizon(),
        signals=signals,
        moments=moments,
        lags=lags,
        directions=directions,
        ensemble=_ensemble(reader.child("ensemble")),
        cuts=cuts,
        weights=weights,
        recordings=recordings,
        groups=groups,
        fitted_with=reader.text("fitted_with"),
    )
    problem = fit.ensemble.problem(len(fit.features))
    if problem is not None:
        key, accepted = problem
        ensemble = reader.child("ensemble")
        raise ensemble.wrong(key, ensemble.value.get(key), accepted)
    if fit.digest != reader.text("digest"):
        raise reader.wrong("digest", reader.value["digest"], fit.digest)
    return fit


def _ensemble(reader: Reader) -> Ensemble:
    # Which numbers are possible depends on the signals: `Ensemble.problem` tells.
    arrays: dict[str, Any] = {
        **{key: reader.whole_numbers(key, -1, MOST_NODES, MOST_NODES) for key in WHOLE},
        **{key: reader.numbers(key, MOST_NODES) for key in NUMBERS},
    }
    numbers = reader.numbers("line", 4 * MOST_NODES) if "line" in reader.value else ()
    if len(numbers) % 4:
        raise reader.wrong("line", reader.value["line"], "four numbers for each feature")
    line = tuple(tuple(numbers[i : i + 4]) for i in range(0, len(numbers), 4))
    return Ensemble(base=reader.number("base"), line=line, **arrays)


def in_words(fits: Sequence[LearnedScoreFit]) -> str:
    """Say what was learned, a line for each score."""
    return "\n".join(fit.in_words for fit in fits)


def facts(fits: Sequence[LearnedScoreFit]) -> dict[str, Any]:
    """Return the figures of each score, by its name."""
    return {fit.name: fit.facts for fit in fits}


SECTION = ModelSection(dump_scores, parse_scores, in_words=in_words, facts=facts)
