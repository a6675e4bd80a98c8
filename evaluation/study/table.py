"""Print the figures of the study as Markdown, or put them into evaluation/RESULTS.md.

python -m evaluation.study.table evaluation/study/results.json --write
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.comparison import markdown

RESULTS = Path(__file__).parents[1] / "RESULTS.md"
BEGIN, END = "<!-- evaluation.study.table -->", "<!-- end of evaluation.study.table -->"
TITLES = {
    "s1": "yellow: who is still before the line stops (Article 38 (2))",
    "s2": "red, straight on, hardly anybody about (Article 51 (5))",
    "s3": "red, behind others who go on late (Article 51 (5))",
    "s4": "red, turning left or right (Article 51 (5))",
    "s5": "a jam beyond the junction (Article 53)",
    "s6": "no collision in a town with pedestrians",
    "s7": "no collision in unprotected left turns: the stress test",
}


def overview(scenarios: Mapping[str, Any]) -> str:
    """Return what was watched, and how well calibrated the risks are."""
    lines = [
        "| | Scenario | Training runs: violations | Test runs: hours, violations | States |"
        " Base rate | Brier (skill) | ECE |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, found in scenarios.items():
        row, fit = found["rows"][0], found["calibration"]
        skill = "-" if fit["skill"] is None else f"{fit['skill']:.2f}"
        lines.append(
            f"| {name} | {TITLES[name]} | {found['train_seeds']}: "
            f"{found['violations_in_training']} | {found['test_seeds']}: {row['hours']:.2f} h, "
            f"{row['violations']} | {found['states']} | {fit['base_rate']:.3f} | "
            f"{fit['brier']:.4f} {_span(fit['brier_interval'], '.4f')} ({skill}) | "
            f"{fit['expected_error']:.3f} {_span(fit['expected_error_interval'], '.3f')} |"
        )
    return "\n".join(lines)


def _span(ends: Sequence[float | None], digits: str) -> str:
    return f"[{', '.join('-' if end is None else format(end, digits) for end in ends)}]"


def readable(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows whose thresholds are those of the quantities, not of the scores."""
    found = []
    for row in map(dict, rows):
        name = row["monitor"]
        if name == "robustness" and row["threshold"] != "tuned":
            row["threshold"] = f"< {-float(row['threshold']):g}"
        elif name == "rule broken":
            row["threshold"] = "reactive"
        elif not name.startswith("Forewarn"):
            row["thresholds"] = [threshold and abs(threshold) for threshold in row["thresholds"]]
        found.append(row)
    return found


def first_rows(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the first version of the monitor file, if there is one."""
    rows = found.get("first", {}).get("rows", [])
    return [{**row, "monitor": "Forewarn, first version"} for row in rows]


def document(results: Mapping[str, Any]) -> str:
    """Return all tables."""
    made = results["versions"]
    parts = [
        f"Made by forewarn {made['forewarn']}, SUMO {made['sumo']}, numpy {made['numpy']}, RTAMT "
        f"{made['rtamt']}, Python {made['python']}.",
        overview(results["scenarios"]),
    ]
    for name, found in results["scenarios"].items():
        parts += [
            f"**{name}: {TITLES[name]}.** Horizon {found['horizon']:g} s; tuned to at most "
            f"{found['budget']:g} false alarms an hour on the training runs.",
            markdown(readable(found["rows"] + first_rows(found))),
        ]
    return "\n\n".join(parts)


def put_into(page: str, tables: str) -> str:
    """Return a page with the tables between the two marks."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"the page lacks the marks {BEGIN} and {END}")
    return pattern.sub(lambda _: f"{BEGIN}\n\n{tables}\n\n{END}", page)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables, or write them into the page of results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("results", type=Path)
    parser.add_argument("--write", action="store_true", help="write into evaluation/RESULTS.md")
    options = parser.parse_args(arguments)
    tables = document(json.loads(options.results.read_text(encoding="utf-8")))
    if options.write:
        RESULTS.write_text(put_into(RESULTS.read_text(encoding="utf-8"), tables), encoding="utf-8")
    else:
        print(tables)


if __name__ == "__main__":
    main()
