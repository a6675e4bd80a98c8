"""The figures of the guard as tables, from results.json; needs no agent framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.agents.outcome import shown
from evaluation.harness.page import table


def replays_table(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the shares as Markdown."""
    rows = [
        [kind, row["what"], str(row["runs"]), shown(row["share"])]
        for kind, rows in found.items()
        for row in rows
    ]
    return table(("Runs of", "What", "Runs", "Share"), rows)


def latency_table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return times of a step as Markdown, in microseconds."""
    rows = [
        [row["middleware"], *(f"{row[key]:.0f}" for key in ("p50", "p95", "above_p50"))]
        for row in found
    ]
    head = ("Middleware", "a step, p50 (us)", "p95 (us)", "p50 above an empty one (us)")
    return table(head, rows)
