"""What each group of predicates of the demo is worth for foreseeing collisions.

    python -m evaluation.sumo.ablation --runs /tmp/sumo-runs --work /tmp/sumo-ablation

Every recording is observed once, with `config/demo.yaml`. A chain over fewer predicates follows
from the same observations: it is learned anew from the states without those that are left out.
Thresholds are chosen by cross-validation among the runs for learning, as the least false alarms at
a detection rate and a median lead time (of the collisions foreseen), and applied to unseen runs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.sumo.runs import bag_path
from forewarn.assessment.tradeoff import AlertRule, Point, Trace, precision_recall, trade_off
from forewarn.config import load_spec
from forewarn.learning.counting import Counts, TransitionCounter, build_model
from forewarn.learning.pipeline import observe
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.estimation import estimate_chain
from forewarn.monitoring.verdict import Status
from forewarn.recordings import open_recording
from forewarn.states.vocabulary import Vocabulary, terminal_code

ROOT = Path(__file__).resolve().parents[2]
PROPERTY = "collision"
BROKEN_BY = {"red_light": "ran_red", "collision": "collision"}
UNKNOWN = -(1 << 40)
FOLDS = 4
LEVELS = np.round(np.geomspace(0.02, 0.9, 60), 3)
# Detection rate and median lead time (s) that a threshold is chosen for.
DEMANDS = {"0.9 s": (0.84, 0.9), "1.5 s": (0.88, 1.5)}

WALKERS = ("conflict_walker", "conflict_standing", "conflict_in_way")
CARS = ("conflict_car", "conflict_stopped", "conflict_flank")
BRAKING = ("must_brake", "must_brake_firmly", "must_brake_hard")
RED_LIGHT = ("time_to_line", "red_for", "red", "yellow", "ran_red", *BRAKING)
# What is left out: predicates by their names, or by the signal of their bins.
LEFT_OUT: Mapping[str, tuple[str, ...]] = {
    "nothing": (),
    "the red light": RED_LIGHT,
    "whether the car is at a junction, or turns right": ("junction", "turning_right"),
    "pedestrians: in the way, straight ahead": ("conflict_in_way",),
    "pedestrians: standing": ("conflict_standing",),
    "pedestrians: all but whether one is in conflict": WALKERS[1:],
    "pedestrians": WALKERS,
    "cars: stopped": ("conflict_stopped",),
    "cars: from the flanks": ("conflict_flank",),
    "cars": CARS,
    "all times to conflict": (*WALKERS, *CARS),
}


class Run(NamedTuple):
    """The states of one run: codes of all predicates, terminal codes, or `UNKNOWN`."""

    first: int
    states: NDArray[np.int64]


def observed(paths: Sequence[Path], compiled: CompiledSpec, folder: Path) -> Iterator[Run]:
    """Yield the states of every recording; those that were observed before come from `folder`."""
    abstraction = compiled.abstraction
    for path in paths:
        kept = folder / f"{path.name}-{abstraction.digest[:12]}.npz"
        if not kept.exists():
            with open_recording(path) as recording:
                rows = [
                    (snapshot.tick, UNKNOWN if state is None else state)
                    for snapshot, ((state, *_), *_) in observe(
                        recording, compiled.spec, abstraction
                    )
                ]
            ticks, states = np.array(rows, dtype=np.int64).T
            np.savez_compressed(kept, first=ticks[0], states=states)
        with np.load(kept) as data:
            yield Run(int(data["first"]), data["states"])


def kept_predicates(vocabulary: Vocabulary, left_out: Sequence[str]) -> list[int]:
    """Return the positions of the predicates that stay.

    Raises
    ------
    ValueError
        If a name to leave out fits no predicate.
    """
    names = [predicate.partition("<")[0] for predicate in vocabulary.predicates]
    strangers = set(left_out) - set(names)
    if strangers:
        raise ValueError(f"no predicate is called {', '.join(sorted(strangers))}")
    return [i for i, name in enumerate(names) if name not in left_out]


def project(states: NDArray[np.int64], kept: Sequence[int]) -> NDArray[np.int64]:
    """Return states of which only the given predicates are left; terminal codes stay."""
    small = np.zeros_like(states)
    for place, predicate in enumerate(kept):
        small |= (states >> predicate & 1) << place
    return np.where(states < 0, states, small)


def count(states: NDArray[np.int64], vocabulary: Vocabulary) -> Counts:
    """Count the transitions of one run."""
    counter = TransitionCounter(vocabulary)
    for tick, state in enumerate(states.tolist()):
        counter.add(tick, None if state == UNKNOWN else state)
    counter.end_recording()
    return counter.result


def learned_risk(
    counted: Iterable[Counts], vocabulary: Vocabulary, compiled: CompiledSpec
) -> dict[int, float]:
    """Learn a chain and return the risk of every state: to collide within the horizon."""
    total = TransitionCounter(vocabulary)
    total.include(counted)
    spec = compiled.spec
    model = build_model(total, rate=spec.rate, digest="")
    chain = estimate_chain(model)
    collided = np.array(model.states) < 0
    risk = collided.astype(np.float64)
    for _ in range(round(spec.properties[PROPERTY].horizon * spec.rate)):
        risk = np.where(collided, 1.0, chain.apply(risk))
    return dict(zip(model.states, risk.tolist(), strict=True))


def truth_of(run: Run, rule: str, compiled: CompiledSpec) -> Trace:
    """Return what happened in a run, without a score."""
    words, states = compiled.abstraction.vocabulary, run.states
    atom, ended = BROKEN_BY[rule], (states < 0) & (states != UNKNOWN)
    if atom in words.terminals:
        broken = states == terminal_code(words.terminals.index(atom))
    else:
        broken = (states >= 0) & (states >> words.predicates.index(atom) & 1 == 1)
    broken &= ~(ended & np.concatenate([[False], ended[:-1]]))  # a label is read once
    status = np.full(len(states), Status.SATISFIED_SO_FAR, dtype=np.int8)
    status[ended], status[states == UNKNOWN] = Status.ENDED, Status.UNKNOWN
    status[broken] = Status.VIOLATED
    return Trace(
        rate=compiled.spec.rate,
        horizon=round(compiled.spec.properties[rule].horizon * compiled.spec.rate),
        ticks=run.first + np.arange(len(states)),
        score=np.full(len(states), np.nan),
        violation=broken & ~np.concatenate([[False], broken[:-1]]),
        status=status,
        unsure=states == UNKNOWN,
        terminal=ended,
        clear=round(compiled.spec.properties[rule].clear * compiled.spec.rate),
    )


def trace(
    run: Run, states: NDArray[np.int64], risk: Mapping[int, float], compiled: CompiledSpec
) -> Trace:
    """Return what happened in a run, with the risk of its states over fewer predicates."""
    codes, where = np.unique(states, return_inverse=True)
    # A state that was never seen asks for a warning only; its risk does not count.
    scores = np.array([np.nan if c == UNKNOWN else risk.get(c, 0.0) for c in codes.tolist()])
    return truth_of(run, PROPERTY, compiled)._replace(score=scores[where])


def figures(point: Point) -> dict[str, float | int | None]:
    """Return what the table shows of a point."""
    return {
        "threshold": round(point.threshold, 4),
        "collisions": point.violations,
        "foreseen": point.detected,
        "median_lead": None if point.lead is None else round(point.lead.median, 2),
        "false_alarms_per_hour": round(point.false_alarms_per_hour or 0.0, 2),
        "alert_share": round(point.alert_share or 0.0, 4),
    }


def chosen(points: Sequence[Point], detection: float, lead: float) -> Point | None:
    """Return the point with the fewest false alarms that meets a demand."""
    fitting = [
        point
        for point in points
        if (point.recall or 0.0) >= detection
        and point.lead
        and point.lead.median >= lead - 1e-9
        # An alert that never ends has long leads and few false alarms.
        and (point.alert_share or 0.0) < 0.1
    ]
    return min(fitting, key=lambda point: point.false_alarms, default=None)


def judge(
    compiled: CompiledSpec, training: Sequence[Run], unseen: Sequence[Run], left_out: Sequence[str]
) -> dict[str, object]:
    """Return the figures without some predicates."""
    section = compiled.spec.properties[PROPERTY]
    rule = AlertRule.of(section)
    whole = compiled.abstraction.vocabulary
    kept = kept_predicates(whole, left_out)
    vocabulary = Vocabulary(tuple(whole.predicates[i] for i in kept), whole.terminals)
    train = [project(run.states, kept) for run in training]
    test = [project(run.states, kept) for run in unseen]
    counted = [count(states, vocabulary) for states in train]
    folds = []
    for fold in range(FOLDS):
        others = (item for i, item in enumerate(counted) if i % FOLDS != fold)
        risk = learned_risk(others, vocabulary, compiled)
        mine = range(fold, len(train), FOLDS)
        folds += [trace(training[i], train[i], risk, compiled) for i in mine]
    risk = learned_risk(counted, vocabulary, compiled)
    judged = [trace(run, states, risk, compiled) for run, states in zip(unseen, test, strict=True)]
    result: dict[str, object] = {
        "predicates": len(kept),
        "states": len(risk),
        "area": {
            "cross_validation": round(precision_recall(folds).area or 0.0, 4),
            "unseen": round(precision_recall(judged).area or 0.0, 4),
        },
    }
    points = trade_off(folds, LEVELS, rule=rule)
    for name, demand in DEMANDS.items():
        point = chosen(points, *demand)
        if point is not None:
            (applied,) = trade_off(judged, [point.threshold], rule=rule)
            result[name] = {"cross_validation": figures(point), "unseen": figures(applied)}
    return result


def arguments_of(description: str | None, output: Path) -> argparse.ArgumentParser:
    """Return the arguments of a comparison of chains: recordings, and where the figures go."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--runs", type=Path, required=True, help="folder of recordings")
    parser.add_argument("--work", type=Path, required=True, help="folder for what was observed")
    parser.add_argument("--training", default="1:201", help="first:end (default: 1:201)")
    parser.add_argument("--unseen", default="201:241", help="first:end (default: 201:241)")
    parser.add_argument("--output", type=Path, default=output)
    return parser


