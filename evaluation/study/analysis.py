"""Learn each scenario from its training runs, judge all monitors on its test runs, write figures.

    python -m evaluation.study.analysis --folder out/study --output evaluation/study/results.json

No SUMO is needed for this part.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.comparison import (
    THRESHOLDS,
    Contender,
    Group,
    calibration_of,
    learn_and_observe,
    risk_traces,
    rows_of,
    within,
)
from evaluation.study import rivals
from forewarn.config import load_spec
from forewarn.monitoring.tradeoff import AlertRule, Trace, trade_off
from forewarn.properties.specification import CompiledSpec, compile_spec
from forewarn.reports.run import RecordedRun

HERE = Path(__file__).parent
SCENARIOS = ("s1", "s2", "s3", "s4", "s5", "s6", "s7")
# False alarms an hour that a tuned threshold may cost on the training runs.
BUDGETS = {"s1": 6.0, "s2": 6.0, "s3": 6.0, "s4": 6.0, "s5": 6.0, "s6": 30.0, "s7": 30.0}
RESAMPLES = 300
SEED = 1

Score = Callable[[rivals.Signals], rivals.Floats]


class Runs:
    """The runs of a scenario through its monitor: for tuning, and for judging.

    For tuning, each half of the training runs is predicted by the model of the other half: risks of
    a model's own runs would flatter it, and its threshold with it.
    """

    def __init__(self, compiled: CompiledSpec, train: Sequence[Path], test: Sequence[Path]) -> None:
        (self.name,) = compiled.spec.properties
        halves = train[::2], train[1::2]
        self.tuning = [
            *learn_and_observe(compiled, halves[0], halves[1]),
            *learn_and_observe(compiled, halves[1], halves[0]),
        ]
        self.judged = learn_and_observe(compiled, train, test)
        section = compiled.spec.properties[self.name]
        self.rule = AlertRule(None, section.enter, section.exit, section.hold, section.unseen)

    def forewarn(self) -> Contender:
        """Return the chain's risk."""
        group = Group(risk_traces(self.tuning, self.name), risk_traces(self.judged, self.name))
        return Contender("Forewarn", self.rule, [group])

    def rival(self, name: str, score: Score) -> Contender:
        """Return a monitor that computes its score from the signals."""

        def traces(runs: Iterable[RecordedRun]) -> list[Trace]:
            runs = list(runs)
            scores = [score(rivals.signals_of(run)) for run in runs]
            return rivals.rescored(risk_traces(runs, self.name), scores)

        return Contender(name, self.rule, [Group(traces(self.tuning), traces(self.judged))])

    def reactive(self) -> Contender:
        """Return a monitor that alerts when the rule is broken."""

        def traces(runs: Iterable[RecordedRun]) -> list[Trace]:
            return [
                trace._replace(score=trace.violation.astype(np.float64), unseen=None)
                for trace in risk_traces(runs, self.name)
            ]

        return Contender(
            "rule broken", self.rule, [Group(traces(self.tuning), traces(self.judged))]
        )


def best_single(runs: Runs, scenario: str, budget: float) -> tuple[Contender, dict[str, float]]:
    """Return the quantity of longest lead within the budget on the tuning runs, and all leads.

    The lead is the mean over all violations, 0 s for a missed one.
    """
    found: dict[str, float] = {}
    contenders: dict[str, Contender] = {}
    for quantity in rivals.QUANTITIES[scenario]:
        contender = runs.rival(
            quantity.name, lambda signals, each=quantity: rivals.score_of(each, signals)
        )
        contenders[quantity.name] = contender
        found[quantity.name] = lead_within(contender, budget)
    best = max(found, key=lambda name: found[name])
    return contenders[best], found


def lead_within(contender: Contender, budget: float) -> float:
    """Return the mean lead on the tuning runs at the best threshold within the budget."""
    points = trade_off(contender.tuning, rule=contender.rule)
    allowed = [p for p in points if (p.false_alarms_per_hour or 0.0) <= budget]
    return max((sum(p.leads) / max(p.violations, 1) for p in allowed), default=0.0)


def judge(scenario: str, train: Sequence[Path], test: Sequence[Path]) -> dict[str, Any]:
    """Return the figures of one scenario."""
    compiled = compile_spec(load_spec(HERE / f"{scenario}.yaml"))
    runs = Runs(compiled, train, test)
    budget = BUDGETS[scenario]
    choose = within(budget)
    forewarn = runs.forewarn()
    rows = rows_of(forewarn, choose, fixed=THRESHOLDS, resamples=RESAMPLES, seed=SEED)
    rows += rows_of(runs.reactive(), choose, fixed=(0.5,), resamples=RESAMPLES, seed=SEED)[:1]
    robust = runs.rival("robustness", lambda signals: -rivals.robustness(scenario, signals))
    levels = [-level for level in rivals.ROBUSTNESS_LEVELS]
    rows += rows_of(robust, choose, fixed=levels, resamples=RESAMPLES, seed=SEED)
    if scenario in ("s6", "s7"):
        ttc = runs.rival("1/TTC", rivals.inverse_ttc)
        rows += rows_of(ttc, choose, resamples=RESAMPLES, seed=SEED)
    single, candidates = best_single(runs, scenario, budget)
    single = Contender(f"single: {single.name}", single.rule, single.groups)
    rows += rows_of(single, choose, resamples=RESAMPLES, seed=SEED)
    return {
        "train": [path.name for path in train],
        "test": [path.name for path in test],
        "budget": budget,
        "horizon": compiled.spec.properties[runs.name].horizon,
        "states": len({s for run in runs.judged for s in run.history.states}),
        "violations_in_training": sum(int(t.violation.sum()) for t in forewarn.tuning),
        "calibration": calibration_of(runs.judged, runs.name),
        "tuning_lead": {"Forewarn": lead_within(forewarn, budget), **candidates},
        "rows": rows,
    }


def traces_in(folder: Path, scenario: str, part: str, limit: int | None) -> list[Path]:
    """Return the traces of one part of a scenario, in order of seeds."""
    found = sorted((folder / scenario / part).glob("*.jsonl.gz"))
    return found[:limit]


def main() -> None:
    """Judge the scenarios whose runs are there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--folder", type=Path, required=True, help="runs of evaluation.study.record"
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=SCENARIOS)
    parser.add_argument("--runs", type=int, help="at most so many runs of each part")
    arguments = parser.parse_args()
    results = {}
    for scenario in arguments.scenarios:
        parts = [
            traces_in(arguments.folder, scenario, part, arguments.runs)
            for part in ("train", "test")
        ]
        began = time.perf_counter()
        results[scenario] = judge(scenario, *parts)
        print(f"{scenario}: {time.perf_counter() - began:.0f} s", flush=True)
    arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
