"""The figures of foresight as tables: what stands, who is ahead, and what stood before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.harness.page import PAGE, put, table

MARK = "evaluation.foresight.study"
AHEAD = f"{MARK}, who is ahead"
EARLIER = f"{MARK}, earlier"
OURS, CHAIN = "Forewarn", "chain"
LEARNED = (OURS, CHAIN, "logistic regression", "boosting", "boosting, 1 s of history")
"""All but the single quantities."""

Found = Mapping[str, Mapping[str, Any]]
"""What `results.json` has: names of studies, numbers of runs as text, figures."""


def standing(found: Found) -> dict[str, dict[str, Any]]:
    """Return the last figures of each study and number of runs, under the names they have.

    ``lander, first`` and ``lander`` are the same study, judged at two times. Studies stand in
    alphabetical order, what belongs to one together, fewer runs first.
    """
    last = {(study_of(name), size): name for name, sizes in found.items() for size in sizes}
    kept = _only(found, lambda name, size: last[study_of(name), size] == name)
    places = {name: (study_of(name), min(map(int, kept[name]))) for name in kept}
    return {name: kept[name] for name in sorted(kept, key=places.__getitem__)}


def earlier(found: Found) -> dict[str, dict[str, Any]]:
    """Return the figures that were judged anew since."""
    stands = standing(found)
    return _only(found, lambda name, size: size not in stands.get(name, {}))


def study_of(name: str) -> str:
    """Return the study that was judged, whenever that was."""
    return name.partition(",")[0]


def _only(found: Found, wanted: Callable[[str, str], bool]) -> dict[str, dict[str, Any]]:
    kept = {
        name: {size: item for size, item in sizes.items() if wanted(name, size)}
        for name, sizes in found.items()
    }
    return {name: sizes for name, sizes in kept.items() if sizes}


def write_page(found: Found, page: Path = PAGE) -> None:
    """Write all tables of the page of results."""
    put(AHEAD, ahead_of(standing(found)), page)
    put(MARK, table_of(standing(found)), page)
    put(EARLIER, ahead_of(earlier(found)), page)


def ahead_of(found: Found) -> str:
    """Return a row for each study and number of runs as Markdown: ours, the best, who is ahead."""
    head = (
        *("", "Runs", "judged (violations)", "PR area", "greatest of the others"),
        *("Brier", "least of the others"),
        *("Lead at 40/h", "longest of the others", "at 80/h", "longest of the others"),
    )
    lines = []
    for name, sizes in found.items():
        for size, item in sizes.items():
            ours, *others = item["rows"]
            area = max(others, key=lambda row: row["area"][0] or 0.0)
            brier = min(others, key=lambda row: row["brier"][0] or 1.0)
            lines.append(
                [
                    *(name, size, f"{item['judged']} ({item['violations']})"),
                    f"{ours['area'][0]:.3f}",
                    f"{area['area'][0]:.3f} ({area['name']})",
                    f"{ours['brier'][0]:.4f}",
                    f"{brier['brier'][0]:.4f} ({brier['name']})",
                    *(cell for budget in range(2) for cell in _leads(ours, others, budget)),
                    "; ".join(item["ahead"]) or "nobody",
                ]
            )
    return table((*head, "Who is ahead"), lines)


def _leads(
    ours: Mapping[str, Any], others: Sequence[Mapping[str, Any]], budget: int
) -> tuple[str, str]:
    """Return our mean lead within a budget of false alarms, and the longest of the others."""
    longest = max(others, key=lambda row: row["leads"][budget] or 0.0)
    lead, theirs = (row["leads"][budget] or 0.0 for row in (ours, longest))
    return f"{lead:.2f} s", f"{theirs:.2f} s ({longest['name']})"


def table_of(found: Found) -> str:
    """Return a row for each contender and number of runs as Markdown."""
    head = (
        "",
        "Runs",
        "Monitor",
        "PR area",
        "to Forewarn",
        "Brier",
        "ECE",
        "Lead at 40/h",
        "at 80/h",
    )
    lines = []
    for name, sizes in found.items():
        for size, item in sizes.items():
            for row in shown(item["rows"]):
                apart = row["differences"].get("area")
                lines.append(
                    [
                        *(name, size, row["name"], told(row["area"], ".3f")),
                        "" if apart is None else told(apart, "+.3f"),
                        told(row["brier"], ".4f"),
                        f"{row['ece']:.3f}",
                        *("-" if lead is None else f"{lead:.2f} s" for lead in row["leads"]),
                    ]
                )
    return table(head, lines)


def shown(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows for the page: who learns, and of the single quantities the best."""
    learned = [row for row in rows if row["name"] in LEARNED]
    single = [row for row in rows if row["name"] not in LEARNED and row["ece"] is not None]
    return learned + sorted(single, key=lambda row: -row["area"][0])[:1]


def told(ends: Sequence[float | None], pattern: str) -> str:
    """Return a figure with its interval in brackets; a dash where there is none."""
    value, low, high = ends
    if value is None:
        return "-"
    return format(value, pattern) + (
        "" if low is None or high is None else f" [{low:{pattern}}, {high:{pattern}}]"
    )
