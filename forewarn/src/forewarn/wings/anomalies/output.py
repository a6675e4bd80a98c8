"""What ``forewarn anomalies`` found, for people and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forewarn.cli.output import Output
from forewarn.errors import plural
from forewarn.logic.specification import CompiledSpec
from forewarn.wings.anomalies.calibration import Calibration
from forewarn.wings.anomalies.drift import Drift
from forewarn.wings.anomalies.judged_runs import (
    STEP_COLUMNS,
    JudgedRun,
    name_of,
    step_cells,
    value_name,
)
from forewarn.wings.anomalies.surprise import Predictor


def print_anomalies(
    judged: Sequence[JudgedRun],
    calibration: Calibration,
    drift: Drift | None,
    compiled: CompiledSpec,
    output: Output,
) -> None:
    """Print the anomalous runs with their most surprising steps, and whether runs drift."""
    anomalous = [one for one in judged if one.finding.anomalous]
    for one in anomalous:
        finding = one.finding
        p_value = "" if finding.p_value is None else f"p = {finding.p_value:.3g}, "
        output.say(
            f"{one.run.name}: anomalous ({p_value}{value_name(calibration)} "
            f"{finding.value:.3f}, limit {finding.limit:.3f})"
        )
        output.table(STEP_COLUMNS, step_cells(one, compiled))
        output.say()
    output.say(
        f"{len(anomalous)} of {plural(len(judged), 'run')} anomalous by the test "
        f"{calibration.test} (alpha {calibration.alpha:g}, {len(calibration.greatest)} normal runs)"
    )
    if drift is not None and drift.since is not None:
        first = judged[drift.since].run.name
        output.say(f"drift: runs become more surprising, first seen at {first}")
    elif drift is not None:
        output.say(
            f"no drift over {len(judged)} runs (evidence {drift.evidence:.2f}, limit "
            f"{drift.limit:.2f})"
        )


def anomaly_record(
    judged: Sequence[JudgedRun],
    calibration: Calibration,
    drift: Drift | None,
    compiled: CompiledSpec,
    predictor: Predictor,
) -> dict[str, Any]:
    """Return all of it for ``--json``."""
    return {
        "test": calibration.test,
        "statistic": calibration.statistic,
        "alpha": calibration.alpha,
        "period": calibration.period,
        "normal_runs": len(calibration.greatest),
        "anomalous": sum(one.finding.anomalous for one in judged),
        "runs": [_run_record(one, compiled, predictor) for one in judged],
        "drift": drift,
    }


def _run_record(one: JudgedRun, compiled: CompiledSpec, predictor: Predictor) -> dict[str, Any]:
    clock, run = compiled.abstraction.clock, one.run
    since = one.finding.since
    steps = [
        {
            "time": clock.duration(run.transitions[i].tick),
            "state": name_of(compiled, run.transitions[i].state),
            "action": run.transitions[i].action,
            "following": name_of(compiled, run.transitions[i].following),
            "surprise": run.surprises[i],
            "p": p,
            "part": expected.part,
            "expected": dict(expected.likeliest),
        }
        for i, p, expected in one.steps
    ]
    return {
        "recording": run.name,
        "transitions": len(run.transitions),
        "likelihood": predictor.likelihood(run.transitions),
        "smoothed_likelihood": -sum(run.surprises),
        **one.finding._asdict(),
        "since": None if since is None else clock.duration(run.transitions[since].tick),
        "steps": steps,
    }
