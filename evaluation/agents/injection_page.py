"""The section of RESULTS.md on prompt injection, from injection.json.

python -m evaluation.agents.injection_page
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.harness.page import put, table

HERE = Path(__file__).resolve().parent
SUITES = ("banking", "slack", "travel", "workspace")


def shown(figure: Mapping[str, Any] | None, form: str = ".3f") -> str:
    """Return a figure with its interval."""
    if figure is None or figure["value"] is None:
        return "-"
    value, (low, high) = figure["value"], figure["interval"]
    if low is None or high is None:
        return f"{value:{form}}"
    return f"{value:{form}} ({low:{form}} to {high:{form}})"


def row(name: str, found: Mapping[str, Any]) -> list[str]:
    """Return what one monitor did on the recorded runs."""
    told, of_suite = found["in time"], found["by suite, attacked"]
    return [
        name,
        shown(found["all"]),
        shown(found["attacked"]),
        *(shown(of_suite.get(suite)) for suite in SUITES),
        shown(told["at the decisive call or before"], ".0%"),
        shown(told["before it"], ".0%"),
    ]


def recorded(found: Mapping[str, Any]) -> str:
    """Return the table of the recorded runs."""
    here = found["recorded"]
    of_suite = here["forewarn"]["by suite, attacked"]
    suites = [f"{suite} ({of_suite[suite]['succeeded']})" for suite in SUITES]
    rows = [
        row("Forewarn: neither setting nor suite nor task seen", here["forewarn"]),
        *(row(f"`{name}` alone, learned from nothing", one)
          for name, one in here["signals alone"].items()),
        *(row(f"{name}: neither setting nor suite nor task seen", one)
          for name, one in found.get("rivals", {}).items()),
        row("memoriser of (tool, argument, value): only the setting not seen", here["memoriser"]),
    ]  # fmt: skip
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


def main() -> None:
    """Write the tables between their marks."""
    found = json.loads((HERE / "injection.json").read_text(encoding="utf-8"))
    put("injection", recorded(found))
    put("injection goals", goals(found))


if __name__ == "__main__":
    main()
