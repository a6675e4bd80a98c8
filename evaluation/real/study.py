"""What is foreseen on real recordings: the tables of RESULTS.md.

    python -m evaluation.real.study --commonroad DIR --comma DIR [--work DIR]

`--commonroad` is a folder with the four NGSIM scenes (`USA_*.xml`), `--comma` one segment of
comma2k19 (a folder with `processed_log`); README.md says where they come from. Neither is part of
this repository. Writes results.json beside this file and prints the tables.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from evaluation.comparison import (
    Fold,
    best_balance,
    calibration_of,
    compare,
    learn_and_observe,
    markdown,
    monitor_contender,
    rows_of,
    signal_contenders,
)
from evaluation.real.comma import write_bags
from evaluation.real.ngsim import write_traces
from forewarn.assessment.replay import RecordedRun
from forewarn.assessment.tradeoff import count_violations
from forewarn.config import load_spec
from forewarn.logic.specification import CompiledSpec, compile_spec

HERE = Path(__file__).resolve().parent
CUT = 40.0

FOLLOWING = {"headway": -1.0, "time_to_collision": -1.0, "required_deceleration": 1.0}
RIVALS: dict[str, dict[str, float]] = {
    "de_g1_safe_distance": {"margin": -1.0, **FOLLOWING},
    "hard_braking": {"just_now": -1.0, "acceleration": -1.0, "speed": 1.0,
                     "lead_acceleration": -1.0, **FOLLOWING},
    "no_cut_in": {"side_crossing": -1.0},
    "gentle": {"acceleration": -1.0, "closing": 1.0, **FOLLOWING},
    "no_closing_in": {"closing": 1.0, **FOLLOWING},
    "two_seconds": FOLLOWING,
}  # fmt: skip
"""Quantities that are compared for each property; -1 where a small value is the dangerous one."""

ALONE = {
    "de_g1_safe_distance": "ngsim_distance.yaml",
    "hard_braking": "ngsim_braking.yaml",
    "no_cut_in": "ngsim_cut_in.yaml",
}


def load(name: str) -> CompiledSpec:
    """Return a monitor file of this study, compiled."""
    return compile_spec(load_spec(HERE / name))


def leave_one_out(compiled: CompiledSpec, scenes: Mapping[str, Sequence[Path]]) -> list[Fold]:
    """Predict every scene with a model of the others.

    Thresholds are chosen in the same way within those others, each predicted by the rest of
    them: on the very runs that it learned from, a model knows too much.
    """
    tuning: dict[str, list[RecordedRun]] = {name: [] for name in scenes}
    for pair in combinations(scenes, 2):
        training = [path for name in scenes if name not in pair for path in scenes[name]]
        both = [path for name in pair for path in scenes[name]]
        runs = learn_and_observe(compiled, training, both)
        first = len(scenes[pair[0]])
        tuning[pair[0]] += runs[first:]
        tuning[pair[1]] += runs[:first]
    folds = []
    for name, judged in scenes.items():
        training = [path for other in scenes if other != name for path in scenes[other]]
        folds.append(Fold(tuning[name], learn_and_observe(compiled, training, judged)))
    return folds


def study_property(
    compiled: CompiledSpec, name: str, folds: Sequence[Fold], label: str = "Forewarn"
) -> dict[str, Any]:
    """Return the table of one property and its calibration."""
    contender = monitor_contender(label, compiled, name, folds)
    rivals = signal_contenders(compiled, name, folds, RIVALS[name])
    judged = [run for fold in folds for run in fold.judged]
    return {
        "violations": [sum(map(count_violations, g.judged)) for g in contender.groups],
        "rows": compare(contender, rivals, best_balance),
        "calibration": calibration_of(judged, name),
        "unseen_ticks": sum(
            int((~t.in_model).sum()) for r in judged for t in r.tracks if t.name == name
        ),
    }


def study_ngsim(data: Path, work: Path) -> dict[str, Any]:
    """Learn from the cars of three scenes, predict those of the fourth, in turn."""
    scenes = {name: paths for name, paths in write_traces(data, work).items() if paths}
    joint = load("ngsim.yaml")
    joint_folds = leave_one_out(joint, scenes)
    results: dict[str, Any] = {"cars": {name: len(paths) for name, paths in scenes.items()}}
    for name, file in ALONE.items():
        alone = load(file)
        found = study_property(alone, name, leave_one_out(alone, scenes))
        first = monitor_contender("Forewarn, one state for all", joint, name, joint_folds)
        found["first_attempt"] = {
            "rows": rows_of(first, best_balance, fixed=(0.5,)),
            "calibration": calibration_of([run for f in joint_folds for run in f.judged], name),
        }
        results[name] = found
    return results


def study_comma(data: Path, work: Path) -> dict[str, Any]:
    """Learn from the first part of the minute and predict the rest.

    Thresholds are chosen on the part that was learned from: there is no other.
    """
    first, rest = write_bags(data, work, CUT)
    compiled = load("comma.yaml")
    runs = learn_and_observe(compiled, [first], [first, rest])
    folds = [Fold(runs[:1], runs[1:])]
    return {name: study_property(compiled, name, folds) for name in compiled.spec.properties}


def tables(results: Mapping[str, Any]) -> str:
    """Return all tables as Markdown."""
    parts = []
    for source, found in results.items():
        for name, item in found.items():
            if not isinstance(item, dict) or "rows" not in item:
                continue
            rows = [*item.get("first_attempt", {}).get("rows", ()), *item["rows"]]
            calibration = item["calibration"]
            parts.append(f"### {source}: {name}\n\n{markdown(rows)}\n\n{calibration}\n")
    return "\n".join(parts)


def main() -> None:
    """Run both studies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--commonroad", type=Path, required=True)
    parser.add_argument("--comma", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="folder for traces and bags (default: none kept)")
    parser.add_argument("--output", type=Path, default=HERE / "results.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = arguments.work or Path(scratch)
        try:
            results = {
                "ngsim": study_ngsim(arguments.commonroad, work / "ngsim"),
                "comma2k19": study_comma(arguments.comma, work / "comma"),
            }
        except FileNotFoundError as error:
            sys.exit(f"study: error: {error}; see evaluation/real/README.md")
    arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(tables(results))


if __name__ == "__main__":
    main()
