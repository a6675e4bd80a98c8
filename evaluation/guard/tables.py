"""The figures of the guard as tables, from results.json; needs no agent framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.agents.outcome import shown
from evaluation.harness.page import table


def replays_table(found: Mapping[str, Sequence[Mapping[str, Any]]], what: str = "Runs of") -> str:
    """Return the shares as Markdown; `what` says what the names in `found` are."""
    rows = [
        [kind, row["what"], str(row["runs"]), shown(row["share"])]
        for kind, rows in found.items()
        for row in rows
    ]
    return table((what, "What", "Runs", "Share"), rows)


TIMES = {
    "p50": "a step, p50 (us)",
    "p95": "p95 (us)",
    "above_p50": "p50 above an empty one (us)",
    "above_least": "least round above (us)",
    "calls_above": "calls of functions above",
}


def latency_table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return times of a step as Markdown, in microseconds, and how many functions it calls."""
    rows = [[row["middleware"], *(f"{row[key]:.0f}" for key in TIMES)] for row in found]
    return table(("Middleware", *TIMES.values()), rows)
