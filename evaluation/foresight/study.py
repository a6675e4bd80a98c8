"""Is anybody ahead of the monitor who learns from the same recordings? A curve over their number.

    python -m evaluation.foresight.study --folder out/study --scenarios s6 s7 --sizes 25 50 --write

The folder has runs of `evaluation.study.record`. From the first so many training runs learn: the
monitor file by hand as it stands (`chain`), the same file with a learned score and ``estimator:
auto`` (`Forewarn`), logistic regression, gradient boosting on the signals, and the same with a
second of history. Single quantities learn nothing. All are judged on the same test runs: thresholds
for lead times, and the maps from quantities to probabilities, come from other test runs than the
ones that they are used on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy import stats

from evaluation.harness.classifiers import (
    Chance,
    boosting,
    examples,
    logistic,
    signals,
    with_history,
)
from evaluation.harness.command import command
from evaluation.harness.page import Row, between, publish, rounded, shown
from evaluation.harness.runs import Pass, forewarn, pass_over, recordings_in, risk_traces
from evaluation.study import rivals
from forewarn.assessment.comparison import Contender, ContenderScores, compare
from forewarn.assessment.episodes import AlertRule, scored_run
from forewarn.assessment.replay import Replaying, replay
from forewarn.logic.specification import CompiledSpec
from forewarn.models.file import load_model
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.loading import load_bare, load_compiled
from forewarn.recordings.registry import open_recording

HERE = Path(__file__).resolve().parent
SCENARIOS = HERE.parent / "study"
OURS, CHAIN = "Forewarn", "chain"
TITLE = "Who foresees more from the same recordings?"
COMMAND = (
    "python -m evaluation.foresight.study --folder out/study --scenarios s1 s2 s3 s4 s5 s6 s7 "
    "lander walker highway --write"
)
SIZES = (25, 50, 100, 200, 400)
BUDGETS = (40.0, 80.0)
"""False alarms an hour."""

FOLDS, RESAMPLES, SHARE = 5, 300, 0.2
PARTS = ("train", "test")
NOT_GIVEN = ("ego_x", "ego_y", "heading", "collided", "crashed")
"""Where the car is, and what ends a run."""

QUANTITIES = {
    "lander": [rivals.Quantity("ground_in", True), *map(rivals.Quantity, ("sinking", "leaning"))],
    "walker": [*map(rivals.Quantity, ("leaning", "sinking")), rivals.Quantity("below", True)],
    "highway": [
        rivals.Quantity(name, True) for name in ("time_to_collision", "front_gap", "headway")
    ],
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
    others : mapping of str to rivals.Score
        Scores by other methods, computed from signals.
    groups : Path or None
        A table of the recordings that belong together, with the column ``group``.
    """

    by_hand: Path
    compiled: CompiledSpec
    name: str
    quantities: Sequence[rivals.Quantity]
    training: Sequence[Path]
    judged: Sequence[Path]
    others: Mapping[str, rivals.Score] = field(default_factory=dict)
    groups: Path | None = None

    def variables(self, one: Pass) -> list[str]:
        """Return the signals that who learns is given."""
        return [name for name in one.signals if name not in NOT_GIVEN]


def question_of(name: str, folder: Path) -> Question:
    """Return what is asked of a scenario of `evaluation/study`, or of a simulator."""
    path = (HERE if name in QUANTITIES else SCENARIOS) / f"{name}.yaml"
    compiled = load_bare(path)
    training, judged = (recordings_in(folder / name / part) for part in PARTS)
    asked = Question(path, compiled, next(iter(compiled.spec.properties)), [], training, judged)
    if name in QUANTITIES:
        return replace(asked, quantities=QUANTITIES[name])
    against = rivals.SCENARIOS[name]
    others = {"robustness": lambda signals: -rivals.robustness(against.law, signals)}
    if against.collisions:
        others["1/TTC"] = rivals.inverse_ttc
    return replace(asked, quantities=against.quantities, others=others)


def stacked(question: Question, variables: Sequence[str], path: Path) -> Path:
    """Write the monitor file with a learned score over all signals, and the estimates weighed."""
    content = yaml.safe_load(question.by_hand.read_text(encoding="utf-8"))
    if "include" in content:
        beside = question.by_hand.parent
        content["include"] = [_absolute(part, beside) for part in content["include"]]
    content["learned_score"] = {
        "learned_score": {"for": question.name, "from": list(variables), "history": 1.0}
    }
    content.setdefault("properties", {}).setdefault(question.name, {})["estimator"] = "ensemble"
    if question.groups is not None:
        together = {"group_by": "group", "group_source": str(question.groups.resolve())}
        content["learning"] = {**content.get("learning", {}), **together}
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path


def _absolute(part: Any, beside: Path) -> Any:
    if isinstance(part, str):
        return str((beside / part).resolve())
    return {**part, "file": str((beside / part["file"]).resolve())}


