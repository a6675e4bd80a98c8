"""Learn each scenario from its training runs, judge all monitors on its test runs, write figures.

    python -m evaluation.study.analysis --folder out/study --output evaluation/study/results.json

The folder has runs of `evaluation.study.record`; no SUMO is needed for this part, `--sumo` names an
interpreter that has it for its version. `--write` puts the tables into the page of results.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import forewarn
from evaluation.harness.command import command
from evaluation.harness.compare import (
    THRESHOLDS,
    Contender,
    Score,
    calibration_of,
    contender,
    rows_of,
    within,
)
from evaluation.harness.page import put, write_json
from evaluation.harness.runs import Pass, key_of, two_halves
from evaluation.study import rivals
from evaluation.study.record import FIRST_SEED
from evaluation.study.table import MARK, document
from forewarn.assessment.comparison import best_point
from forewarn.assessment.episodes import AlertRule, ScoredRun
from forewarn.assessment.tradeoff import count_violations
from forewarn.logic.specification import CompiledSpec
from forewarn.monitoring.loading import load_bare

HERE = Path(__file__).parent
# False alarms an hour that a tuned threshold may cost on the training runs.
BUDGETS = {"s1": 6.0, "s2": 6.0, "s3": 6.0, "s4": 6.0, "s5": 6.0, "s6": 30.0, "s7": 30.0}
RESAMPLING = {"resamples": 200, "seed": 1}


# Of all thresholds those at 400 ranks are tried, and only those allowed that alert for no more than
# a tenth of the time; if there is none, there is no alert.
LIMITS: dict[str, Any] = {"ranks": 400, "alert_share": 0.1}


class Runs:
    """The runs of a scenario through its monitor, and what scores them."""

    def __init__(self, compiled: CompiledSpec, train: Sequence[Path], test: Sequence[Path]) -> None:
        ((self.name, section),) = compiled.spec.properties.items()
        self.fold = two_halves(compiled, train, test)
        self.rule = AlertRule(None, section.enter, section.exit, section.hold, section.unseen)

    def contender(self, label: str, score: Score | None = None) -> Contender:
        """Return a monitor that computes a score; by default the chain."""
        if score is None and self.rule.unseen == "ignore":

            def score(_: Pass, run: ScoredRun) -> rivals.Floats:  # what it does not know is no risk
                return run.score

        return contender(label, self.rule, [self.fold], self.name, score)

    def on_signals(self, label: str, score: rivals.Score) -> Contender:
        """Return a monitor that computes its score from the signals."""
        return self.contender(label, lambda run, _: score(run.signals))

    def chain(self, budget: float) -> dict[str, Any]:
        """Return the figures of the chain alone."""
        choose = within(budget, **LIMITS)
        rows = rows_of(self.contender("Forewarn"), choose, fixed=THRESHOLDS, **RESAMPLING)
        return {"calibration": calibration_of(self.fold.judged, self.name), "rows": rows}


def lead_within(runs: Contender, budget: float) -> float:
    """Return the mean lead on the tuning runs at the best threshold, 0 s for a missed violation."""
    best = best_point(runs.tuning, runs.rule, budget, **LIMITS)
    return sum(best.leads) / max(best.violations, 1)


def judge(
    monitor_file: Path,
    against: rivals.Rivals,
    budget: float,
    train: Sequence[Path],
    test: Sequence[Path],
) -> dict[str, Any]:
    """Return the figures of one scenario, whose monitor file has one property.

    A tuned threshold may cost so many false alarms an hour on the training runs.
    """
    began = time.perf_counter()
    compiled = load_bare(monitor_file)
    runs, choose = Runs(compiled, train, test), within(budget, **LIMITS)
    ours, chain = runs.contender("Forewarn"), runs.chain(budget)
    reactive = runs.contender("rule broken", lambda _, run: run.violation.astype(np.float64))
    rows = chain["rows"] + rows_of(reactive, choose, fixed=(0.5,), **RESAMPLING)[:1]
    robust = runs.on_signals("robustness", lambda signals: -rivals.robustness(against.law, signals))
    levels = [-level for level in rivals.ROBUSTNESS_LEVELS]
    rows += rows_of(robust, choose, fixed=levels, **RESAMPLING)
    if against.collisions:
        rows += rows_of(runs.on_signals("1/TTC", rivals.inverse_ttc), choose, **RESAMPLING)
    singles = {q.name: runs.on_signals(f"single: {q.name}", q.score) for q in against.quantities}
    leads = {name: lead_within(single, budget) for name, single in singles.items()}
    rows += rows_of(singles[max(leads, key=lambda name: leads[name])], choose, **RESAMPLING)
    return {
        "property": runs.name,
        "train_seeds": _span(train),
        "test_seeds": _span(test),
        "budget": budget,
        "horizon": compiled.spec.properties[runs.name].horizon,
        "states": len({s for run in runs.fold.judged for s in run.codes.tolist()}),
        "violations_in_training": sum(map(count_violations, ours.tuning)),
        "calibration": chain["calibration"],
        "tuning_lead": {"Forewarn": lead_within(ours, budget), **leads},
        "rows": rows,
        "seconds": time.perf_counter() - began,
    }


def judge_scenario(name: str, train: Sequence[Path], test: Sequence[Path]) -> dict[str, Any]:
    """Return the figures of one of the seven scenarios; those that were made before are read."""
    first = HERE / "first" / f"{name}.yaml"
    files = [HERE / f"{name}.yaml", *([first] if first.exists() else [])]
    keys = [key_of(load_bare(file)) for file in files]
    names = [path.name for path in (*train, *test)]
    asked = json.dumps([keys, names, len(train), BUDGETS[name], sources_digest()])
    digest = hashlib.sha256(asked.encode()).hexdigest()
    kept = train[0].parents[1] / f"figures-{digest[:12]}.json"
    if not kept.exists():
        found = judge(files[0], rivals.SCENARIOS[name], BUDGETS[name], train, test)
        if first.exists():
            runs = Runs(load_bare(first), train, test)
            found["first"] = runs.chain(BUDGETS[name])
        kept.write_text(json.dumps(found), encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))


@cache
def sources_digest() -> str:
    """Return a digest of the code that makes figures: other code makes them anew."""
    digest = hashlib.sha256()
    for folder in (Path(forewarn.__file__).parent, HERE, HERE.parent / "harness"):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _span(paths: Sequence[Path]) -> str:
    """Return first and last seed, and how many of them ran."""
    names = [path.name.split(".")[0].lstrip("0") for path in paths]
    return f"{names[0]} to {names[-1]} ({len(names)} runs)"


def traces_in(folder: Path, part: str, limit: int | None) -> list[Path]:
    """Return the traces of one part of a scenario, in order of seeds."""
    last = FIRST_SEED[part] + (limit or FIRST_SEED["test"])
    traces = sorted((folder / part).glob("*.jsonl.gz"))
    return [path for path in traces if FIRST_SEED[part] <= int(path.name.split(".")[0]) < last]


def versions(sumo: Path | None) -> dict[str, str | None]:
    """Return what made the figures: the commit, and the versions of what it ran on."""
    ask = "import importlib.metadata as m; print(m.version('eclipse-sumo'))"
    return {
        "forewarn": _said_by(["git", "-C", str(HERE), "log", "-1", "--format=%h"]),
        "sumo": _said_by([str(sumo), "-c", ask]) if sumo else None,
        "numpy": np.__version__,
        "rtamt": metadata.version("rtamt"),
        "python": platform.python_version(),
    }


def _said_by(command: list[str]) -> str | None:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def main(
    folder: Path,
    output: Path,
    scenarios: Sequence[str] = tuple(rivals.SCENARIOS),
    train: int | None = None,
    test: int | None = None,
    jobs: int = 1,
    sumo: Path | None = None,
    write: bool = False,
) -> None:
    """Judge the scenarios whose runs are there, at most so many of each."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = {
            name: pool.submit(
                judge_scenario,
                name,
                traces_in(folder / name, "train", train),
                traces_in(folder / name, "test", test),
            )
            for name in scenarios
        }
        found = {name: future.result() for name, future in futures.items()}
    results = {"versions": versions(sumo), "scenarios": found}
    write_json(output, results)
    print(document(results))
    if write:
        put(MARK, document(results))


if __name__ == "__main__":
    command(main)
