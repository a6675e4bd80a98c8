"""What recordings of successes alone foresee: crashes of a robot, learned from its safe runs.

    python -m evaluation.foresight.successes --robot FOLDER --folder out/study

`--robot` has the trials of a warehouse robot as published. They are judged in five parts: each part
by the safe escapes of the other ones, a trial and its mirror image in the same part, where they
count as one run. A trial is as far from normal as its farthest moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.covariance import EmpiricalCovariance
from sklearn.metrics import roc_auc_score

from evaluation.foresight import sequor
from evaluation.foresight.trials import together
from evaluation.harness.command import command
from evaluation.harness.page import Row, between, publish, resampled, shown
from evaluation.harness.runs import Pass
from forewarn import learn
from forewarn.errors import plural
from forewarn.wings.anomalies.normal_moments import (
    KEY,
    Floats,
    NormalMoments,
    distances,
    standardised,
)

TITLE = "Successes alone"
COMMAND = "python -m evaluation.foresight.successes --robot D --folder out/study --write"
LEFT_OUT = (0, 1, 3)
"""Moments before the crash that are left out, and as many at the end of safe runs."""
RESAMPLES = 200
UNTOUCHED = "the last {:.1f} s left out"


class Judged(NamedTuple):
    """A trial, and how far each moment is from normal: by Forewarn, and by a rival."""

    trial: Pass
    far: Floats
    rival: Floats
    limit: float
    alpha: float

    @property
    def crashed(self) -> bool:
        """It ends with a crash."""
        return sequor.kind_of(self.trial) in sequor.CRASHES


def judged_trials(known: Sequence[Pass], folder: Path) -> list[Judged]:
    """Return the safe trials and those that crash, each judged by the safe ones of other parts."""
    file = _monitor_file(known, folder)
    found = []
    for learned, part in sequor.in_parts(sequor.parts_of(known)):
        safe = [one for one in learned if sequor.kind_of(one) in sequor.SAFE]
        model = learn(file, [one.path for one in safe]).model
        (normal,) = model.sections[KEY]
        rival = EmpiricalCovariance().fit(np.concatenate([rows_of(one, normal) for one in safe]))
        alpha = normal.usual_alpha
        for one in part:
            if sequor.kind_of(one) in (*sequor.SAFE, *sequor.CRASHES):
                rows = rows_of(one, normal)
                far = distances(normal.moments, standardised(rows, normal.centre, normal.scale))
                squares = np.asarray(rival.mahalanobis(rows))
                found.append(Judged(one, far, np.sqrt(squares), normal.limit(alpha), alpha))
    return found


def _monitor_file(known: Sequence[Pass], folder: Path) -> Path:
    """Write the monitor file by hand with the section, and which trials are one and its mirror."""
    groups = together(((one, sequor.likeness(one)) for one in known), folder / "mirrored.csv")
    text = (sequor.HERE / "sequor_hand.yaml").read_text(encoding="utf-8")
    grouped = f"learning: {{group_by: group, group_source: {groups.resolve()}}}\n"
    file = folder / "monitor.yaml"
    file.write_text(f"{text}{grouped}anomaly: {{}}\n", encoding="utf-8")
    return file


def rows_of(one: Pass, normal: NormalMoments) -> Floats:
    """Return the signals that are compared, shape (moments, signals)."""
    return np.column_stack([one.signals[name] for name in normal.signals])


def area(part: Callable[[Judged], Floats], left_out: int, some: Sequence[Judged]) -> float | None:
    """Return the area under the ROC curve of the farthest moments; None where it has none."""
    crashed = [one.crashed for one in some]
    if len({*crashed}) < 2:
        return None
    # The first moment stays: some crashes are over in 0.2 s.
    far = [float(part(one)[: max(1, len(part(one)) - left_out)].max()) for one in some]
    return float(roc_auc_score(crashed, far))


def figures(judged: Sequence[Judged]) -> dict[str, Any]:
    """Return areas with intervals over trials and their mirror images, and what is reported."""
    alike: dict[Any, list[Judged]] = {}
    for one in judged:
        alike.setdefault(sequor.likeness(one.trial), []).append(one)
    groups = list(alike.values())
    found: dict[str, Any] = {}
    for name, part in (("distance", lambda one: one.far), ("mahalanobis", lambda one: one.rival)):
        for left_out in LEFT_OUT:

            def figure(
                some: Sequence[list[Judged]],
                part: Callable[[Judged], Floats] = part,
                left_out: int = left_out,
            ) -> float | None:
                return area(part, left_out, [one for group in some for one in group])

            found |= resampled(f"{name}_{left_out}", figure, groups, resamples=RESAMPLES)
    for kind, scenario in sequor.CRASHES.items():
        some = [one for one in judged if not one.crashed or sequor.kind_of(one.trial) == kind]
        for left_out in LEFT_OUT:
            found[f"{scenario}_{left_out}"] = area(lambda one: one.far, left_out, some)
    for name, crashed in (("crashes", True), ("safe", False)):
        some = [one for one in judged if one.crashed == crashed]
        found[name] = len(some)
        found[f"{name}_reported"] = sum(bool(one.far.max() > one.limit) for one in some)
    return found | {"alpha": max(one.alpha for one in judged)}


def rows(found: Mapping[str, Any]) -> list[Row]:
    """Return what goes into the page."""
    made = []
    for left_out in LEFT_OUT:
        kinds = [f"{name} {shown(found[f'{name}_{left_out}'])}" for name in sequor.CRASHES.values()]
        told = ", ".join([*kinds, f"Mahalanobis {shown(found[f'mahalanobis_{left_out}'])}"])
        asked = UNTOUCHED.format(left_out / 10) if left_out else "are crashes unlike safe runs?"
        area_found = f"ROC area {shown(found[f'distance_{left_out}'])} ({told})"
        ends = between(found[f"distance_{left_out}_interval"])
        made.append(Row(f"Warehouse robot: {asked}", area_found, ends))
    reported = (
        f"{found['safe_reported']} of {found['safe']} safe (promised at most "
        f"{100 * found['alpha']:.1f} % on average), {found['crashes_reported']} of "
        f"{plural(found['crashes'], 'crash', 'crashes')}"
    )
    return [*made, Row("Trials reported as anomalous", reported)]


def main(folder: Path, robot: Path, write: bool = False) -> None:
    """Learn from safe trials, judge all, write."""
    folder.mkdir(parents=True, exist_ok=True)
    known, _ = sequor.passes_of(robot, None, folder / "trials")
    found = figures(judged_trials(known, folder))
    publish(TITLE, COMMAND, rows(found), found, folder / "successes", write=write)


if __name__ == "__main__":
    command(main)
