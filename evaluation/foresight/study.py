"""Is anybody ahead of the monitor who learns from the same recordings? A curve over their number.

    python -m evaluation.foresight.study --folder out/study --scenarios s6 s7 --sizes 25 50 --write

The folder has runs of `evaluation.study.record`. From the first so many training runs learn: the
monitor file by hand as it stands (`chain`), the same file with a danger score and ``estimator:
auto`` (`Forewarn`), logistic regression, gradient boosting on the signals, and the same with a
second of history. Single quantities learn nothing. All are judged on the same test runs: thresholds
for lead times, and the maps from quantities to probabilities, come from other test runs than the
ones that they are used on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy import stats

from evaluation.agents.outcome import forewarn
from evaluation.foresight.tables import CHAIN, OURS, table_of, write_page
from evaluation.harness.classifiers import (
    Chance,
    boosting,
    examples,
    logistic,
    signals,
    with_history,
)
from evaluation.harness.command import command
from evaluation.harness.compare import risk_traces, without_own_release
from evaluation.harness.page import rounded, write_json
from evaluation.harness.runs import Pass, learn_from, pass_over, with_risk
from evaluation.irsim import study as irsim
from evaluation.study import rivals
from evaluation.study.analysis import HERE as SCENARIOS
from evaluation.study.trees import PLACES
from forewarn.assessment.comparison import Contender, Judged, compare
from forewarn.assessment.episodes import AlertRule, scored_run
from forewarn.assessment.history import Track
from forewarn.assessment.replay import Replaying, replay
from forewarn.logic.specification import CompiledSpec
from forewarn.models import CountModel, load_model
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.loading import load_bare, load_compiled
from forewarn.recordings import open_recording

HERE = Path(__file__).resolve().parent
SIZES = (25, 50, 100, 200, 400)
BUDGETS = (40.0, 80.0)
"""False alarms an hour."""

FOLDS, RESAMPLES, SHARE = 5, 300, 0.2
PARTS = ("train", "test")
NOT_GIVEN = (*PLACES, "crashed", "bumped", "goal_status")
QUANTITIES = {
    "lander": [rivals.Quantity("ground_in", True), *map(rivals.Quantity, ("sinking", "leaning"))],
    "walker": [*map(rivals.Quantity, ("leaning", "sinking")), rivals.Quantity("below", True)],
    "highway": [
        rivals.Quantity(name, True) for name in ("time_to_collision", "front_gap", "headway")
    ],
    "irsim": [rivals.Quantity(name, sign < 0) for name, sign in irsim.RIVALS.items()],
}
MARGIN = 0.01
"""By how much of PR area nobody may lead, even where that may be chance."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """One property of one domain.

    Attributes
    ----------
    by_hand : Path
        The monitor file.
    quantities : sequence of rivals.Quantity
        Single quantities that somebody would watch.
    groups : Path or None
        A table of the recordings that belong together, with the column ``group``.
    """

    by_hand: Path
    compiled: CompiledSpec
    name: str
    quantities: Sequence[rivals.Quantity]
    training: Sequence[Path]
    judged: Sequence[Path]
    groups: Path | None = None

    def variables(self, one: Pass) -> list[str]:
        """Return the signals that who learns is given."""
        return [name for name in one.signals if name not in NOT_GIVEN]


def question_of(name: str, folder: Path) -> Question:
    """Return what is asked of a scenario of `evaluation/study`, a simulator, the small robot."""
    places = (HERE / f"{name}.yaml", SCENARIOS / f"{name}.yaml", irsim.HERE / "monitor.yaml")
    path = next(place for place in places if place.exists())
    compiled = load_bare(path)
    training, judged = (recordings(folder / name / part) for part in PARTS)
    quantities = QUANTITIES[name] if name in QUANTITIES else rivals.SCENARIOS[name].quantities
    return Question(
        path, compiled, next(iter(compiled.spec.properties)), quantities, training, judged
    )


def recordings(folder: Path) -> list[Path]:
    """Return the traces of a folder, or its bags."""
    return sorted(folder.glob("*.jsonl.gz")) or irsim.recordings(folder)


def stacked(question: Question, variables: Sequence[str], path: Path) -> Path:
    """Write the monitor file with a danger score over all signals, and the estimates weighed."""
    content = yaml.safe_load(question.by_hand.read_text(encoding="utf-8"))
    if "include" in content:
        beside = question.by_hand.parent
        content["include"] = [_absolute(part, beside) for part in content["include"]]
    content["danger"] = {"danger": {"for": question.name, "from": list(variables), "history": 1.0}}
    content.setdefault("properties", {}).setdefault(question.name, {})["estimator"] = "auto"
    if question.groups is not None:
        together = {"together": "group", "groups": str(question.groups.resolve())}
        content["learning"] = {**content.get("learning", {}), **together}
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path


def _absolute(part: Any, beside: Path) -> Any:
    if isinstance(part, str):
        return str((beside / part).resolve())
    return {**part, "file": str((beside / part["file"]).resolve())}


def stacked_monitor(
    question: Question, file: Path, size: int, folder: Path
) -> tuple[Contender, dict[str, Any]]:
    """Learn by the documented command from so many runs, and replay those that are judged.

    A model of the same runs that is in the folder already is taken.
    """
    model, training = folder / f"{OURS}-{size}.json", question.training[:size]
    if not (model.exists() and _learned_from(model) == set(map(_digest, training))):
        said = forewarn("learn", *training, "-c", file, "-o", model)
        model.with_suffix(".said").write_text(json.dumps(said), encoding="utf-8")
    counts = load_model(model)
    compiled = load_compiled(file, counts)
    monitor = build_monitor(compiled, counts)
    index = list(monitor.spec.properties).index(question.name)
    tracks = []
    for path in question.judged:
        with open_recording(path) as recording:
            tracks.append(replay(Replaying(monitor), recording).tracks[index])
    said = json.loads(model.with_suffix(".said").read_text(encoding="utf-8"))
    return _monitor(OURS, question, tracks, counts), said


def _learned_from(model: Path) -> set[str]:
    return {one.digest for one in load_model(model).provenance}


def _digest(path: Path) -> str:
    with open_recording(path) as recording:
        return recording.digest()


def chain(question: Question, training: Sequence[Pass], judged: Sequence[Pass]) -> Contender:
    """Return the monitor file by hand: what `learn` and `replay` give, from what was read once."""
    counts = learn_from(question.compiled, training)
    runs = with_risk(question.compiled, counts, judged)
    tracks = [track for one in runs for track in one.tracks if track.name == question.name]
    return _monitor(CHAIN, question, tracks, counts)


def _monitor(
    label: str, question: Question, tracks: Sequence[Track], counts: CountModel
) -> Contender:
    rule = AlertRule.of(question.compiled.spec.properties[question.name])
    runs = tuple(scored_run(track) for track in tracks)
    return Contender(
        label, rule, runs, tuple(track.probability for track in tracks), len(counts.states)
    )


def trained(
    question: Question, training: Sequence[Pass], judged: Sequence[Pass]
) -> Iterator[Contender]:
    """Yield the classifiers, fitted to the training runs."""
    now = signals(question.variables(training[0]))
    past = with_history(now)
    for label, features, fit in (
        ("logistic regression", now, logistic),
        ("boosting", now, boosting),
        ("boosting, 1 s of history", past, boosting),
    ):
        chance: Chance = fit(*examples(question.name, training, features))
        yield scored(label, question, judged, [chance(features(one)) for one in judged], True)


def watched(question: Question, judged: Sequence[Pass]) -> Iterator[Contender]:
    """Yield the single quantities."""
    for quantity in question.quantities:
        scores = [quantity.score(one.signals) for one in judged]
        yield scored(quantity.name, question, judged, scores, False)


def scored(
    label: str, question: Question, judged: Sequence[Pass], scores: Sequence[Floats], chances: bool
) -> Contender:
    """Return a contender by its scores of each tick: chances, or what only ranks."""
    section = question.compiled.spec.properties[question.name]
    runs = [
        run._replace(score=score, unseen=None)
        for run, score in zip(risk_traces(judged, question.name), scores, strict=True)
    ]
    rule = without_own_release(AlertRule.of(section))
    return Contender(label, rule, tuple(runs), tuple(scores) if chances else None)


def answer(
    question: Question, size: int, passes: tuple[Sequence[Pass], Sequence[Pass]], folder: Path
) -> dict[str, Any]:
    """Return the figures of all contenders that learned from so many runs."""
    began = time.perf_counter()
    training, judged = passes
    found, made_of = contenders(question, training[:size], judged, folder)
    folds = [index % FOLDS for index in range(len(judged))]
    done = {"size": size, **figures(found, folds), "made_of": made_of}
    return done | {"seconds": round(time.perf_counter() - began)}


def contenders(
    question: Question, training: Sequence[Pass], judged: Sequence[Pass], folder: Path
) -> tuple[list[Contender], Any]:
    """Return all who learned from some runs or watch a quantity, and what our risks are made of."""
    folder.mkdir(parents=True, exist_ok=True)
    file = stacked(question, question.variables(judged[0]), folder / "stacked.yaml")
    ours, said = stacked_monitor(question, file, len(training), folder)
    others = (*trained(question, training, judged), *watched(question, judged))
    return [ours, chain(question, training, judged), *others], said.get("estimates")


def figures(
    found: Sequence[Contender], folds: Sequence[int], clusters: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return what contenders are worth who were judged on the same runs, each in its fold.

    Runs of a cluster are drawn together for intervals; by default each is alone.
    """
    first, second = (
        compare(found, folds, budget, alert_share=SHARE, resamples=draws, clusters=clusters)
        for budget, draws in zip(BUDGETS, (RESAMPLES, 2), strict=True)  # of the second, leads alone
    )
    return {
        "judged": len(folds),
        "violations": first[0].point.violations,
        "rows": [_row(one, other) for one, other in zip(first, second, strict=True)],
        "ahead": ahead(first),
    }


