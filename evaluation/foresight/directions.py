"""What trees of signals with a direction add, where few recordings have a violation.

    python -m evaluation.foresight.directions --folder out/study --studies s1 s2 lander --write

asks training runs. In the monitor file of each study the single quantities that somebody would
watch are given their direction. Of the training runs some are drawn, until so many have a
violation. A danger score is fitted to them with these trees and without, and all other training
runs judge it. To save time, ticks are left out, and there are no more than `TREES` trees of each
kind. No test run is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from evaluation.foresight.study import Question, question_of, stacked
from evaluation.harness.command import command
from evaluation.harness.page import put, table
from evaluation.harness.runs import pass_over
from forewarn.assessment.danger import rows_of
from forewarn.learning import danger_fit, danger_members
from forewarn.learning.danger_fit import Rows, fit_score, thinned
from forewarn.monitoring.loading import load_bare
from forewarn.states.danger import Scoring
from forewarn.states.danger.score import compiled_trees

MARK = "evaluation.foresight.directions"
RUNS = 90
VIOLATED = (3, 6, 9)
LEAST = 4
"""Runs that are learned from at the least."""

NUMBERS, JUDGED, TREES = 500_000, 1_500_000, 60
HEAD = ("Study", "with a violation", "draws (runs)", "area before", "now", "more", "less in",
        "Brier score to before", "higher in")  # fmt: skip
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """What is fitted, and to which of the training runs of a study.

    Attributes
    ----------
    signs : sequence of int
        The direction of each signal of the score; see `DangerFit`.
    """

    question: Question
    scoring: Scoring
    signs: Sequence[int]
    runs: Sequence[Rows]

    def drawn(self, violated: int, seed: int) -> tuple[list[Rows], list[Rows]] | None:
        """Draw runs until so many have a violation; return those and all others, or None."""
        order = np.random.default_rng((seed, violated)).permutation(len(self.runs))
        followed = np.cumsum([self.runs[i].followed.any() for i in order])
        count = max(int(np.searchsorted(followed, violated)) + 1, LEAST)
        if count >= len(order) or followed[count - 1] != violated:
            return None
        mine, others = ([self.runs[i] for i in some] for some in (order[:count], order[count:]))
        return _some(mine, NUMBERS), _some(others, JUDGED)

    def figures(self, mine: Sequence[Rows], others: Sequence[Rows], directed: bool) -> list[float]:
        """Return area and Brier score, with or without trees of signals with a direction."""
        section = self.question.compiled.spec.properties[self.question.name]
        columns = _directed if directed else _undirected
        with (
            mock.patch.object(danger_fit, "MOST_TREES", TREES),
            mock.patch.object(danger_fit, "columns_of", columns),
        ):
            fit = fit_score(self.scoring, self.signs, self.question.name, section, mine).fit
        trees = compiled_trees(len(fit.signals), fit.moments, fit.lags, fit.ensemble)
        used = np.isin(self.scoring.signals, fit.signals)
        kept = np.repeat(used, others[0].features.shape[1] // len(used))
        x = np.concatenate([one.features for one in others])[:, kept]
        y = np.concatenate([one.followed for one in others])
        risk = np.array([trees.judge(np.ascontiguousarray(row)) for row in x], dtype=np.float64)
        known = ~np.isnan(risk)
        wrong = (risk[known] - y[known]) ** 2
        return [float(average_precision_score(y[known], risk[known])), float(wrong.mean())]


def _directed(width: int, signs: Sequence[int], _: int) -> danger_members.Columns:
    return danger_members.columns_of(width, signs, 0)  # however many have a violation


def _undirected(width: int, signs: Sequence[int], _: int) -> danger_members.Columns:
    return danger_members.columns_of(width, [0] * len(signs), 0)


def _some(runs: Sequence[Rows], most: int) -> list[Rows]:
    parts, _ = thinned(([one] for one in runs), most)
    return [one for (one,) in parts]


def point_of(question: Question, place: Path, runs: int) -> Point:
    """Read the first training runs; the monitor file with a score goes to a folder."""
    paths = question.training[:runs]
    place.mkdir(exist_ok=True)
    names = question.variables(pass_over(question.compiled, paths[0]))
    compiled = load_bare(stacked(question, names, place / "stacked.yaml"))
    ((_, scoring),) = compiled.abstraction.scores
    signs = {one.signal: -1 if one.falling else 1 for one in question.quantities}
    read = [rows_of(path, compiled, None, False)[0] for path in paths]
    return Point(question, scoring, [signs.get(one, 0) for one in scoring.signals], read)


def row_of(study: str, point: Point, violated: int, draws: int) -> list[str] | None:
    """Return the row of a study: means over the draws; None if there is none."""
    several = [point.drawn(violated, seed) for seed in range(draws)]
    parts = [one for one in several if one is not None]
    if not parts:
        return None
    found = [[point.figures(*one, own) for own in (False, True)] for one in parts]
    runs = np.mean([len(mine) for mine, _ in parts])
    (before, now), brier = np.array(found)[:, :, 0].T, np.array(found)[:, :, 1]
    more, higher = now - before, 100 * (brier[:, 1] / brier[:, 0] - 1)
    return [
        study, str(violated), f"{len(found)} ({runs:.0f})",
        f"{before.mean():.3f}", f"{now.mean():.3f}", f"{more.mean():+.3f}", str(np.sum(more < 0)),
        f"{higher.mean():+.1f} %", str(np.sum(higher > 0)),
    ]  # fmt: skip


def main(
    folder: Path,
    studies: Sequence[str],
    violated: Sequence[int] = VIOLATED,
    draws: int = 3,
    runs: int = RUNS,
    write: bool = False,
) -> None:
    """Read, draw, fit, judge, write."""
    rows = []
    for study in studies:
        point = point_of(question_of(study, folder), folder / study / "directions", runs)
        for count in violated:
            row = row_of(study, point, count, draws)
            if row is not None:
                rows.append(row)
                print(table(HEAD, [row]), flush=True)
    if write:
        put(MARK, table(HEAD, rows))


if __name__ == "__main__":
    command(main)
