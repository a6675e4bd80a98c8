"""Rivals on the same traces: a score for each run and each prefix, and how well scores tell runs.

Alergia and IOAlergia (AALpy), hidden Markov models (hmmlearn), outlier detectors (pyod) and
gradient-boosted trees (scikit-learn) are fitted by `fitted.py` in an environment of its own, which
is made once, in `.agents-venv` (or `FOREWARN_RIVALS_PYTHON` names an interpreter that has them).
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from evaluation.harness.environment import python_of
from evaluation.harness.page import rounded
from forewarn.assessment.resampling import bootstrap
from forewarn.errors import ForewarnError, plural

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / ".agents-venv"

Floats = NDArray[np.float64]


class Trace(NamedTuple):
    """What rivals see of a run, with an entry a step.

    Attributes
    ----------
    actions, outputs : sequence of str
        What is done, and a symbol of what the step shows before that. A last step that does
        nothing, with an empty action, tells that the run is over.
    rows : sequence of sequences of float
        The typed variables, in the same order everywhere.
    label : int or None
        1 for a run that is to be found, if it is known.
    """

    actions: Sequence[str]
    outputs: Sequence[str]
    rows: Sequence[Sequence[float]]
    label: int | None = None


def rival_scores(
    learned: Sequence[Trace], judged: Sequence[Trace], seed: int = 1, only: Sequence[str] = ()
) -> dict[str, list[list[float]]]:
    """Return what every rival says after each step of each judged run; the last is of the run.

    Most rivals learn from the runs without label 1 and ask how unlike them a run is. Where there
    are runs of both labels, likelihoods are ratios of two models and boosting takes part. `only`
    names those that are wanted, without their variants; ``pyod`` are all its detectors.
    """
    given = {
        "learned": [trace._asdict() for trace in learned],
        "judged": [trace._asdict() for trace in judged],
        "seed": seed,
        "only": list(only),
    }
    named = os.environ.get("FOREWARN_RIVALS_PYTHON")
    python = named or python_of(FOLDER, HERE / "requirements.txt")
    done = subprocess.run(
        [python, HERE / "fitted.py"],
        input=json.dumps(given),
        stdout=subprocess.PIPE,
        check=False,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # several threads wait for each other
    )
    if done.returncode:
        runs = f"{plural(len(learned), 'run')} to learn from, {len(judged)} to judge"
        raise ForewarnError(f"{python} fitted.py: the rivals failed ({runs}); it says why above")
    found: dict[str, list[list[float]]] = json.loads(done.stdout)
    return found


def area(scores: Floats, labels: NDArray[np.bool_]) -> float | None:
    """Return the area under the ROC curve: how often a run with label is above one without."""
    positive = int(labels.sum())
    negative = len(labels) - positive
    if not positive or not negative:
        return None
    ranks = stats.rankdata(scores)
    return float((ranks[labels].sum() - positive * (positive + 1) / 2) / (positive * negative))


def found_at(scores: Floats, labels: NDArray[np.bool_], false: float) -> float | None:
    """Return the share of runs with label above a level that a share `false` of others exceeds."""
    if labels.all() or not labels.any():
        return None
    falling = np.sort(scores[~labels])[::-1]
    return float((scores[labels] > falling[math.floor(false * len(falling) + 1e-9)]).mean())


def false_at(scores: Floats, labels: NDArray[np.bool_], found: float) -> float | None:
    """Return the share of runs without label above the level that finds a share `found`."""
    if labels.all() or not labels.any():
        return None
    falling = np.sort(scores[labels])[::-1]
    level = falling[math.ceil(found * len(falling) - 1e-9) - 1]
    return float((scores[~labels] >= level).mean())


def calibration_error(risks: Floats, labels: NDArray[np.bool_], bins: int = 10) -> float:
    """Return the expected calibration error over bins of equally many runs."""
    order = np.argsort(risks, kind="stable")
    gaps = [
        abs(risks[part].mean() - labels[part].mean()) * len(part)
        for part in np.array_split(order, min(bins, len(risks)))
    ]
    return float(sum(gaps) / len(risks))


def brier(risks: Floats, labels: NDArray[np.bool_]) -> float:
    """Return the mean square of risk less outcome."""
    return float(((risks - labels) ** 2).mean())


Figure = Callable[[Floats, NDArray[np.bool_]], float | None]


def told(
    figure: Figure,
    scores: Sequence[float],
    labels: Sequence[bool],
    groups: Sequence[Any] | None = None,
    *,
    resamples: int = 200,
    seed: int = 1,
) -> dict[str, Any]:
    """Return a figure and its interval of 95 %, from resampling groups of runs (or runs) whole."""
    values, truths = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=bool)
    names = list(range(len(values))) if groups is None else list(groups)
    parts: dict[Any, list[int]] = {}
    for place, name in enumerate(names):
        parts.setdefault(name, []).append(place)

    def drawn(chosen: Sequence[NDArray[np.int64]]) -> float | None:
        rows = np.concatenate(chosen)
        return figure(values[rows], truths[rows])

    ends = bootstrap(list(map(np.array, parts.values())), drawn, resamples=resamples, seed=seed)
    return {"value": rounded(figure(values, truths)), "interval": list(map(rounded, ends))}


def best_of(
    scores: Mapping[str, Sequence[Sequence[float]]], labels: Sequence[bool], detectors: int = 2
) -> dict[str, Sequence[Sequence[float]]]:
    """Return each rival's better variant, and so many of pyod's detectors.

    They are chosen by their area on these very runs, in the rivals' favour.
    """
    truths = np.asarray(labels, dtype=bool)
    areas = {
        name: area(np.array([run[-1] for run in runs]), truths) or 0.0
        for name, runs in scores.items()
    }
    ranked = sorted(scores, key=lambda name: -areas[name])
    best: dict[str, str] = {}
    for name in ranked:
        best.setdefault(name.rpartition(", ")[0], name)
    outliers = [name for name in best.values() if name.startswith("pyod")][detectors:]
    return {name: scores[name] for name in best.values() if name not in outliers}
