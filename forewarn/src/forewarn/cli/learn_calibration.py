"""The last step of learning, if asked for: calibrate risks on recordings that were kept back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forewarn.assessment.calibration import Fitted, fit
from forewarn.assessment.replay import RecordedRun, Replaying, settled_runs, weighted_runs
from forewarn.cli.common import incident_labels, incidents_option, labelled, recording_path
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.cli.readers import Readers
from forewarn.cli.replay_command import Censoring, censoring_option
from forewarn.cli.tables import agreement
from forewarn.cli.train_test_separation import without_known
from forewarn.errors import ConfigError, InputError, plural
from forewarn.logic.specification import CompiledSpec
from forewarn.models.calibration_map import METHODS, Method
from forewarn.models.counts import CountModel
from forewarn.monitoring.build import build_monitor


@dataclass(frozen=True, kw_only=True)
class CalibrationOptions:
    """What the risks are calibrated on, and how."""

    calibrate: list[Path] = option(
        "calibrate the risks on these recordings, which are not learned from",
        "BAG",
        of=recording_path,
        nargs="+",
    )
    calibration: str | None = option(
        "how; none only measures (learning.calibration, or isotonic)", choices=(*METHODS, "none")
    )
    censoring: Censoring = censoring_option()
    incidents: list[Path] = incidents_option(
        "what followed an alert at an incident labelled true counts as unknown in the calibration "
        "if it was no violation: an operator may have prevented one"
    )


def calibration_method(
    compiled: CompiledSpec, given: str | None, held_out: Sequence[Path]
) -> Method | None:
    """Return how to calibrate; None if not at all.

    Raises
    ------
    ConfigError
        If a method is asked for, and there is nothing to calibrate on.
    """
    asked = given if given is not None else compiled.spec.learning.calibration
    if not held_out and asked != "none":
        raise ConfigError(
            f"{asked} calibration needs recordings that are not learned from",
            file=compiled.spec.file if given is None else None,
            key="learning.calibration" if given is None else "--calibration",
            accepted="--calibrate BAG..., or none",
        )
    if given is None and asked == "none" and held_out:
        return "isotonic"
    return next((method for method in METHODS if method == asked), None)


def used_incidents(
    folders: Sequence[Path], held_out: Sequence[Path], output: Output
) -> list[Any] | None:
    """Return the incidents whose labels are to be used; None without any.

    Raises
    ------
    InputError
        If nothing is calibrated, or a label cannot be read.
    """
    if folders and not held_out:
        raise InputError("nothing is calibrated", key="--incidents", accepted="--calibrate as well")
    return labelled(folders, output)


def calibrate_model(
    compiled: CompiledSpec,
    model: CountModel,
    recordings: Sequence[Path],
    method: Method | None,
    readers: Readers,
    *,
    weigh: bool = False,
    incidents: Sequence[Any] | None = None,
) -> tuple[CountModel, list[Fitted]]:
    """Return the model with its maps, and how they came about.

    Parameters
    ----------
    incidents : sequence of Incident, optional
        What people say of alerts in these recordings.

    Raises
    ------
    RecordingError
        If the model was learned from one of the recordings.
    """
    accepted = "recordings that are not learned from"
    consequence = "calibrating on it would mend nothing"
    fresh = without_known(
        recordings, model, compiled.spec, "this model", consequence, accepted, readers
    )
    plain = replace(model, recalibration=())
    how = Replaying(build_monitor(compiled, plain), allow_missing=readers.allow_missing)
    runs = readers.replay(how, [*fresh])
    runs = settled_runs(runs)
    if incidents is not None:
        runs = _heeded(runs, incidents, readers.output)
    if weigh:
        runs = weighted_runs(runs)
    known = [fresh[run.path] for run in runs]
    digests, clusters = [one.digest for one in known], [one.cluster for one in known]
    found = [
        fit(
            name,
            section,
            [run.predictions[index] for run in runs],
            method=method,
            rate=compiled.abstraction.clock.rate,
            recordings=digests,
            clusters=clusters,
        )
        for index, (name, section) in enumerate(compiled.spec.properties.items())
    ]
    groups = () if compiled.spec.learning.group_by is None else tuple(sorted({*clusters}))
    maps = tuple(replace(one.found, groups=groups) for one in found if one.found is not None)
    return replace(plain, recalibration=maps), found


def _heeded(
    runs: Sequence[RecordedRun], incidents: Sequence[Any], output: Output
) -> list[RecordedRun]:
    """Leave out violations that an operator may have prevented, by the labels."""
    without_prevented = incident_labels().without_prevented
    pairs = [without_prevented(run, incidents) for run in runs]
    heard = plural(sum(count for _, count in pairs), "alert")
    output.note(f"{heard} labelled true without a violation: these outcomes count as unknown")
    return [run for run, _ in pairs]


def print_calibration(found: Sequence[Fitted], noun: str, output: Output) -> None:
    """Print Brier score and expected calibration error before and after.

    `noun` is what the clock counts: ``tick`` or ``step``.
    """
    rows = []
    for fitted in found:
        before, after = fitted.before, fitted.after
        rows.append(
            [
                fitted.name,
                "-" if fitted.found is None else fitted.found.method,
                "0" if before is None else str(before.ticks),
                "-" if before is None else f"{100 * before.base_rate:.2f} %",
                *agreement(before),
                *agreement(after),
            ]
        )
    columns = (
        "calibration", "method", f">{noun}s", ">followed", ">Brier", ">ECE", ">Brier after",
        ">ECE after",
    )  # fmt: skip
    output.table(columns, rows)
    if any(fitted.after is not None for fitted in found):
        output.say("after: every run judged by a map fitted to the other held-out runs")
    for fitted in found:
        if fitted.reason and fitted.found is None and fitted.reason != "not asked for":
            output.warn(f"{fitted.name} is not calibrated: {fitted.reason}")


def calibration_record(found: Sequence[Fitted]) -> dict[str, Any]:
    """Return all of it for ``--json``."""
    return {
        fitted.name: {
            "method": None if fitted.found is None else fitted.found.method,
            "reason": fitted.reason,
            "before": fitted.before,
            "after": fitted.after,
        }
        for fitted in found
    }
