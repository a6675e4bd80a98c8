"""Runs with what a rule for anomalies says of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from forewarn.cli.readers import Readers
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import END_LABEL
from forewarn.wings.anomalies.calibration import Calibration, Finding
from forewarn.wings.anomalies.drift import Drift, find_drift, sequential_p
from forewarn.wings.anomalies.surprise import Expected, Predictor, What
from forewarn.wings.anomalies.transitions import Transition, transitions_of

TOP = 3
"""Surprising steps that are listed of a run."""
DRIFT_RUNS = 20
"""Runs from which on drift can be found."""
STEP_COLUMNS = (">time", "state", "action", "then", ">surprise", ">p", "expected")


class Run(NamedTuple):
    """One run, an episode of a recording, and how surprising each of its transitions is."""

    name: str
    digest: str
    transitions: list[Transition]
    surprises: list[float]
    recording: str


class JudgedRun(NamedTuple):
    """A run with its verdict; `steps` are its most surprising transitions, worst first."""

    run: Run
    finding: Finding
    steps: list[tuple[int, float, Expected]]


def judge_run(run: Run, predictor: Predictor, calibration: Calibration, top: int) -> JudgedRun:
    """Judge a run, and tell what was expected at its `top` most surprising transitions."""
    finding = calibration.judge(run.surprises)
    worst = np.argsort(-np.asarray(run.surprises), kind="stable")[:top].tolist()
    p_values = calibration.step_p([run.surprises[i] for i in worst])
    steps = [
        (i, float(p), predictor.expected(run.transitions[i], calibration.statistic))
        for i, p in zip(worst, p_values, strict=True)
    ]
    return JudgedRun(run, finding, steps)


def read_surprises(
    paths: Sequence[Path],
    compiled: CompiledSpec,
    predictor: Predictor,
    statistic: What,
    readers: Readers,
) -> list[Run]:
    """Return the runs of recordings, each with the surprise of its steps, with a bar."""
    runs: list[Run] = []
    read = readers.read(paths, transitions_of, compiled, readers.allow_missing)
    for path, (episodes, digest) in read:
        for number, transitions in enumerate(episodes or [[]], 1):
            name = f"{path}, episode {number}" if len(episodes) > 1 else str(path)
            surprises = [predictor.surprise(one).of(statistic) for one in transitions]
            runs.append(Run(name, digest, transitions, surprises, str(path)))
    return runs


def drift_of(
    judged: Sequence[JudgedRun], calibration: Calibration, predictor: Predictor
) -> Drift | None:
    """Return whether runs drift; None if they are too few to say."""
    if len(judged) < DRIFT_RUNS:
        return None
    scores = [calibration.score(one.run.surprises) for one in judged]
    seed = int(predictor.digest[:16], 16)
    return find_drift(sequential_p(calibration.scores, scores, seed), calibration.alpha)


def name_of(compiled: CompiledSpec, state: int) -> str:
    """Return the readable name of a state, the end of a recording included."""
    return compiled.abstraction.vocabulary.with_terminal(END_LABEL).name(state)


def value_name(calibration: Calibration) -> str:
    """Return what the value of a finding is."""
    if calibration.test == "conformal":
        return "greatest surprise"
    if calibration.test == "cusum":
        return "evidence of a change"
    deviates = calibration.test in ("prefix", "checkpoints")
    return "deviations below the mean" if deviates else "log-likelihood"


def step_cells(one: JudgedRun, compiled: CompiledSpec) -> list[Sequence[str]]:
    """Return the most surprising steps of a run, as cells of `STEP_COLUMNS`."""
    clock = compiled.abstraction.clock
    rows: list[Sequence[str]] = []
    for i, p, expected in one.steps:
        step = one.run.transitions[i]
        likeliest = ", ".join(f"{name} {share:.0%}" for name, share in expected.likeliest)
        rows.append(
            (
                clock.figure(clock.duration(step.tick), ".2f"),
                name_of(compiled, step.state),
                step.action or "",
                name_of(compiled, step.following),
                f"{one.run.surprises[i]:.2f}",
                f"{p:.3g}",
                f"{expected.part}: {likeliest}",
            )
        )
    return rows
