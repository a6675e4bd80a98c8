"""False alarms of a monitor that knows where the robot means to go, and of one that does not.

    python -m evaluation.irsim.intent --training /tmp/irsim-runs --test /tmp/irsim-intent --write

Both are config/nav2.yaml; the second takes the robot to go straight on, as that file does without a
path. What they foresee is the same: nearer than 8 cm to anything while moving. With `--write`
results.json and RESULTS.md have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluation.harness.command import command
from evaluation.harness.compare import (
    Contender,
    contender,
    markdown,
    rows_of,
    signal_contenders,
    within,
)
from evaluation.harness.page import publish
from evaluation.harness.runs import two_halves
from evaluation.irsim.study import BUDGET, HERE, recordings
from forewarn.assessment.episodes import AlertRule
from forewarn.config import load_spec
from forewarn.config.signals import SignalSpec
from forewarn.logic.specification import CompiledSpec, compile_spec

MARK = "evaluation.irsim.intent"
CONFIG = HERE.parents[1] / "config" / "nav2.yaml"
RULE = "keep_clear"
WAYS = {"straight on": "none", "along the path": "odom"}
"""The frame of paths that are followed: this robot knows where it is by odometry."""

POSE = "[pose.pose.position.x, pose.pose.position.y, yaw(pose.pose.orientation)]"

SIGNALS = {"time_to_contact": -0.8, "clearance_ahead": -0.25}
"""Quantities, small where it is dangerous, and a threshold of each that the file names."""


def compiled(frame: str) -> CompiledSpec:
    """Return config/nav2.yaml without collision monitor and map, which this robot does not have."""
    spec = load_spec(CONFIG)
    signals = {name: one for name, one in spec.signals.items() if name != "collision_monitor"}
    predicates = {name: one for name, one in spec.predicates.items() if name[:7] != "stopped"}
    odometry = {"topic": "/odom", "type": "nav_msgs/msg/Odometry", "timeout": 0.3}
    signals["pose"] = SignalSpec(**odometry, value=POSE)
    own = str(signals["follows"].value).replace("'map'", f"'{frame}'")
    signals["follows"] = signals["follows"].model_copy(update={"value": own})
    found = {"signals": signals, "predicates": predicates}
    return compile_spec(spec.model_copy(update=found))


def contenders(
    way: str, training: Sequence[Path], test: Sequence[Path]
) -> Iterator[tuple[Contender, float]]:
    """Yield the monitor and single quantities of it, each with a threshold that it begins with."""
    watching = compiled(WAYS[way])
    fold = two_halves(watching, training, test)
    section = watching.spec.properties[RULE]
    yield (
        contender(f"nav2.yaml, {way}", AlertRule.of(section), [fold], RULE),
        section.thresholds.act,
    )
    for name, threshold in SIGNALS.items():
        (quantity,) = signal_contenders(watching, RULE, [fold], {name: -1.0})
        yield (
            Contender(f"`{name}`, {way}", quantity.rule, quantity.groups),
            threshold,
        )


def main(training: Path, test: Path, write: bool = False) -> None:
    """Learn, predict, and put the table."""
    learned, judged = recordings(training), recordings(test)
    rows: list[dict[str, Any]] = []
    found = [list(contenders(way, learned, judged)) for way in WAYS]
    for pair in zip(*found, strict=True):
        for one, threshold in pair:
            rows += rows_of(one, within(BUDGET), fixed=(threshold,), resamples=500)
    counts = {"training": len(learned), "test": len(judged)}
    told = {**counts, "rows": rows}
    publish(MARK, markdown(rows), told, HERE / "results.json", write=write, within="intent")


if __name__ == "__main__":
    command(main)
