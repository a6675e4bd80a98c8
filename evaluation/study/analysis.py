"""Learn each scenario from its training runs, judge all monitors on its test runs, write figures.

    python -m evaluation.study.analysis --folder out/study --output evaluation/study/results.json

No SUMO is needed for this part.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import forewarn
from evaluation import comparison
from evaluation.comparison import (
    THRESHOLDS,
    Chooser,
    Contender,
    Group,
    calibration_of,
    risk_traces,
    rows_of,
)
from evaluation.study import rivals
from evaluation.study.passes import Pass, key_of, learn_from, pass_over, with_risk
from evaluation.study.record import FIRST_SEED
from forewarn.assessment.tradeoff import AlertRule, Point, ScoredRun, count_violations
from forewarn.config import load_spec
from forewarn.logic.specification import CompiledSpec, compile_spec

HERE = Path(__file__).parent
SCENARIOS = tuple(rivals.SCENARIOS)
# False alarms an hour that a tuned threshold may cost on the training runs.
BUDGETS = {"s1": 6.0, "s2": 6.0, "s3": 6.0, "s4": 6.0, "s5": 6.0, "s6": 30.0, "s7": 30.0}
RESAMPLES = 200
MAX_THRESHOLDS = 400
MAX_ALERT_SHARE = 0.1
SEED = 1

Score = Callable[[rivals.Signals], rivals.Floats]


class Runs:
    """The runs of a scenario through its monitor: for tuning, and for judging.

    For tuning, each half of the training runs is predicted by the model of the other half: risks of
    a model's own runs would flatter it, and its threshold with it.
    """

    def __init__(self, compiled: CompiledSpec, train: Sequence[Path], test: Sequence[Path]) -> None:
        (self.name,) = compiled.spec.properties
        learning = [pass_over(compiled, path) for path in train]
        unseen = [pass_over(compiled, path) for path in test]
        halves = learning[::2], learning[1::2]
        self.tuning = [
            *with_risk(compiled, learn_from(compiled, halves[0]), halves[1]),
            *with_risk(compiled, learn_from(compiled, halves[1]), halves[0]),
        ]
        self.judged = with_risk(compiled, learn_from(compiled, learning), unseen)
        section = compiled.spec.properties[self.name]
        self.rule = AlertRule(None, section.enter, section.exit, section.hold, section.unseen)

    def forewarn(self) -> Contender:
        """Return the chain's risk; `unseen: ignore` takes a state it does not know for no risk."""
        groups = [risk_traces(self.tuning, self.name), risk_traces(self.judged, self.name)]
        if self.rule.unseen == "ignore":
            groups = [[trace._replace(unseen=None) for trace in traces] for traces in groups]
        return Contender("Forewarn", self.rule, [Group(*groups)])

    def rival(self, name: str, score: Score) -> Contender:
        """Return a monitor that computes its score from the signals."""

        def traces(runs: Iterable[Pass]) -> list[ScoredRun]:
            runs = list(runs)
            scores = [score(run.signals) for run in runs]
            return rivals.rescored(risk_traces(runs, self.name), scores)

        return Contender(name, self.rule, [Group(traces(self.tuning), traces(self.judged))])

    def reactive(self) -> Contender:
        """Return a monitor that alerts when the rule is broken."""

        def traces(runs: Iterable[Pass]) -> list[ScoredRun]:
            return [
                trace._replace(score=trace.violation.astype(np.float64), unseen=None)
                for trace in risk_traces(runs, self.name)
            ]

        return Contender(
            "rule broken", self.rule, [Group(traces(self.tuning), traces(self.judged))]
        )


def best_single(
    runs: Runs, quantities: Iterable[rivals.Quantity], budget: float
) -> tuple[Contender, dict[str, float]]:
    """Return the quantity of longest lead within the budget on the tuning runs, and all leads.

    The lead is the mean over all violations, 0 s for a missed one.
    """
    found: dict[str, float] = {}
    contenders: dict[str, Contender] = {}
    for quantity in quantities:
        contender = runs.rival(
            quantity.name, lambda signals, each=quantity: rivals.score_of(each, signals)
        )
        contenders[quantity.name] = contender
        found[quantity.name] = lead_within(contender, budget)
    best = max(found, key=lambda name: found[name])
    return contenders[best], found


def lead_within(contender: Contender, budget: float) -> float:
    """Return the mean lead on the tuning runs at the best threshold within the budget."""
    best = best_point(contender.tuning, contender.rule, budget)
    return sum(best.leads) / max(best.violations, 1)


def best_point(traces: Sequence[ScoredRun], rule: AlertRule, budget: float) -> Point:
    """Return the point of longest mean lead within a budget, a missed violation counting as 0 s.

    Of all thresholds those at 400 ranks are tried, and only those allowed that alert for no more
    than a tenth of the time. If none is, the result is that of the least time under alert.
    """
    return comparison.best_point(
        traces,
        rule,
        budget,
        ranks=MAX_THRESHOLDS,
        alert_share=MAX_ALERT_SHARE,
        otherwise=lambda point: point.alert_share,
    )


def chooser(budget: float) -> Chooser:
    """Return what chooses the threshold of `best_point`."""
    return lambda traces, rule: best_point(traces, rule, budget).threshold


