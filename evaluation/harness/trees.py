"""Learned trees against predicates by hand and gradient boosting, on the same signals and runs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from evaluation.agents.outcome import forewarn
from evaluation.agents.rivals import area
from evaluation.harness.classifiers import boosting, examples, signals
from evaluation.harness.compare import Chooser, calibration_of, contender, risk_traces, rows_of
from evaluation.harness.page import resampled, table, told
from evaluation.harness.runs import Fold, Pass, halves, pass_over, predict
from forewarn.assessment.episodes import AlertRule, ScoredRun
from forewarn.assessment.reliability import UNDECIDED, outcomes
from forewarn.logic.specification import CompiledSpec
from forewarn.monitoring.loading import load_bare
from forewarn.states.tree.space import TreeSpace

RESAMPLES = 200
HAND, TREE, BOOSTED = "by hand", "learned tree", "gradient boosting"
MODES = (HAND, TREE, BOOSTED)


@dataclass(frozen=True)
class Question:
    """One property of one domain.

    Attributes
    ----------
    hand : CompiledSpec
        The monitor file with predicates by hand.
    frame : mapping
        The monitor file of the tree without its tree: what formulas name, and no more.
    name : str
        The property.
    truths : sequence of str
        Signals that are true or false.
    ignored : sequence of str
        Signals that tell the place, or the end of a run: nobody is given them.
    """

    hand: CompiledSpec
    frame: Mapping[str, Any]
    name: str
    truths: Sequence[str]
    ignored: Sequence[str]

    def variables(self, one: Pass) -> list[str]:
        """Return the signals that a tree may ask about."""
        return [name for name in one.signals if name not in self.ignored]


def as_trace(one: Pass, path: Path, truths: Sequence[str], rate: float = 10.0) -> Path:
    """Write all signals of a run that are no lists, tick by tick, unless they are there."""
    if not path.exists():
        columns = {name: values.tolist() for name, values in one.signals.items()}
        lines = []
        for row, tick in enumerate((one.tracks[0].ticks - one.tracks[0].ticks[0]).tolist()):
            values = {n: _plain(column[row], n in truths) for n, column in columns.items()}
            lines.append(json.dumps({"t": tick / rate, **values}))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _plain(value: float, truth: bool) -> float | bool | None:
    if math.isnan(value):
        return None
    return bool(value) if truth else value


def grown(
    question: Question, traces: Sequence[Path], variables: Sequence[str], path: Path
) -> CompiledSpec:
    """Grow a tree by the documented command, as large as runs left out are predicted best.

    A tree that is there is not grown again.
    """
    if path.exists():
        return load_bare(path)
    signals = {name: {"timeout": 0.5} for name in (*variables, *question.ignored)}
    states = {"kind": "tree", "variables": list(variables), "tree": "s0"}
    content = {**question.frame, "signals": signals, "states": states}
    path.parent.mkdir(parents=True, exist_ok=True)
    growing = path.with_suffix(".growing.yaml")
    growing.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    horizon = question.hand.spec.properties[question.name].horizon
    asked = f"violation:{question.name}:{horizon:g}"
    forewarn("abstract", *traces, "-c", growing, "--class", asked, "--write")
    growing.rename(path)
    return load_bare(path)


def tree_fold(
    question: Question, training: Sequence[Pass], judged: Sequence[Pass], folder: Path
) -> tuple[Fold, CompiledSpec]:
    """Return the runs with the risks of trees and chains that were learned without them."""
    variables = question.variables(training[0])

    def traces(runs: Sequence[Pass], part: str) -> list[Path]:
        names = (f"{run.path.name.split('.')[0]}.jsonl" for run in runs)
        return [
            as_trace(run, folder / part / name, question.truths)
            for run, name in zip(runs, names, strict=True)
        ]

    known, unseen = traces(training, "known"), traces(judged, "unseen")

    def predicted(
        by: Sequence[Path], about: Sequence[Path], name: str
    ) -> tuple[list[Pass], CompiledSpec]:
        tree = grown(question, by, variables, folder / f"{question.name}.{name}.yaml")
        ours, theirs = ([pass_over(tree, path) for path in some] for some in (by, about))
        return predict(tree, ours, theirs), tree

    tuning = [
        *predicted(known[::2], known[1::2], "even")[0],
        *predicted(known[1::2], known[::2], "odd")[0],
    ]
    found, tree = predicted(known, unseen, "all")
    return Fold(tuning, found), tree


def boosted_fold(question: Question, training: Sequence[Pass], judged: Sequence[Pass]) -> Fold:
    """Return the runs with the probabilities of boosting that was fitted without them."""
    even, odd = training[::2], training[1::2]
    tuning = _boosted(question, even, odd) + _boosted(question, odd, even)
    return Fold(tuning, _boosted(question, training, judged))


def _boosted(question: Question, known: Sequence[Pass], unseen: Sequence[Pass]) -> list[Pass]:
    features = signals(question.variables(known[0]))
    chance = boosting(*examples(question.name, known, features))
    return [_with_chance(question, one, chance(features(one))) for one in unseen]


def _with_chance(question: Question, one: Pass, chance: NDArray[np.float64]) -> Pass:
    seen = np.ones(len(chance), dtype=bool)
    tracks = tuple(
        replace(track, probability=chance, in_model=seen, figure=chance, unseen=~seen)
        for track in one.tracks
        if track.name == question.name
    )
    return replace(one, tracks=tracks)


def answer(
    question: Question,
    training: Sequence[Pass],
    judged: Sequence[Pass],
    folder: Path,
    choose: Chooser,
) -> dict[str, Any]:
    """Return a row for each of the three, about the judged runs."""
    tree, compiled = tree_fold(question, training, judged, folder)
    folds = {
        HAND: Fold(halves(question.hand, training), predict(question.hand, training, judged)),
        TREE: tree,
        BOOSTED: boosted_fold(question, training, judged),
    }
    section = question.hand.spec.properties[question.name]
    rule = AlertRule(None, section.enter, section.exit, section.hold)
    space = compiled.abstraction.vocabulary
    assert isinstance(space, TreeSpace)
    return {
        "horizon": section.horizon,
        "runs": [len(training), len(judged)],
        "leaves": len(space.leaves),
        "rows": [_row(name, folds[name], rule, question.name, choose) for name in MODES],
    }


def _row(name: str, fold: Fold, rule: AlertRule, about: str, choose: Chooser) -> dict[str, Any]:
    def score(_: Pass, run: ScoredRun) -> NDArray[np.float64]:
        return np.nan_to_num(run.score, nan=0.0)  # what it does not know is no risk

    alerts = rows_of(contender(name, rule, [fold], about, score), choose, resamples=RESAMPLES)[-1]
    states = {state for run in fold.judged for state in run.codes.tolist()}
    calibration = calibration_of(fold.judged, about, resamples=RESAMPLES)
    assert calibration is not None
    del calibration["bins"]
    runs = risk_traces(fold.judged, about)
    auc = resampled("auc", _roc, runs, resamples=RESAMPLES)
    return {**alerts, **auc, **calibration, "states": None if name == BOOSTED else len(states)}


def _roc(runs: Sequence[ScoredRun]) -> float | None:
    scores, truths = [], []
    for run in runs:
        followed, known = outcomes(run)
        chosen = known & np.isin(run.status, UNDECIDED)
        scores.append(np.nan_to_num(run.score[chosen], nan=0.0))
        truths.append(followed[chosen])
    return area(np.concatenate(scores), np.concatenate(truths))


HEAD = (
    "",
    "Monitor",
    "States",
    "PR area",
    "AUC",
    "Brier",
    "ECE",
    "Found",
    "Lead mean",
    "False alarms/h",
)


def table_of(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the rows of all questions as Markdown."""
    lines = []
    for name, item in found.items():
        for row in item["rows"]:
            lead = row["lead_mean"]
            lines.append(
                [
                    *(name, row["monitor"], str(row["states"] or "-")),
                    *(told(row, key, "{:.2f}") for key in ("area", "auc")),
                    told(row, "brier", "{:.4f}"),
                    told(row, "expected_error", "{:.3f}"),
                    f"{row['detected']} of {row['violations']}",
                    "-" if lead is None else f"{lead:.1f} s",
                    told(row, "false_alarms_per_hour", "{:.0f}", "false_alarms_interval"),
                ]
            )
    return table(HEAD, lines)