def observed_sets(arguments: argparse.Namespace, compiled: CompiledSpec) -> list[list[Run]]:
    """Return the runs for learning and the unseen ones, of those recordings that are there."""
    arguments.work.mkdir(parents=True, exist_ok=True)
    sets = []
    for seeds in (arguments.training, arguments.unseen):
        first, end = map(int, seeds.split(":"))
        paths = [path for i in range(first, end) if (path := bag_path(arguments.runs, i)).is_dir()]
        sets.append(list(observed(paths, compiled, arguments.work)))
    return sets


def write_report(
    arguments: argparse.Namespace, sets: Sequence[Sequence[Run]], found: Mapping[str, object]
) -> None:
    """Write what was found as JSON, with the runs that it was found on."""
    report = {
        "training": arguments.training,
        "unseen": arguments.unseen,
        "recordings": [len(runs) for runs in sets],
        **found,
    }
    arguments.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Observe the recordings, learn every variant, and write the figures as JSON."""
    parser = arguments_of(__doc__, Path(__file__).with_name("ablation.json"))
    parser.add_argument("--config", type=Path, default=ROOT / "config" / "demo.yaml")
    arguments = parser.parse_args()
    compiled = compile_spec(load_spec(arguments.config))
    sets = observed_sets(arguments, compiled)
    found = {}
    for name, left_out in LEFT_OUT.items():
        found[name] = judge(compiled, *sets, left_out)
        print(name, json.dumps(found[name]), flush=True)
    demands = {name: list(demand) for name, demand in DEMANDS.items()}
    write_report(arguments, sets, {"demands": demands, "left_out": found})


if __name__ == "__main__":
    main()