def _row(one: Judged, other: Judged) -> dict[str, Any]:
    found = one.calibration
    return {
        "name": one.name,
        "area": list(map(rounded, one.area)),
        "brier": list(map(rounded, one.brier)),
        "ece": None if found is None else rounded(found.expected_error),
        "leads": [rounded(one.lead.value), rounded(other.lead.value)],
        "unseen": rounded(one.unseen),
        "differences": {key: list(map(rounded, ends)) for key, ends in one.differences.items()},
    }


def ahead(judged: Sequence[Judged]) -> list[str]:
    """Return who leads the first one: by Holm's correction over all, or by more than `MARGIN`.

    The probability of a difference that is none is that of a normal one with the interval's width.
    """
    asked = []
    for one in judged[1:]:
        for figure, sign in (("area", 1.0), ("brier", -1.0)):
            value, low, high = one.differences[figure]
            if value == value and high > low:
                lead = sign * value
                score = lead / ((high - low) / 2 / stats.norm.ppf(0.975))
                asked.append((float(stats.norm.sf(score)), one.name, figure, lead))
    found, open_still = [], True
    for place, (chance, name, figure, lead) in enumerate(sorted(asked)):
        open_still = open_still and chance < 0.05 / (len(asked) - place)
        if open_still or (figure == "area" and lead > MARGIN):
            found.append(
                f"{name}: {figure} by {lead:.4f}" + ("" if open_still else ", maybe chance")
            )
    return found


def main(
    folder: Path,
    scenarios: Sequence[str] = tuple(rivals.SCENARIOS),
    sizes: Sequence[int] = SIZES,
    judged: int | None = None,
    write: bool = False,
) -> None:
    """Learn, judge the first runs of the tests (all by default), write."""
    output = (HERE if write else folder) / "results.json"
    found: dict[str, Any] = json.loads(output.read_text()) if output.exists() else {}
    for name in scenarios:
        question = question_of(name, folder)
        question = replace(question, judged=question.judged[:judged])
        possible = [size for size in sizes if size <= len(question.training)]
        training, unseen = (
            [pass_over(question.compiled, path) for path in paths]
            for paths in (question.training[: max(possible)], question.judged)
        )
        for size in possible:
            done = answer(question, size, (training, unseen), folder / name / "foresight")
            found[name] = found.get(name, {}) | {str(size): done}
            write_json(output, found)
            print(table_of({name: {str(size): done}}), *done["ahead"], sep="\n", flush=True)
    if write:
        write_page(found)


if __name__ == "__main__":
    command(main)