def monitor(
    label: str, question: Question, file: Path, size: int, folder: Path
) -> tuple[Contender, dict[str, Any]]:
    """Learn by the documented command from so many runs, and replay those that are judged.

    A model of the same runs that is in the folder already is taken.
    """
    model, training = folder / f"{label}-{size}.json", question.training[:size]
    if not (model.exists() and _learned_from(model) == set(map(_digest, training))):
        said = forewarn("learn", *training, "-c", file, "-o", model)
        model.with_suffix(".said").write_text(json.dumps(said), encoding="utf-8")
    counts = load_model(model)
    built = build_monitor(load_compiled(file, counts), counts)
    index = list(built.spec.properties).index(question.name)
    tracks = []
    for path in question.judged:
        with open_recording(path) as recording:
            tracks.append(replay(Replaying(built), recording).tracks[index])
    said = json.loads(model.with_suffix(".said").read_text(encoding="utf-8"))
    rule = AlertRule.of(question.compiled.spec.properties[question.name])
    risks = tuple(track.probability for track in tracks)
    return Contender(label, rule, tuple(map(scored_run, tracks)), risks, len(counts.states)), said


def _learned_from(model: Path) -> set[str]:
    return {one.digest for one in load_model(model).provenance}


def _digest(path: Path) -> str:
    with open_recording(path) as recording:
        return recording.digest()


def trained(
    question: Question, training: Sequence[Pass], judged: Sequence[Pass]
) -> Iterator[Contender]:
    """Yield the classifiers, fitted to the training runs."""
    now = signals(question.variables(training[0]))
    past = with_history(now)
    for label, features, fit in (
        ("logistic regression", now, logistic),
        ("boosting", now, boosting),
        ("boosting with history", past, boosting),
    ):
        chance: Chance = fit(*examples(question.name, training, features))
        yield scored(label, question, judged, [chance(features(one)) for one in judged], True)


def watched(question: Question, judged: Sequence[Pass]) -> Iterator[Contender]:
    """Yield the single quantities, and what learns nothing besides."""
    watchers = {quantity.name: quantity.score for quantity in question.quantities}
    for name, score in {**watchers, **question.others}.items():
        yield scored(name, question, judged, [score(one.signals) for one in judged], False)


def scored(
    label: str, question: Question, judged: Sequence[Pass], scores: Sequence[Floats], chances: bool
) -> Contender:
    """Return a contender by its scores of each tick: chances, or what only ranks."""
    section = question.compiled.spec.properties[question.name]
    runs = [
        run._replace(score=score, out_of_model=None)
        for run, score in zip(risk_traces(judged, question.name), scores, strict=True)
    ]
    rule = AlertRule.of(section)
    rule = AlertRule(None, rule.enter, rule.exit, rule.hold)  # it releases where it alerts
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
    ours, said = monitor(OURS, question, file, len(training), folder)
    chain, _ = monitor(CHAIN, question, question.by_hand, len(training), folder)
    others = (*trained(question, training, judged), *watched(question, judged))
    return [ours, chain, *others], said.get("estimates")


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


def _row(one: ContenderScores, other: ContenderScores) -> dict[str, Any]:
    found = one.calibration
    return {
        "name": one.name,
        "area": list(map(rounded, one.area)),
        "brier": list(map(rounded, one.brier)),
        "ece": None if found is None else rounded(found.expected_error),
        "leads": [rounded(one.lead.value), rounded(other.lead.value)],
        "lead_interval": [rounded(one.lead.low), rounded(one.lead.high)],
        "false_alarms_per_hour": rounded(one.point.false_alarms_per_hour),
        "unseen": rounded(one.out_of_model),
        "differences": {key: list(map(rounded, ends)) for key, ends in one.differences.items()},
    }


def ahead(judged: Sequence[ContenderScores]) -> list[str]:
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


def row_of(name: str, item: Mapping[str, Any]) -> Row:
    """Return what came out of one study and number of recordings: ours, and the best of others."""
    ours, *others = item["rows"]
    trained_or_watched = [row for row in others if row["name"] != CHAIN]
    area = max(trained_or_watched, key=lambda row: row["area"][0] or 0.0)
    brier = min(others, key=lambda row: row["brier"][0] or 1.0)
    lead = max(others, key=lambda row: row["leads"][0] or 0.0)
    chain = next(row for row in others if row["name"] == CHAIN)
    leaders = f", ahead: {'; '.join(item['ahead'])}" if item["ahead"] else ""
    return Row(
        f"{name}, {item['size']}",
        f"area {shown(ours['area'][0])} ({shown(chain['area'][0])}; {area['name']} "
        f"{shown(area['area'][0])}), Brier {shown(ours['brier'][0], '{:.4f}')} "
        f"({shown(brier['brier'][0], '{:.4f}')}), lead {ours['leads'][0] or 0.0:.2f} "
        f"({lead['leads'][0] or 0.0:.2f}) s{leaders}",
        between(ours["area"][1:]),
        f"{item['violations']} in {item['judged']}",
    )


def main(
    folder: Path,
    scenarios: Sequence[str] = tuple(rivals.SCENARIOS),
    sizes: Sequence[int] = SIZES,
    judged: int | None = None,
    write: bool = False,
) -> None:
    """Learn, judge the first runs of the tests (all by default), write."""
    found: dict[str, Any] = {}
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
            found[f"{name} {size}"] = done
            publish(TITLE, COMMAND, [row_of(name, done)], found, folder / "foresight", write=write)


if __name__ == "__main__":
    command(main)
