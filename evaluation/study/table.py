"""The figures of the study as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evaluation.harness.compare import markdown
from evaluation.harness.page import table

MARK = "evaluation.study.table"
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
    head = (
        *("", "Scenario", "Training runs: violations", "Test runs: hours, violations"),
        *("States", "Base rate", "Brier (skill)", "ECE"),
    )
    lines = []
    for name, found in scenarios.items():
        row, fit = found["rows"][0], found["calibration"]
        skill = "-" if fit["skill"] is None else f"{fit['skill']:.2f}"
        brier = f"{fit['brier']:.4f} {_span(fit['brier_interval'], '.4f')} ({skill})"
        error = f"{fit['expected_error']:.3f} {_span(fit['expected_error_interval'], '.3f')}"
        trained = f"{found['train_seeds']}: {found['violations_in_training']}"
        tested = f"{found['test_seeds']}: {row['hours']:.2f} h, {row['violations']}"
        rate, states = f"{fit['base_rate']:.3f}", str(found["states"])
        lines.append((name, TITLES[name], trained, tested, states, rate, brier, error))
    return table(head, lines).rstrip()


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
