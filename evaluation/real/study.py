"""What is foreseen on real recordings: the tables of RESULTS.md.

    python -m evaluation.real.study [--commonroad DIR] [--comma DIR] [--work DIR] [--write]

`--commonroad` is a folder with scenes of recorded traffic (`*.xml`), three or more, `--comma` one
segment of comma2k19 (a folder with `processed_log`); README.md says where they come from. Neither
is part of this repository. Prints the tables; figures go to `--folder`, out/real by default, with
`--write` to results.json beside this file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
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
)
from evaluation.harness.page import publish
from evaluation.harness.runs import Fold, leave_one_out, pass_over, predict
from evaluation.real.comma import write_bags
from evaluation.real.ngsim import write_traces
from forewarn.assessment.episodes import AlertRule
from forewarn.assessment.tradeoff import count_violations
from forewarn.errors import InputError, plural
from forewarn.logic.specification import CompiledSpec
from forewarn.monitoring.loading import load_bare

HERE = Path(__file__).resolve().parent

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


def study_property(compiled: CompiledSpec, name: str, folds: Sequence[Fold]) -> dict[str, Any]:
    """Return the table of one property and its calibration."""
    own = contender("Forewarn", AlertRule.of(compiled.spec.properties[name]), folds, name)
    rivals = signal_contenders(compiled, name, folds, RIVALS[name])
    judged = [run for fold in folds for run in fold.judged]
    tracks = [track for run in judged for track in run.tracks if track.name == name]
    return {
        "violations": [sum(map(count_violations, group.judged)) for group in own.groups],
        "rows": compare(own, rivals, best_balance),
        "calibration": calibration_of(judged, name),
        "unseen_ticks": sum(int((~track.in_model).sum()) for track in tracks),
    }


def scenes_of(data: Path, work: Path) -> dict[str, list[Path]]:
    """Return traces of the cars of each scene that has any; raises InputError if these are few."""
    scenes = {name: paths for name, paths in write_traces(data, work).items() if paths}
    if len(scenes) < 3:
        raise InputError(
            f"{plural(len(scenes), 'scene')} with a car that was seen for 1.5 s",
            accepted="three or more: each is judged by the others, at thresholds from these",
            file=data,
        )
    return scenes


def study_ngsim(data: Path, work: Path) -> dict[str, Any]:
    """Learn from the cars of three scenes, predict those of the fourth, in turn."""
    scenes = scenes_of(data, work)
    joint = load_bare(HERE / "ngsim.yaml")
    joint_folds = leave_one_out(joint, scenes)
    together = [run for fold in joint_folds for run in fold.judged]
    results: dict[str, Any] = {"cars": {name: len(paths) for name, paths in scenes.items()}}
    for name, file in ALONE.items():
        alone, rule = load_bare(HERE / file), AlertRule.of(joint.spec.properties[name])
        found = study_property(alone, name, leave_one_out(alone, scenes))
        first = contender("Forewarn, one state for all", rule, joint_folds, name)
        found["first_attempt"] = {
            "rows": rows_of(first, best_balance, fixed=(0.5,)),
            "calibration": calibration_of(together, name),
        }
        results[name] = found
    return results


def study_comma(data: Path, work: Path) -> dict[str, Any]:
    """Learn from the first part of the minute and predict the rest.

    Thresholds are chosen on the part that was learned from: there is no other.
    """
    compiled = load_bare(HERE / "comma.yaml")
    first, rest = (pass_over(compiled, path) for path in write_bags(data, work))
    runs = predict(compiled, [first], [first, rest])
    folds = [Fold(runs[:1], runs[1:])]
    return {name: study_property(compiled, name, folds) for name in compiled.spec.properties}


def tables(results: Mapping[str, Any]) -> str:
    """Return all tables as Markdown."""
    parts = []
    for source, found in results.items():
        for name, item in found.items():
            if name in RIVALS:
                rows = [*item.get("first_attempt", {}).get("rows", ()), *item["rows"]]
                calibration = item["calibration"]
                parts.append(f"### {source}: {name}\n\n{markdown(rows)}\n\n{calibration}\n")
    return "\n".join(parts)


def main(
    commonroad: Path | None = None, comma: Path | None = None, work: Path | None = None,
    folder: Path | None = None, write: bool = False,
) -> None:  # fmt: skip
    """Run one study or both; traces and bags are kept in `--work`, if it is given."""
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        work = work or Path(scratch)
        if commonroad is not None:
            results["ngsim"] = study_ngsim(commonroad, work / "ngsim")
        if comma is not None:
            results["comma2k19"] = study_comma(comma, work / "comma")
    if not results:
        raise FileNotFoundError("--commonroad DIR or --comma DIR is asked for")
    for name, found in results.items():
        text = tables({name: found})
        publish(None, text, found, HERE / "results.json", folder, write=write, within=name)


if __name__ == "__main__":
    command(main)
