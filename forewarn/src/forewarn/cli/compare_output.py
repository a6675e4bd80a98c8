"""What ``forewarn compare`` prints: the figures of each contender, and their differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from forewarn.assessment.comparison import ContenderScores, Estimate
from forewarn.cli.common import share
from forewarn.cli.output import Output
from forewarn.errors import plural
from forewarn.signals.clock import Clock

ENOUGH = 30
"""Recordings with a violation from which on intervals hold about as often as they say."""


def print_judged(name: str, rows: Sequence[ContenderScores], clock: Clock, output: Output) -> None:
    """Print the figures of each contender, and how they differ from the first one's."""
    columns = (
        name,
        ">PR area",
        ">Brier",
        ">skill",
        ">ECE",
        ">mean lead",
        ">found",
        ">states",
        ">out of model",
    )
    output.table(columns, [_cells(row, clock) for row in rows])
    silent = [row.name for row in rows if math.isinf(row.thresholds[1])]
    if silent:
        output.note(
            f"note: {name}: {', '.join(silent)}: in some folds no threshold keeps to the budget "
            "and to --alert-share; there it never alerts"
        )
    for row in rows[1:]:
        differences = ", ".join(
            f"{what} {_signed(row.differences[key])}"
            for key, what in (("area", "PR area"), ("brier", "Brier"), ("lead", "lead"))
            if row.differences[key].value == row.differences[key].value
        )
        output.say(f"{row.name} - {rows[0].name}: {differences or 'nothing to compare'}")
    number, violated = rows[0].drawn
    if len(rows) > 1 and min(number, violated) < ENOUGH:
        output.note(
            f"note: {name}: the 95 % intervals rest on {plural(number, 'recording')}, {violated} "
            f"with a violation: with fewer than {ENOUGH} they cover the truth less often"
        )
    output.say()


def _cells(row: ContenderScores, clock: Clock) -> list[str]:
    found = row.calibration
    skill = found.skill if found is not None else None
    return [
        row.name,
        _number(row.area.value, 3),
        "-" if found is None else _number(found.brier, 4),
        "-" if skill is None else f"{skill:.3f}",
        "-" if found is None else f"{found.expected_error:.4f}",
        "-" if row.lead.value != row.lead.value else clock.say(row.lead.value, ".2f"),
        f"{row.point.detected} of {row.point.violations}",
        "-" if row.states is None else str(row.states),
        share(row.out_of_model),
    ]


def _number(value: float, digits: int) -> str:
    return "-" if value != value else f"{value:.{digits}f}"


def _signed(estimate: Estimate) -> str:
    value, low, high = estimate
    digits = ".4f" if max(abs(value), abs(low), abs(high)) < 0.1 else ".3f"
    interval = "" if low != low else f" ({low:+{digits}} to {high:+{digits}})"
    return f"{value:+{digits}}{interval}"


def judged_record(row: ContenderScores) -> dict[str, Any]:
    """Return a contender's figures for machines."""
    return {
        "name": row.name,
        "pr_area": row.area,
        "brier": row.brier,
        "calibration": row.calibration,
        "lead": row.lead,
        "violations": row.point.violations,
        "detected": row.point.detected,
        "false_alarms_per_hour": row.point.false_alarms_per_hour,
        "alert_share": row.point.alert_share,
        "thresholds": row.thresholds,
        "states": row.states,
        "out_of_model_share": row.out_of_model,
        "differences": row.differences,
        "drawn": row.drawn,
    }
