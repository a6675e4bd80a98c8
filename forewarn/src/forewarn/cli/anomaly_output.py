"""What ``forewarn anomalies`` found, for people and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from forewarn.assessment.drift import Drift
from forewarn.cli.output import Output
from forewarn.learning.transitions import Transition
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import END_LABEL
from forewarn.monitoring.anomalies import Calibration, Finding
from forewarn.monitoring.surprise import Expected, Predictor
from forewarn.recordings.interface import plural


class Run(NamedTuple):
    """One run, an episode of a recording, and how surprising each of its transitions is."""

    name: str
    digest: str
    transitions: list[Transition]
    surprises: list[float]
    recording: str


class Judged(NamedTuple):
    """A run with what is said of it; `steps` are its most surprising transitions, worst first."""

    run: Run
    finding: Finding
    steps: list[tuple[int, float, Expected]]


def print_anomalies(
    judged: Sequence[Judged],
    calibration: Calibration,
    drift: Drift | None,
    compiled: CompiledSpec,
    output: Output,
) -> None:
    """Print the anomalous runs with their most surprising steps, and whether runs drift."""
    told = [one for one in judged if one.finding.anomalous]
    for one in told:
        finding = one.finding
        p_value = "" if finding.p_value is None else f"p = {finding.p_value:.3g}, "
        output.say(
            f"{one.run.name}: anomalous ({p_value}{_value_name(calibration)} "
            f"{finding.value:.3f}, limit {finding.limit:.3f})"
        )
        columns = (">time", "state", "action", "then", ">surprise", ">p", "expected")
        output.table(columns, _cells(one, compiled))
        output.say()
    output.say(
        f"{len(told)} of {plural(len(judged), 'run')} anomalous by the rule {calibration.rule} "
        f"(alpha {calibration.alpha:g}, {len(calibration.greatest)} normal runs)"
    )
    if drift is not None and drift.since is not None:
        output.say(f"drift: runs become more surprising, told at {judged[drift.since].run.name}")
    elif drift is not None:
        output.say(
            f"no drift over {len(judged)} runs (evidence {drift.evidence:.2f}, limit "
            f"{drift.limit:.2f})"
        )


def _cells(one: Judged, compiled: CompiledSpec) -> list[Sequence[str]]:
    clock = compiled.abstraction.clock
    rows: list[Sequence[str]] = []
    for i, p, expected in one.steps:
        step = one.run.transitions[i]
        likeliest = ", ".join(f"{name} {share:.0%}" for name, share in expected.likeliest)
        rows.append(
            (
                clock.figure(clock.duration(step.tick), ".2f"),
                _name(compiled, step.state),
                step.action or "",
                _name(compiled, step.following),
                f"{one.run.surprises[i]:.2f}",
                f"{p:.3g}",
                f"{expected.part}: {likeliest}",
            )
        )
    return rows


def _name(compiled: CompiledSpec, state: int) -> str:
    space = compiled.abstraction.vocabulary
    return space.with_terminal(END_LABEL).name(state)


def _value_name(calibration: Calibration) -> str:
    if calibration.rule == "conformal":
        return "greatest surprise"
    deviates = calibration.rule in ("prefix", "checkpoints")
    return "deviations below the mean" if deviates else "log-likelihood"


def anomaly_record(
    judged: Sequence[Judged],
    calibration: Calibration,
    drift: Drift | None,
    compiled: CompiledSpec,
    predictor: Predictor,
) -> dict[str, Any]:
    """Return all of it for ``--json``."""
    return {
        "rule": calibration.rule,
        "what": calibration.what,
        "alpha": calibration.alpha,
        "every": calibration.every,
        "normal_runs": len(calibration.greatest),
        "anomalous": sum(one.finding.anomalous for one in judged),
        "runs": [_run_record(one, compiled, predictor) for one in judged],
        "drift": drift,
    }


def _run_record(one: Judged, compiled: CompiledSpec, predictor: Predictor) -> dict[str, Any]:
    clock, run = compiled.abstraction.clock, one.run
    since = one.finding.since
    steps = [
        {
            "time": clock.duration(run.transitions[i].tick),
            "state": _name(compiled, run.transitions[i].state),
            "action": run.transitions[i].action,
            "following": _name(compiled, run.transitions[i].following),
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
