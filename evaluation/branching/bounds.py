"""Whether the bounds of a model meet what was recorded in the states of results.json.

    python -m evaluation.branching.bounds --recordings /tmp/sumo-test/town_02??

Sets credible and clustered bounds of the demo's model against the visits that are in results.json:
of 40 other recordings, and of futures. With recordings that the model has not seen, so are the
bounds of its risk with danger scores, which differ from moment to moment: their mean over all
visits of a state against what followed these. With `--write` bounds.json beside this file and
RESULTS.md have it.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evaluation.branching.states import Prediction, predictions_of
from evaluation.branching.summary import FIELDS, HERE, followed
from evaluation.branching.visits import states_of
from evaluation.closed_loop.arms import DEMO
from evaluation.harness.command import command
from evaluation.harness.page import publish, table
from forewarn.assessment.reliability import Z95
from forewarn.assessment.replay import Replaying, replay
from forewarn.config import MonitorSpec, load_spec
from forewarn.config.sections import BoundsSpec
from forewarn.models import CountModel, load_model
from forewarn.monitoring.build import build_monitor, compile_for
from forewarn.monitoring.step import Monitor
from forewarn.recordings import open_recording

MARK = "evaluation.branching.bounds"


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
SCORED = Asked("auto", "clustered")


class Visits(NamedTuple):
    """Of a state in a recording: ticks, violations that followed, and sums of what was said."""

    ticks: int
    violations: int
    risk: float
    lower: float
    upper: float


def with_bounds(spec: MonitorSpec, asked: Asked) -> MonitorSpec:
    """Return the monitor file of the two rules with these estimates and bounds."""
    change = {"estimator": asked.estimator}
    properties = {name: spec.properties[name].model_copy(update=change) for name in FIELDS}
    bounds = BoundsSpec.model_validate({"kind": asked.kind})
    return spec.model_copy(update={"properties": properties, "bounds": bounds})


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
        errors = [abs(prediction.risk - seen["share"]) for prediction, seen, _ in here]
        told[name] = {
            "states": len(here),
            "recorded": sum(meets(one, seen["low"], seen["high"]) for one, seen, _ in here),
            "share_within": sum(one.lower <= seen["share"] <= one.upper for one, seen, _ in here),
            "futures": sum(meets(one, row["low"], row["high"]) for one, _, row in here),
            "width": round(statistics.fmean(widths), 4),
            "mean_absolute_error": round(statistics.fmean(errors), 4),
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


def visited(
    monitor: Monitor, model: CountModel, recordings: Sequence[Path]
) -> dict[tuple[str, str], list[Visits]]:
    """Return for each property and state's key its visits in each recording."""
    found: dict[tuple[str, str], list[Visits]] = {}
    for path in recordings:
        with open_recording(path) as recording:
            run = replay(Replaying(monitor), recording)
        codes = list(run.history.states)
        for track in run.tracks:
            for key, all_here, followed_by in states_of(track, codes, model):
                here = all_here & ~np.isnan(track.lower)
                said = (track.probability, track.lower, track.upper)
                sums = (float(values[here].sum()) for values in said)
                one = Visits(int(here.sum()), int((here & followed_by).sum()), *sums)
                found.setdefault((track.name, key), []).append(one)
        print(path.name, flush=True)
    return found


def moment_by_moment(
    visits: Mapping[tuple[str, str], Sequence[Visits]], rows: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return what the bounds of each moment meet, on average over the visits of a state."""
    found: dict[str, dict[str, Prediction]] = {}
    recorded = []
    for row in rows:
        here = visits.get((row["property"], row["key"]), ())
        told = followed([(one.ticks, one.violations) for one in here])
        if told is None:
            continue
        said = (sum(column) / told.ticks for column in list(zip(*here, strict=True))[2:])
        found.setdefault(row["key"], {})[row["property"]] = Prediction(*said, row["horizon"])
        recorded.append({**row, "recorded": told._asdict()})
    return compare(found, recorded)


def shown(found: Mapping[str, Any]) -> str:
    """Return the table of what bounds.json has of the demo's model."""
    head = ("bounds", "rule", "meet the recorded", "hold the recorded share", "meet the futures")
    lines = [
        (
            f"{told['estimator']}, {told['kind']}",
            f"`{name}`",
            *(
                f"{told[name][key]} of {told[name]['states']}"
                for key in ("recorded", "share_within", "futures")
            ),
            f"{told[name]['width']:.3f}",
            f"{told[name]['mean_absolute_error']:.3f}",
        )
        for told in (*found["states"]["bounds"], found["moments"])
        for name in FIELDS
    ]
    return table((*head, "mean width", "mean absolute difference"), lines)


def of_states(
    spec: MonitorSpec, asked: Asked, model: CountModel, rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what the bounds of each state meet."""
    monitor = build_monitor(compile_for(with_bounds(spec, asked), model), model)
    keys = {model.vocabulary.key(code): code for code in model.states if code >= 0}
    found = {
        row["key"]: predictions_of(monitor, model.index[keys[row["key"]]])
        for row in rows
        if row["key"] in keys
    }
    return {**asked._asdict(), **compare(found, rows)}


def main(recordings: Sequence[Path] = (), config: Path = DEMO, write: bool = False) -> None:
    """Compare, and give table and figures; what is not made anew is as it was published."""
    spec, published = load_spec(config), HERE / "bounds.json"
    assert spec.model_path is not None
    model = load_model(spec.model_path)
    rows = json.loads((HERE / "results.json").read_text("utf-8"))["rows"]
    bounds = [of_states(spec, asked, model, rows) for asked in ASKED]
    found = json.loads(published.read_text("utf-8"))
    found["states"] = {"model": model.fingerprint, "bounds": bounds}
    if recordings:
        folders = [path for path in recordings if path.is_dir()]
        monitor = build_monitor(compile_for(with_bounds(spec, SCORED), model), model)
        told = moment_by_moment(visited(monitor, model, folders), rows)
        made = {"model": model.fingerprint, "recordings": [path.name for path in folders]}
        found["moments"] = {**made, **SCORED._asdict(), **told}
    publish(MARK, shown(found), found, published, write=write)
    print_dependence(rows)


if __name__ == "__main__":
    command(main)
