"""What a learned score and a stack of estimates cost in a tick.

Eight recordings of the random walk of `core` (two minutes each) give a learned score over all eight
signals with a second of history, and what `estimator: ensemble` chooses for the property that it
foresees. The same ticks are evaluated with and without both, in turns, with the same 16 predicates
and 8 properties; processor time of the thread. The walk needs few trees, so that the step of the
score is also measured with as many as are ever fitted, drawn at random.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks._harness import Cell, Table, Target, quantile
from benchmarks._harness import run as serve
from benchmarks.core import tick_yaml, walk
from forewarn.assessment.outcome_counts import watch_for
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.build import build_without_bounds, with_estimates
from forewarn.monitoring.session import Session
from forewarn.monitoring.step import Monitor
from forewarn.wings.scores.boosted_trees import MOST_TREES
from forewarn.wings.scores.fit import Ensemble, lags_of
from forewarn.wings.scores.fitting import fit_scores
from forewarn.wings.scores.score import Scoring

EVER = 2 * MOST_TREES
"""Trees that a fit has at the most: of all features, and of the present alone.

One of few violations may have half as many more, of signals with a direction.
"""

DANGER = "learned_score: {ahead: {for: n0, history: 1.0}}\n"


def foreseeing_yaml() -> str:
    """Return the monitor file of `core` with a learned score and `estimator: ensemble`."""
    plain, asked = "  n0: {formula", "  n0: {estimator: ensemble, formula"
    text = tick_yaml()
    assert text.count(plain) == 1
    return text.replace(plain, asked) + DANGER


def monitor_of(text: str, traces: list[Path]) -> Monitor:
    """Return a monitor that has learned from traces, its learned score included."""
    spec = parse_spec(parse_document(text))
    compiled, _ = fit_scores(compile_spec(spec), traces)
    counts = learn(traces, spec, compiled.abstraction, watch=watch_for(compiled)).model
    return build_without_bounds(compiled, with_estimates(compiled, counts))


def write_traces(folder: Path, number: int, ticks: int) -> list[Path]:
    """Write the walk as recordings."""
    found = [folder / f"walk{seed:02}.jsonl" for seed in range(number)]
    for seed, path in enumerate(found):
        lines = (
            json.dumps({"t": tick / 10} | values) for tick, values in enumerate(walk(ticks, seed))
        )
        path.write_text("\n".join(lines) + "\n")
    return found


def measure_score(scoring: Scoring, ticks: int) -> list[float]:
    """Time the evaluation of a score, moment by moment, in microseconds."""
    cell, times = scoring.start, []
    for values in walk(ticks, seed=99):
        row = [*values.values()] * (len(scoring.signals) // len(values))
        begin = time.thread_time_ns()
        _, cell = scoring.advance(cell, scoring.row(row))
        times.append((time.thread_time_ns() - begin) / 1e3)
    return times


def measure_ticks(monitors: list[Monitor], ticks: int) -> list[list[float]]:
    """Time the same ticks with each monitor, in turns, in microseconds."""
    sessions = [Session(monitor, {}) for monitor in monitors]
    times: list[list[float]] = [[] for _ in monitors]
    for tick, values in enumerate(walk(ticks, seed=98)):
        for session, found in zip(sessions, times, strict=True):
            session.accept("", session.clock.time_ns(tick), values)
            begin = time.thread_time_ns()
            session.tick(tick)
            found.append((time.thread_time_ns() - begin) / 1e3)
    return times


def drawn(features: int) -> Ensemble:
    """Return as many trees as are ever fitted, each with 16 leaves, and a line."""
    draw, inner, nodes = random.Random(7), 15, 31
    feature: list[int] = []
    threshold: list[float] = []
    left: list[int] = []
    for tree in range(EVER):
        feature += [draw.randrange(features) for _ in range(inner)] + [-1] * (nodes - inner)
        threshold += [draw.uniform(0.0, 0.8) for _ in range(inner)] + [0.0] * (nodes - inner)
        left += [tree * nodes + 2 * i + 1 for i in range(inner)] + [-1] * (nodes - inner)
    return Ensemble(
        base=0.0,
        roots=tuple(range(0, EVER * nodes, nodes)),
        feature=tuple(feature),
        threshold=tuple(threshold),
        left=tuple(left),
        right=tuple(child + 1 if child >= 0 else -1 for child in left),
        missing_left=(0,) * len(feature),
        value=tuple(draw.gauss(0.0, 0.1) for _ in feature),
        needed=(0,) * features,
        line=((0.1, 0.0, -1.0, 1.0),) * features,
    )


def widened(scoring: Scoring, times: int, moments: int) -> Scoring:
    """Return a score over so many times the signals, which looks back for so many moments."""
    assert scoring.fit is not None
    signals = tuple(f"{name}_{i}" for i in range(times) for name in scoring.fit.signals)
    fit = replace(
        scoring.fit,
        signals=signals,
        moments=moments,
        lags=lags_of(moments),
        directions=(0,) * len(signals),
    )
    fit = replace(fit, ensemble=drawn(len(fit.features)))
    return replace(scoring, signals=signals, moments=moments, fit=fit)


def measure(recordings: int = 8, length: int = 1_200, ticks: int = 20_000) -> list[Table]:
    """Learn from so many recordings of so many ticks, and measure over so many others."""
    with tempfile.TemporaryDirectory() as folder:
        traces = write_traces(Path(folder), recordings, length)
        plain, foreseeing = (monitor_of(text, traces) for text in (tick_yaml(), foreseeing_yaml()))
    ((_, scoring),) = foreseeing.abstraction.scores
    assert scoring.fit is not None
    scored = sum(prop.scored is not None for prop in foreseeing.properties)
    largest = replace(scoring.fit, ensemble=drawn(len(scoring.fit.features)))
    alone = measure_score(replace(scoring, fit=largest), ticks)
    wide = measure_score(widened(scoring, 6, 50), ticks)
    fitted = measure_score(scoring, ticks)
    without, with_both = measure_ticks([plain, foreseeing], ticks)
    trees = len(scoring.fit.ensemble.roots)
    name = "learned score, 8 signals, 1 s of history"
    rows: list[tuple[Cell, ...]] = [
        (f"{name}, {trees} trees and a line: a step", "us", sum(fitted) / ticks, Target(20.0)),
        (f"{name}, {EVER} trees and a line: a step", "us", sum(alone) / ticks, Target(20.0)),
        (f"{name}, {EVER} trees and a line: p99", "us", quantile(alone, 0.99), None),
        ("the same with 48 signals, 5 s of history: a step", "us", sum(wide) / ticks, None),
        ("tick without score and estimate: p50", "us", quantile(without, 0.5), None),
        ("tick with both: p50", "us", quantile(with_both, 0.5), None),
        (
            "tick with both, as a multiple",
            "",
            quantile(with_both, 0.5) / quantile(without, 0.5),
            None,
        ),
        ("properties to whose risk the score adds", "", scored, None),
    ]
    return [Table(("What", "Unit", "Figure", "Target"), rows)]


if __name__ == "__main__":
    sys.exit(serve(measure))
