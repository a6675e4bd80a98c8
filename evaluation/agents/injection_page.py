"""The tables of prompt injection, from injection.json."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evaluation.harness.page import put, table


def shown(figure: Mapping[str, Any] | None, form: str = ".3f") -> str:
    """Return a figure with its interval."""
    if figure is None or figure["value"] is None:
        return "-"
    value, (low, high) = figure["value"], figure["interval"]
    if low is None or high is None:
        return f"{value:{form}}"
    return f"{value:{form}} ({low:{form}} to {high:{form}})"


def row(name: str, found: Mapping[str, Any], suites: Iterable[str]) -> list[str]:
    """Return what one monitor did on the recorded runs."""
    told, of_suite = found["in time"], found["by suite, attacked"]
    return [
        name,
        shown(found["all"]),
        shown(found["attacked"]),
        *(shown(of_suite.get(suite)) for suite in suites),
        shown(told["at the decisive call or before"], ".0%"),
        shown(told["before it"], ".0%"),
    ]


def recorded(found: Mapping[str, Any]) -> str:
    """Return the table of the recorded runs."""
    here = found["recorded"]
    of_suite = here["forewarn"]["by suite, attacked"]
    suites = [f"{suite} ({one['succeeded']})" for suite, one in of_suite.items()]
    named = {
        "Forewarn: neither setting nor suite nor task seen": here["forewarn"],
        **{f"`{name}` alone, learned from nothing": one
           for name, one in here["signals alone"].items()},
        **{f"{name}: neither setting nor suite nor task seen": one
           for name, one in found.get("rivals", {}).items()},
        "memoriser of (tool, argument, value): only the setting not seen": here["memoriser"],
    }  # fmt: skip
    rows = [row(name, one, of_suite) for name, one in named.items()]
    head = (
        "Monitor",
        "AUC, all runs",
        "AUC, attacked runs",
        *suites,
        "told in time",
        "told before",
    )
    return table(head, rows)


def goals(found: Mapping[str, Any]) -> str:
    """Return the table of the goals that no recording has."""
    ways = {
        "learned from recorded runs": None,
        "from other wordings, too": "learned with other wordings",
        "`obedience` alone": "obedience alone",
    }
    rows = []
    for attack, one in found["unseen goals"].items():
        cells = [attack, str(one["all"]["runs"]), str(one["all"]["succeeded"])]
        for key in ways.values():
            here = one if key is None else one[key]
            told = here["in time"]["at the decisive call or before"]
            cells += [shown(here["all"]), shown(told, ".0%")]
        rows.append(cells)
    head = [title for way in ways for title in (f"AUC, {way}", "told")]
    return table(("Attack", "Runs", "obey", *head), rows)


def tell(figures: Path, *, write: bool) -> None:
    """Print the tables of what has been judged; if asked, put them into the page of results."""
    found = json.loads(figures.read_text(encoding="utf-8"))
    for part, mark, text_of in (
        ("recorded", "injection", recorded),
        ("unseen goals", "injection goals", goals),
    ):
        if part in found:
            print(text_of(found))
            if write:
                put(mark, text_of(found))
    print(f"figures: {figures}")