def judge(
    monitor_file: Path,
    against: rivals.Rivals,
    budget: float,
    train: Sequence[Path],
    test: Sequence[Path],
) -> dict[str, Any]:
    """Return the figures of one scenario.

    Parameters
    ----------
    monitor_file
        Has one property.
    against
        The monitors to compare it with.
    budget
        False alarms an hour that a tuned threshold may cost.
    train, test
        Recordings to learn from and to tune on, and to judge on.
    """
    began = time.perf_counter()
    compiled = compile_spec(load_spec(monitor_file))
    runs = Runs(compiled, train, test)
    choose = chooser(budget)
    forewarn = runs.forewarn()
    rows = rows_of(forewarn, choose, fixed=THRESHOLDS, resamples=RESAMPLES, seed=SEED)
    rows += rows_of(runs.reactive(), choose, fixed=(0.5,), resamples=RESAMPLES, seed=SEED)[:1]
    robust = runs.rival("robustness", lambda signals: -rivals.robustness(against.law, signals))
    levels = [-level for level in rivals.ROBUSTNESS_LEVELS]
    rows += rows_of(robust, choose, fixed=levels, resamples=RESAMPLES, seed=SEED)
    if against.collisions:
        ttc = runs.rival("1/TTC", rivals.inverse_ttc)
        rows += rows_of(ttc, choose, resamples=RESAMPLES, seed=SEED)
    single, candidates = best_single(runs, against.quantities, budget)
    single = Contender(f"single: {single.name}", single.rule, single.groups)
    rows += rows_of(single, choose, resamples=RESAMPLES, seed=SEED)
    return {
        "property": runs.name,
        "train_seeds": _span(train),
        "test_seeds": _span(test),
        "budget": budget,
        "horizon": compiled.spec.properties[runs.name].horizon,
        "states": len({s for run in runs.judged for s in run.codes.tolist()}),
        "violations_in_training": sum(map(count_violations, forewarn.tuning)),
        "calibration": calibration_of(runs.judged, runs.name),
        "tuning_lead": {"Forewarn": lead_within(forewarn, budget), **candidates},
        "rows": rows,
        "seconds": time.perf_counter() - began,
    }


def judge_scenario(name: str, train: Sequence[Path], test: Sequence[Path]) -> dict[str, Any]:
    """Return the figures of one of the seven scenarios; those that were made before are read."""
    first = HERE / "first" / f"{name}.yaml"
    files = [HERE / f"{name}.yaml", *([first] if first.exists() else [])]
    keys = [key_of(compile_spec(load_spec(file))) for file in files]
    names = [path.name for path in (*train, *test)]
    asked = json.dumps([keys, names, len(train), BUDGETS[name], sources_digest()])
    digest = hashlib.sha256(asked.encode()).hexdigest()
    kept = train[0].parents[1] / f"figures-{digest[:12]}.json"
    if not kept.exists():
        found = judge(files[0], rivals.SCENARIOS[name], BUDGETS[name], train, test)
        if len(files) == 2:
            found["first"] = judge_chain(first, BUDGETS[name], train, test)
        kept.write_text(json.dumps(found), encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))


@cache
def sources_digest() -> str:
    """Return a digest of the code that makes figures: other code makes them anew."""
    folders = Path(forewarn.__file__).parent, HERE
    files = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    digest = hashlib.sha256()
    for path in (*files, HERE.parent / "comparison.py"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def judge_chain(
    monitor_file: Path, budget: float, train: Sequence[Path], test: Sequence[Path]
) -> dict[str, Any]:
    """Return the figures of Forewarn alone: of an earlier version of a monitor file."""
    runs = Runs(compile_spec(load_spec(monitor_file)), train, test)
    rows = rows_of(
        runs.forewarn(), chooser(budget), fixed=THRESHOLDS, resamples=RESAMPLES, seed=SEED
    )
    return {"calibration": calibration_of(runs.judged, runs.name), "rows": rows}


def _span(paths: Sequence[Path]) -> str:
    """Return first and last seed, and how many of them ran."""
    names = [path.name.split(".")[0].lstrip("0") for path in paths]
    return f"{names[0]} to {names[-1]} ({len(names)} runs)"


def traces_in(folder: Path, scenario: str, part: str, limit: int | None) -> list[Path]:
    """Return the traces of one part of a scenario, in order of seeds."""
    first = FIRST_SEED[part]
    return [
        path
        for path in sorted((folder / scenario / part).glob("*.jsonl.gz"))
        if 0 <= int(path.name.split(".")[0]) - first < (limit or FIRST_SEED["test"])
    ]


def versions(sumo: Path | None) -> dict[str, str | None]:
    """Return what made the figures: the commit, and the versions of what it ran on."""
    ask = "import importlib.metadata as m; print(m.version('eclipse-sumo'))"
    return {
        "forewarn": _said_by(["git", "-C", str(HERE), "log", "-1", "--format=%h", "--", str(HERE)]),
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge the scenarios whose runs are there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--folder", type=Path, required=True, help="runs of evaluation.study.record"
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=SCENARIOS)
    parser.add_argument("--train", type=int, help="at most so many training runs of each")
    parser.add_argument("--test", type=int, help="at most so many test runs of each")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--sumo", type=Path, help="interpreter that has SUMO, to name its version")
    options = parser.parse_args(arguments)
    parts = {
        name: (
            traces_in(options.folder, name, "train", options.train),
            traces_in(options.folder, name, "test", options.test),
        )
        for name in options.scenarios
    }
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        found = {name: pool.submit(judge_scenario, name, *paths) for name, paths in parts.items()}
        scenarios = {}
        for name, future in found.items():
            scenarios[name] = future.result()
            print(f"study: {name} judged in {scenarios[name]['seconds']:.0f} s", flush=True)
    results = {"versions": versions(options.sumo), "scenarios": scenarios}
    options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
