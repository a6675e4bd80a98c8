"""Which predicates foresee best? Six sets, compared on the seeds for learning alone.

    python -m evaluation.irsim.sets --training /tmp/irsim-runs

The first is that of monitor.yaml. Each half of the episodes is predicted by a model of the other.
Adds to results.json and prints the table.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.comparison import risk_traces, rounded
from evaluation.irsim.study import HERE, load, observe_halves, recordings
from forewarn.assessment.tradeoff import precision_recall
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec, compile_spec

PRESENT = "monitor.yaml"
FINER = "finer bins"
MEETING = (0.3, 0.6, 1.0, 1.6)
BRAKING = (0.3, 0.8, 1.6)
NEAR = (0.15, 0.25, 0.4)

Bins = Mapping[str, tuple[float, ...]]

BINS: Mapping[str, Bins] = {
    "time to contact for deceleration": {
        "clearance": (0.2, 0.4),
        "time_to_contact": (0.5, 1.2),
        "time_to_meet": MEETING,
    },
    "two steps of time to meet": {
        "clearance": NEAR,
        "required_deceleration": BRAKING,
        "time_to_meet": (0.4, 1.0),
    },
    "no time to meet": {"clearance": NEAR, "required_deceleration": BRAKING},
    "clearance ahead and speed for deceleration": {
        "clearance": NEAR,
        "clearance_ahead": (0.15, 0.3, 0.5),
        "time_to_meet": (0.4, 1.0),
        "speed": (0.5,),
    },
    FINER: {
        "clearance": (0.12, 0.18, 0.25, 0.4),
        "required_deceleration": (0.2, 0.5, 1.0, 2.0),
        "time_to_meet": (0.2, 0.4, 0.7, 1.1),
        "speed": (0.5,),
    },
}
"""The other five; they also know whether the planner slows down, as monitor_scan.yaml does."""


def sets() -> dict[str, CompiledSpec]:
    """Return the monitor file with each set of predicates."""
    present = load("monitor.yaml")
    slows_down = load("monitor_scan.yaml").spec.predicates["slows_down"]
    predicates = present.spec.predicates | {"slows_down": slows_down}
    changed = {
        name: present.spec.model_copy(update={"predicates": predicates, "bins": dict(bins)})
        for name, bins in BINS.items()
    }
    return {PRESENT: present} | {name: compile_spec(spec) for name, spec in changed.items()}


def figures_of(compiled: CompiledSpec, training: Sequence[Path]) -> dict[str, Any]:
    """Return the states of all episodes, the share of ticks in none, and each rule's area."""
    runs = observe_halves(compiled, training)
    known = np.concatenate([run.tracks[0].in_model for run in runs])
    return {
        "states": len(learn(training, compiled.spec, compiled.abstraction).model.states),
        "ticks": len(known),
        "unseen": rounded(float(np.mean(~known))),
        "areas": {
            name: rounded(precision_recall(risk_traces(runs, name)).area)
            for name in compiled.spec.properties
        },
    }


def table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the figures as Markdown."""
    rules = list(results[PRESENT]["areas"])
    lines = ["| Predicates | States | Ticks never seen | " + " | ".join(rules) + " |"]
    lines.append("|---|---|---|" + "---|" * len(rules))
    for name, result in results.items():
        areas = " | ".join(f"{result['areas'][rule]:.2f}" for rule in rules)
        lines.append(f"| {name} | {result['states']} | {100 * result['unseen']:.1f} % | {areas} |")
    return "\n".join(lines)


def main() -> None:
    """Compare, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--training", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=HERE / "results.json")
    arguments = parser.parse_args()
    training = recordings(arguments.training)
    found = {name: figures_of(compiled, training) for name, compiled in sets().items()}
    results = json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    results["sets"] = found
    arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
