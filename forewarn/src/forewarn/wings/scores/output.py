"""The first step of learning, if the monitor file asks for it: fit its learned scores."""

from __future__ import annotations

from collections.abc import Sequence

from forewarn.cli.output import Output
from forewarn.wings.scores.score_fit import FittedScore

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
                f"{one.brier:.4f}",
                f"{one.area:.3f}",
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
    output.say("Brier, PR area: every recording judged by a fit that did not see it")
