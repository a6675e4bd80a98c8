"""Whether `estimator: auto` should add up estimates where few recordings have a violation.

    python -m evaluation.foresight.few --models out/study/s1/foresight/Forewarn-400.json ...

asks the training recordings that stored models were learned from. Of them some are drawn, until so
many have a violation; these are learned from, and all others judge. No recording is read: a model
keeps what each of them gave. No score is among the estimates. The monitor file is `stacked.yaml`,
which the study wrote beside its models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from evaluation.foresight.rules import problem_of
from evaluation.harness.command import command
from evaluation.harness.page import put, table
from forewarn.learning.estimates.choice import choose, mixture_table
from forewarn.learning.estimates.problem import Problem
from forewarn.models import load_model
from forewarn.monitoring.loading import load_compiled

MARK = "evaluation.foresight.few"
VIOLATED = (2, 3, 4, 5)
LEAST = 4
"""Recordings that are learned from at the least."""

HEAD = ("Study", "with a violation", "draws (recordings)", "area: chain", "sum", "more",
        "less in", "Brier score to the chain's", "higher in")  # fmt: skip
Floats = NDArray[np.float64]


def drawn(whole: Problem, violated: int, seed: int) -> NDArray[np.bool_] | None:
    """Draw recordings until so many have a violation, shape (recordings,); None if more have."""
    rows = whole.rows
    followed = np.zeros(whole.recordings)
    np.add.at(followed, rows.recording, rows.followed)
    order = np.random.default_rng((seed, violated)).permutation(whole.recordings)
    count = int(np.searchsorted(np.cumsum(followed[order] > 0), violated)) + 1
    mine = np.isin(np.arange(whole.recordings), order[: max(count, LEAST)])
    return mine if (followed[mine] > 0).sum() == violated else None


def judged(whole: Problem, mine: NDArray[np.bool_]) -> Floats:
    """Return area and Brier score of the chain's risk and of the sum's, shape (2, 2)."""
    names = {name for name, own in zip(whole.clusters, mine, strict=True) if own}
    counted = whole.sample(mine.astype(np.int64)).model
    kept = tuple(shard for shard in whole.model.shards if shard.cluster in names)
    problem = replace(whole, model=replace(counted, shards=kept))
    estimate = choose(problem.model, problem.question, problem.judged, "auto")
    sample = problem.sample(np.ones(problem.recordings, dtype=np.int64))
    rows = whole.rows
    others = ~mine[rows.recording]
    visits, followed = rows.visits[others], rows.followed[others]
    truth = np.repeat([True, False], len(visits))
    weight = np.concatenate([followed, visits - followed])
    found = []
    for risks in (sample.risk, mixture_table(sample, estimate.plain, estimate.calibration)):
        risk = np.nan_to_num(risks[rows.state[others], rows.automaton[others]], nan=sample.share)
        risk = np.tile(risk, 2)
        area = average_precision_score(truth, risk, sample_weight=weight)
        found.append((area, np.average((risk - truth) ** 2, weights=weight)))
    return np.array(found)


def rows_of(name: str, whole: Problem, draws: int) -> list[list[str]]:
    """Return the rows of a study: means over draws, and from tenth to ninetieth percentile."""
    rows = []
    for violated in VIOLATED:
        several = [drawn(whole, violated, seed) for seed in range(draws)]
        figures = [(mine.sum(), judged(whole, mine)) for mine in several if mine is not None]
        if not figures:
            continue
        sizes, found = (np.array(part) for part in zip(*figures, strict=True))
        (chain, added), brier = found[:, :, 0].T, found[:, :, 1]
        more, higher = added - chain, 100 * (brier[:, 1] / brier[:, 0] - 1)
        rows.append([
            name, str(violated), f"{len(found)} ({sizes.mean():.0f})",
            f"{chain.mean():.3f}", f"{added.mean():.3f}", _spread(more, "{:+.3f}"),
            f"{100 * np.mean(more < 0):.0f} %", f"{_spread(higher, '{:+.0f}')} %",
            f"{100 * np.mean(higher > 0):.0f} %",
        ])  # fmt: skip
    return rows


def _spread(values: Floats, pattern: str) -> str:
    ends = ", ".join(pattern.format(end) for end in np.quantile(values, (0.1, 0.9)))
    return f"{pattern.format(values.mean())} [{ends}]"


def main(models: Sequence[Path], draws: int = 40, write: bool = False) -> None:
    """Draw, learn, judge, write."""
    rows = []
    for path in models:
        model = load_model(path)
        compiled = load_compiled(path.parent / "stacked.yaml", model)
        whole = problem_of(compiled, model, model.estimates[0].judged.name)
        whole = replace(whole, judged=whole.judged._replace(scores=()))
        rows += rows_of(path.parent.parent.name, whole, draws)
    text = table(HEAD, rows)
    print(text)
    if write:
        put(MARK, text)


if __name__ == "__main__":
    command(main)
