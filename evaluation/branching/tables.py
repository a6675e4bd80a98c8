"""The tables of branched futures, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.harness.page import table


def tables(report: Mapping[str, Any]) -> str:
    """Return all that the page shows between the marks."""
    alike = [
        f"`{name}`: all futures ended alike in {item['unanimous']} of {item['moments']} moments."
        for name, item in report["overall"].items()
        if item["states"]
    ]
    head = (
        f"{report['futures']:,} futures of {report['moments']} moments in {len(report['runs'])} "
        f"runs; visits in {report['recordings']} recordings. {' '.join(alike)}\n\n"
    )
    return f"{head}{_overall(report)}\n{single_moments(report['rows'])}\n{_states(report)}"


def _recorded(row: Mapping[str, Any] | None) -> tuple[str, str]:
    if row is None:
        return "", ""
    return (
        f"{row['share']:.3f} ({row['low']:.3f} to {row['high']:.3f})",
        f"{row['ticks']} / {row['recordings']}",
    )


def _overall(report: Mapping[str, Any]) -> str:
    head = (
        *("rule, predicted against", "product states", "mean difference"),
        *("mean absolute difference", "intervals that meet"),
    )
    rows = [
        (
            f"`{name}`, {against}",
            str(item[f"{prefix}states"]),
            f"{item[f'{prefix}bias']:+.3f}",
            f"{item[f'{prefix}mean_absolute_error']:.3f}",
            str(item[f"{prefix}intervals_meet"]),
        )
        for name, item in report["overall"].items()
        for against, prefix in (("recorded", "recorded_"), ("in futures", ""))
        if item["states"] and item[f"{prefix}states"]
    ]
    return table(head, rows)


def single_moments(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of what followed the single moments that have most futures."""
    head = (
        *("rule", "product state", "predicted (95 % credible)"),
        *("in futures of all moments (95 % over runs)", "futures a moment"),
        "share with a violation, of each such moment",
    )
    most = max(size for row in rows for size in row["futures_each"])
    lines = []
    for row in rows:
        each = zip(row["frequencies"], row["futures_each"], strict=True)
        shares = sorted(share for share, size in each if size == most)
        if row["chosen"] and shares:
            each_share = ", ".join(f"{share:.3g}" for share in shares)
            known = f"`{row['property']}`", row["state"], _predicted(row), _mean(row)
            lines.append((*known, str(most), each_share))
    return table(head, lines)


def _states(report: Mapping[str, Any]) -> str:
    head = (
        *("rule, horizon", "product state", "predicted (95 % credible)"),
        *("recorded (95 % over recordings)", "ticks / recordings", "in futures (95 % over runs)"),
        *("moments / runs", "of single moments", "deviation between moments"),
        *("of counting alone", "decided by the moment"),
    )
    rows = [
        (
            f"`{row['property']}`, {row['horizon'] / 10:g} s",
            row["state"],
            _predicted(row),
            *_recorded(row["recorded"]),
            _mean(row),
            f"{row['moments']} / {row['runs']}",
            f"{min(row['frequencies']):.2f} to {max(row['frequencies']):.2f}",
            f"{row['between']:.2f}",
            f"{row['binomial']:.2f}",
            "" if math.isnan(row["decided"]) else f"{row['decided']:.0%}",
        )
        for row in report["rows"]
    ]
    return table(head, rows)


def _predicted(row: Mapping[str, Any]) -> str:
    return f"{row['risk']:.3f} ({row['lower']:.3f} to {row['upper']:.3f})"


def _mean(row: Mapping[str, Any]) -> str:
    return f"{row['mean']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
