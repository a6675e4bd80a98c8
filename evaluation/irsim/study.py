"""What is foreseen of a small robot's contacts: the first tables of RESULTS.md.

    python -m evaluation.irsim.study --training /tmp/irsim-runs --test /tmp/irsim-test

after `evaluation.irsim.record` has made both folders. Writes the model of
monitor.yaml to `--model`, and prints the tables. With `--write` results.json beside this file has
the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.harness.command import command
from evaluation.harness.compare import (
    best_balance,
    calibration_of,
    compare,
    contender,
    markdown,
    rows_of,
    signal_contenders,
    within,
)
from evaluation.harness.page import publish, rounded
from evaluation.harness.runs import two_halves
from forewarn.assessment.episodes import AlertRule
from forewarn.learning.pipeline import learn
from forewarn.models import save_model
from forewarn.monitoring.loading import load_bare

HERE = Path(__file__).resolve().parent
BUDGET = 60.0
"""False alarms an hour that thresholds are chosen for: one a minute."""

RIVALS = {
    "clearance": -1.0,
    "clearance_ahead": -1.0,
    "time_to_contact": -1.0,
    "time_to_meet": -1.0,
    "required_deceleration": 1.0,
}
SCAN_ONLY = "Forewarn, scan only"


def recordings(folder: Path) -> list[Path]:
    """Return the bags of a folder that are complete: those with a note beside them."""
    return sorted(note.with_suffix("") for note in folder.glob("episode_*.json"))


def study(training: Sequence[Path], test: Sequence[Path]) -> dict[str, Any]:
    """Return all tables."""
    first, compiled = load_bare(HERE / "monitor_scan.yaml"), load_bare(HERE / "monitor.yaml")
    before, now = (two_halves(item, training, test) for item in (first, compiled))
    results: dict[str, Any] = {"training": len(training), "test": len(test)}
    for name, section in compiled.spec.properties.items():
        own = contender("Forewarn", AlertRule.of(section), [now], name)
        rule = AlertRule.of(first.spec.properties[name])
        scan_only = contender(SCAN_ONLY, rule, [before], name)
        rivals = signal_contenders(compiled, name, [now], RIVALS)
        results[name] = {
            "first_attempt": {
                "rows": rows_of(scan_only, within(BUDGET), fixed=(0.3,), resamples=200),
                "calibration": calibration_of(before.judged, name),
            },
            "rows": compare(own, rivals, within(BUDGET), resamples=200),
            "calibration": calibration_of(now.judged, name),
            "balance": {
                item.name: rounded(best_balance(item.tuning, item.rule)) for item in (own, *rivals)
            },
        }
    return results


def main(
    training: Path,
    test: Path,
    model: Path = Path("/tmp/irsim.model.json"),
    write: bool = False,
) -> None:
    """Learn, predict, and write the results."""
    found = study(recordings(training), recordings(test))
    compiled = load_bare(HERE / "monitor.yaml")
    save_model(learn(recordings(training), compiled.spec, compiled.abstraction).model, model)
    text = "\n".join(
        f"### {name}\n\n{markdown([*item['first_attempt']['rows'], *item['rows']])}\n\n"
        f"{item['calibration']}\n"
        for name, item in found.items()
        if isinstance(item, dict)
    )
    publish(None, text, found, HERE / "results.json", write=write, within="prediction")


if __name__ == "__main__":
    command(main)
