"""Whether the bounds of a model meet what was recorded in the states of results.json.

    python -m evaluation.branching.bounds --recordings /tmp/sumo-runs/town_0??? --work /tmp/bounds

Learns from the recordings, keeping what followed in each, and sets credible and clustered bounds
against the visits that are in results.json: of 40 other recordings, and of futures. Writes
bounds.json beside this file.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.branching.states import Prediction, predictions_of
from evaluation.branching.summary import FIELDS, HERE
from evaluation.closed_loop.arms import CONFIG
from evaluation.harness.command import command
from evaluation.harness.page import table, write_json
from forewarn.assessment.outcome_counts import watch_for
from forewarn.assessment.reliability import Z95
from forewarn.config import MonitorSpec, load_spec
from forewarn.config.sections import BoundsSpec
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import compile_spec
from forewarn.models import CountModel, load_model, save_model
from forewarn.monitoring.build import build_monitor


class Asked(NamedTuple):
    """Whose risk, and which bounds."""

    estimator: str
    kind: str


ASKED = (
    Asked("chain", "credible"),
    Asked("chain", "clustered"),
    Asked("shrunk", "clustered"),
    Asked("pooled", "clustered"),
)


def with_bounds(spec: MonitorSpec, asked: Asked) -> MonitorSpec:
    """Return the monitor file of the two rules with these estimates and bounds."""
    change = {"estimator": asked.estimator}
    properties = {name: spec.properties[name].model_copy(update=change) for name in FIELDS}
    bounds = BoundsSpec.model_validate({"kind": asked.kind})
    return spec.model_copy(update={"properties": properties, "bounds": bounds})


def learned(spec: MonitorSpec, recordings: Sequence[Path], target: Path) -> CountModel:
    """Return the model of the recordings, which is learned unless it is there."""
    if not target.exists():
        compiled = compile_spec(with_bounds(spec, Asked("chain", "clustered")))
        watch = watch_for(compiled)
        found = learn(recordings, compiled.spec, compiled.abstraction, watch=watch)
        save_model(found.model, target)
    return load_model(target)


def meets(found: Prediction, low: float, high: float) -> bool:
    """Tell whether two intervals have anything in common."""
    return low <= found.upper and found.lower <= high


def compare(
    found: Mapping[str, Mapping[str, Prediction]], rows: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return for each property what its bounds meet; `found` has predictions by state's key."""
    told = {}
    for name in FIELDS:
        here = [
            (found[row["key"]][name], row["recorded"], row)
            for row in rows
            if row["property"] == name and row["recorded"] and row["key"] in found
        ]
        widths = [prediction.upper - prediction.lower for prediction, _, _ in here]
        told[name] = {
            "states": len(here),
            "recorded": sum(meets(one, seen["low"], seen["high"]) for one, seen, _ in here),
            "share_within": sum(one.lower <= seen["share"] <= one.upper for one, seen, _ in here),
            "futures": sum(meets(one, row["low"], row["high"]) for one, _, row in here),
            "width": round(statistics.fmean(widths), 4),
            "predicted": {row["key"]: one._asdict() for one, _, row in here},
        }
    return told


def design_effect(seen: Mapping[str, Any]) -> float:
    """Return by how much recordings that differ widen the variance of a recorded share."""
    ticks = seen["ticks"]
    share = min(max(seen["share"], 0.5 / ticks), 1 - 0.5 / ticks)
    return float(((seen["high"] - seen["low"]) / (2 * Z95)) ** 2 / (share * (1 - share) / ticks))


def widened(row: Mapping[str, Any]) -> Prediction:
    """Return the bounds of results.json, as wide as if ticks were as alike as those recorded."""
    factor = math.sqrt(max(1.0, design_effect(row["recorded"])))
    at, low, high = (math.log(p / (1 - p)) for p in (row["risk"], row["lower"], row["upper"]))
    ends = (at + factor * (low - at), at + factor * (high - at))
    return Prediction(row["risk"], *(1 / (1 + math.exp(-end)) for end in ends), row["horizon"])


def print_dependence(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print whether bounds miss because ticks of one recording are alike."""
    for name in FIELDS:
        here = [row for row in rows if row["property"] == name and row["recorded"]]
        ends = [(row["recorded"]["low"], row["recorded"]["high"]) for row in here]
        met = sum(meets(widened(row), *pair) for row, pair in zip(here, ends, strict=True))
        effect = statistics.median(design_effect(row["recorded"]) for row in here)
        print(f"{name}: as shipped, widened for a design effect of {effect:.1f} (median): {met}")


def main(recordings: Sequence[Path], work: Path, config: Path = CONFIG) -> None:
    """Learn, compare and print."""
    work.mkdir(parents=True, exist_ok=True)
    spec = load_spec(config)
    folders = [path for path in recordings if path.is_dir()]
    model = learned(spec, folders, work / f"bounds_{len(folders)}.model.json")
    rows = json.loads((HERE / "results.json").read_text("utf-8"))["rows"]
    keys = {model.vocabulary.key(code): code for code in model.states if code >= 0}
    report, lines = [], []
    for asked in ASKED:
        monitor = build_monitor(compile_spec(with_bounds(spec, asked)), model)
        found = {
            row["key"]: predictions_of(monitor, model.index[keys[row["key"]]])
            for row in rows
            if row["key"] in keys
        }
        told = compare(found, rows)
        report.append({**asked._asdict(), **told})
        for name, one in told.items():
            of = f" of {one['states']}"
            met = [f"{one[key]}{of}" for key in ("recorded", "share_within", "futures")]
            lines.append(
                (f"{asked.estimator}, {asked.kind}", f"`{name}`", *met, f"{one['width']:.3f}")
            )
    named = [shard.recording for shard in model.shards]
    write_json(HERE / "bounds.json", {"recordings": len(named), "digests": named, "bounds": report})
    head = ("bounds", "rule", "meet the recorded", "hold the recorded share", "meet the futures")
    print(table((*head, "mean width"), lines))
    print_dependence(rows)


if __name__ == "__main__":
    command(main)
