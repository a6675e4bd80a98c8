"""What is foreseen of a small robot's contacts: the first tables of RESULTS.md.

    python -m evaluation.irsim.study --training /tmp/irsim-runs --test /tmp/irsim-test

after `evaluation.irsim.record` has made both folders. Writes results.json beside this file and the
model of monitor.yaml to `--model`, and prints the tables.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.comparison import (
    Fold,
    best_balance,
    calibration_of,
    compare,
    markdown,
    monitor_contender,
    observe_runs,
    rounded,
    rows_of,
    signal_contenders,
    within,
)
from forewarn.assessment.replay import RecordedRun
from forewarn.config import load_spec
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models import save_model

HERE = Path(__file__).resolve().parent
BUDGET = 60.0
"""False alarms an hour that thresholds are chosen for: one a minute."""

FOLDS = 2
RIVALS = {
    "clearance": -1.0,
    "clearance_ahead": -1.0,
    "time_to_contact": -1.0,
    "time_to_meet": -1.0,
    "required_deceleration": 1.0,
}
SCAN_ONLY = "Forewarn, scan only"


def load(name: str) -> CompiledSpec:
    """Return a monitor file of this study, compiled."""
    return compile_spec(load_spec(HERE / name))


def recordings(folder: Path) -> list[Path]:
    """Return the bags of a folder that are complete: those with a note beside them."""
    return sorted(note.with_suffix("") for note in folder.glob("episode_*.json"))


def observe_halves(compiled: CompiledSpec, training: Sequence[Path]) -> list[RecordedRun]:
    """Return runs, each predicted by a model of the other half."""
    runs: list[RecordedRun] = []
    for fold in range(FOLDS):
        others = [path for at, path in enumerate(training) if at % FOLDS != fold]
        model = learn(others, compiled.spec, compiled.abstraction).model
        runs += observe_runs(compiled, model, training[fold::FOLDS])
    return runs


def observe_study(
    compiled: CompiledSpec, training: Sequence[Path], test: Sequence[Path], keep: Path | None = None
) -> Fold:
    """Return the training runs, each predicted by a model of the other half, and the test runs.

    The model of all training runs is written to `keep`.
    """
    whole = learn(training, compiled.spec, compiled.abstraction).model
    if keep is not None:
        save_model(whole, keep)
    return Fold(observe_halves(compiled, training), observe_runs(compiled, whole, test))


def study(training: Sequence[Path], test: Sequence[Path], model: Path) -> dict[str, Any]:
    """Return all tables."""
    first = load("monitor_scan.yaml")
    first_runs = observe_study(first, training, test)
    compiled = load("monitor.yaml")
    runs = observe_study(compiled, training, test, model)
    results: dict[str, Any] = {"training": len(training), "test": len(test)}
    for name in compiled.spec.properties:
        own = monitor_contender("Forewarn", compiled, name, [runs])
        before = monitor_contender(SCAN_ONLY, first, name, [first_runs])
        rivals = signal_contenders(compiled, name, [runs], RIVALS)
        results[name] = {
            "first_attempt": {
                "rows": rows_of(before, within(BUDGET), fixed=(0.3,), resamples=200),
                "calibration": calibration_of(first_runs.judged, name),
            },
            "rows": compare(own, rivals, within(BUDGET), resamples=200),
            "calibration": calibration_of(runs.judged, name),
            "balance": {
                item.name: rounded(best_balance(item.tuning, item.rule)) for item in (own, *rivals)
            },
        }
    return results


def tables(results: dict[str, Any]) -> str:
    """Return all tables as Markdown."""
    parts = []
    for name, result in results.items():
        if isinstance(result, dict) and "rows" in result:
            rows = [*result["first_attempt"]["rows"], *result["rows"]]
            before, now = result["first_attempt"]["calibration"], result["calibration"]
            parts.append(f"### {name}\n\n{markdown(rows)}\n\nfirst {before}\n\nnow {now}\n")
    return "\n".join(parts)


def main() -> None:
    """Learn, predict, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--training", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=Path("/tmp/irsim.model.json"))
    parser.add_argument("--output", type=Path, default=HERE / "results.json")
    arguments = parser.parse_args()
    training, test = (recordings(f) for f in (arguments.training, arguments.test))
    results = json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    results["prediction"] = study(training, test, arguments.model)
    arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(tables(results["prediction"]))


if __name__ == "__main__":
    main()
