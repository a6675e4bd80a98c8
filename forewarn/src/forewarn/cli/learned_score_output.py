"""The first step of learning, if the monitor file asks for it: fit its learned scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forewarn.assessment.ranking import curve_of
from forewarn.cli.output import Output
from forewarn.errors import plural
from forewarn.learning.danger_fit import FittedScore
from forewarn.states.danger.fit import LearnedScoreFit

DECISIVE = 4


def print_scores(found: Sequence[FittedScore], noun: str, output: Output) -> None:
    """Print how well each score foresees what it did not see.

    `noun` is what the clock counts: ``tick`` or ``step``.
    """
    rows = []
    for one in found:
        fit, shares = one.fit, [*one.fit.shares.items()][:DECISIVE]
        rows.append(
            [
                fit.name,
                fit.foresees,
                str(len(one.scores)),
                f"{100 * one.followed.mean():.2f} %",
                f"{len(fit.ensemble.roots)}{' and a line' if fit.ensemble.line else ''}",
                f"{_brier(one):.4f}",
                f"{_area(one):.3f}",
                ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares),
            ]
        )
    columns = (
        "learned score", "foresees", f">{noun}s", ">followed", ">trees", ">Brier", ">PR area",
        "decided by",
    )  # fmt: skip
    output.table(columns, rows)
    for one in found:
        if one.left_out:
            listed = ", ".join(one.left_out)
            output.note(
                f"note: {one.fit.name} leaves out what is no number or never known: {listed}"
            )
        if one.stride > 1:
            output.note(
                f"note: {one.fit.name} is fitted to one of {one.stride} {noun}s, for memory"
            )
    if found:
        output.say("Brier, PR area: every recording judged by a fit that did not see it")


def _brier(one: FittedScore) -> float:
    return float(np.mean((one.scores - one.followed) ** 2))


def _area(one: FittedScore) -> float:
    return curve_of(one.scores, one.followed).area


def danger_in_words(fit: LearnedScoreFit) -> str:
    """Say what a learned score foresees, and which signals decide."""
    shares = [f"{name} {100 * share:.0f} %" for name, share in fit.shares.items()]
    cuts = ", ".join(f"{cut:g}" for cut in fit.cuts)
    return (
        f"{fit.name} foresees {fit.foresees}: {plural(len(fit.ensemble.roots), 'tree')} fitted to "
        f"{plural(len(fit.recordings), 'recording')}, decided by {', '.join(shares)}; bins cut it "
        f"at {cuts}"
    )


def scores_record(fits: Sequence[LearnedScoreFit], found: Sequence[FittedScore]) -> dict[str, Any]:
    """Return all of it for ``--json``; nothing about the fit of a score that was taken over."""
    fitted = {one.fit.name: one for one in found}
    return {fit.name: danger_record(fit) | _judged(fitted.get(fit.name)) for fit in fits}


def danger_record(fit: LearnedScoreFit) -> dict[str, Any]:
    """Return what there is to say of a learned score, for ``--json``."""
    return {
        "property": fit.foresees,
        "signals": fit.signals,
        "history": fit.moments,
        "trees": len(fit.ensemble.roots),
        "line": bool(fit.ensemble.line),
        "cuts": fit.cuts,
        "shares": fit.shares,
        "recordings": len(fit.recordings),
        "digest": fit.digest,
    }


def _judged(one: FittedScore | None) -> dict[str, Any]:
    if one is None:
        return {}
    return {
        "ticks": len(one.scores),
        "followed": int(one.followed.sum()),
        "censored": one.censored,
        "stride": one.stride,
        "left_out": one.left_out,
        "brier": _brier(one),
        "pr_area": _area(one),
    }
