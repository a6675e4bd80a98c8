"""What the middle risks of the demo gain if its predicates say who is braking.

`RESULTS.md` shows that they are pulled together; this asks why.

    python -m evaluation.sumo.braking --runs /tmp/sumo-runs --work /tmp/sumo-braking

Every recording is observed once, with `config/demo.yaml` and predicates of the ego's own
acceleration beside its own. Each variant keeps some of these, or remembers the tick before, and is
learned from the same runs. For comparison, risks are also counted without any chain: the share of
a state's own visits in the runs for learning that a violation followed. That assumes nothing about
what comes in between; what it gains over the chain is what the Markov assumption costs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.sumo.ablation import (
    BROKEN_BY,
    FOLDS,
    ROOT,
    UNKNOWN,
    Run,
    arguments_of,
    count,
    kept_predicates,
    observed_sets,
    project,
    truth_of,
    write_report,
)
from evaluation.sumo.judging import Told, brier_difference, by_past, judge_ticks
from forewarn.assessment.calibration import fit
from forewarn.assessment.reliability import Predictions
from forewarn.assessment.tradeoff import Trace
from forewarn.checking.credible import Question, credible_tables
from forewarn.checking.labels import label_states
from forewarn.checking.numeric import risk_table
from forewarn.config import MonitorSpec, load_spec
from forewarn.config.sections import SignalSpec
from forewarn.learning.counting import Counts, TransitionCounter, build_model
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models import estimate_chain
from forewarn.models.calibration_map import Recalibration
from forewarn.models.counts import Smoothing
from forewarn.states.vocabulary import Vocabulary

SHIPPED = Smoothing(alpha="sparse", candidates="observed")
BRANCHED = ROOT / "evaluation" / "branching" / "results.json"

SIGNALS = {
    "acceleration": {
        "topic": "/ego/acceleration",
        "type": "geometry_msgs/msg/AccelStamped",
        "value": "accel.linear.x",
        "timeout": 0.3,
        "unit": "m/s^2",
    },
    "conflict_soonest": {"value": "min(conflict_car, conflict_walker)", "unit": "s"},
}
PREDICATES = {
    "braking": "acceleration < -1",
    "braking_hard": "acceleration < -3",
    "speeding_up": "acceleration > 0.5",
    # four fifths of the deceleration that stops the car at the line, or short of the conflict
    "braking_enough": "brake_needed >= 1 and -acceleration >= 0.8 * brake_needed",
    "braking_for_conflict": (
        "conflict_soonest < 1.8 and -acceleration * 2 * conflict_soonest >= 0.8 * speed"
    ),
    # At the present speed, firm braking was needed already when the light turned red: a car that
    # does not slow remains what it was at yellow.
    "late_at_red": (
        "light == 1 and stop_line > 0 and speed * speed >= 6 * (stop_line + speed * light_age)"
    ),
}


class Variant(NamedTuple):
    """What is added to the predicates of the demo, and how many ticks a state tells of."""

    added: tuple[str, ...] = ()
    history: int = 1


VARIANTS: Mapping[str, Variant] = {
    "as shipped": Variant(),
    "braking > 1": Variant(("braking",)),
    "braking > 1, > 3": Variant(("braking", "braking_hard")),
    "braking enough for the line": Variant(("braking_enough",)),
    "braking enough for line, conflict": Variant(("braking_enough", "braking_for_conflict")),
    "late at red": Variant(("late_at_red",)),
    "braking > 1, late at red": Variant(("braking", "late_at_red")),
    "all six": Variant(tuple(PREDICATES)),
    "as shipped, history: 2": Variant((), 2),
    "braking > 1, > 3, history: 2": Variant(("braking", "braking_hard"), 2),
}
# What is shown state by state.
IN_STATES = (
    "as shipped: chain",
    "as shipped: chain, unsmoothed",
    "as shipped: chain, calibrated",
    "as shipped: counted",
    "braking > 1: chain",
    "braking > 1: chain, unsmoothed",
    "braking > 1: counted",
    "braking > 1, late at red: chain",
    "as shipped, history: 2: chain",
)


def with_candidates(spec: MonitorSpec) -> MonitorSpec:
    """Return the monitor file with all predicates that a variant may add."""
    signals = {name: SignalSpec.model_validate(signal) for name, signal in SIGNALS.items()}
    return spec.model_copy(
        update={
            "signals": {**spec.signals, **signals},
            "predicates": {**spec.predicates, **PREDICATES},
        }
    )


def remembering(states: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Return states with the predicates of the tick before in their upper bits."""
    before = np.concatenate([states[:1], states[:-1]])
    lost = (before == UNKNOWN) & (states >= 0)
    # After a collision, the present values stand in for those before.
    before = np.where(before < 0, states, before)
    joined = np.where(states < 0, states, states | before << width)
    return np.where(lost, UNKNOWN, joined)


class Learned(NamedTuple):
    """Risk of each state of a variant: columns are lower bound, risk and upper bound."""

    states: NDArray[np.int64]
    values: NDArray[np.float64]

    def of(self, states: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the columns at each tick; NaN in states that were not learned."""
        at = np.minimum(np.searchsorted(self.states, states), len(self.states) - 1)
        return np.where((self.states[at] == states)[:, None], self.values[at], np.nan)


class Visits(NamedTuple):
    """How often a violation followed a visit of a state in the runs for learning."""

    states: NDArray[np.int64]
    visits: NDArray[np.int64]
    followed: NDArray[np.float64]

    def share(self, prior: Learned | None = None, weight: float = 0.0) -> Learned:
        """Return as risk the share of the visits, among which a prior risk counts as `weight`."""
        risk = np.zeros(len(self.states))
        if prior is not None:
            risk = np.nan_to_num(prior.of(self.states)[:, 1])
        share = (self.followed + weight * risk) / (self.visits + weight)
        nothing = np.full(len(share), np.nan)
        return Learned(self.states, np.stack([nothing, share, nothing], axis=1))


def chained(
    counts: Iterable[Counts],
    vocabulary: Vocabulary,
    compiled: CompiledSpec,
    smoothing: Smoothing = SHIPPED,
    *,
    bounds: bool = False,
) -> dict[str, Learned]:
    """Learn a chain and return the risk of each rule in every state."""
    total = TransitionCounter(vocabulary)
    total.include(counts)
    model = build_model(total, rate=compiled.spec.rate, digest="", smoothing=smoothing)
    automata = dict(zip(compiled.spec.properties, compiled.automata, strict=True))
    questions = [
        Question(
            automata[rule],
            label_states(automata[rule], vocabulary, model.states),
            round(compiled.spec.properties[rule].horizon * compiled.spec.rate),
        )
        for rule in BROKEN_BY
    ]
    chain = estimate_chain(model)
    tables = (
        credible_tables(model, questions)
        if bounds
        else [risk_table(chain, *question) for question in questions]
    )
    codes = np.array(model.states, dtype=np.int64)
    order = np.argsort(codes)
    found = {}
    for rule, table in zip(BROKEN_BY, tables, strict=True):
        nothing = np.full_like(table.values, np.nan)
        parts = (table.lower, table.values, table.upper)
        columns = [(nothing if x is None else x)[:, automata[rule].initial] for x in parts]
        found[rule] = Learned(codes[order], np.stack(columns, axis=1)[order])
    return found


def visited(runs: Sequence[NDArray[np.int64]], truth: Sequence[Trace]) -> Visits:
    """Count the visits of each state whose outcome is known, and those a violation followed."""
    judged = [judge_ticks(item) for item in truth]
    codes = np.concatenate([states[known] for states, (_, known) in zip(runs, judged, strict=True)])
    happened = np.concatenate([followed[known] for followed, known in judged])
    states, where, visits = np.unique(codes, return_inverse=True, return_counts=True)
    return Visits(states, visits, np.bincount(where, weights=happened))


def calibrated(
    train: Sequence[NDArray[np.int64]],
    past: Mapping[str, Sequence[Trace]],
    counts: Sequence[Counts],
    vocabulary: Vocabulary,
    compiled: CompiledSpec,
) -> dict[str, Recalibration]:
    """Fit isotonic maps to chains of three quarters of the runs, on the fourth."""
    parts: dict[str, list[Predictions]] = {rule: [] for rule in BROKEN_BY}
    for fold in range(FOLDS):
        others = (one_count for i, one_count in enumerate(counts) if i % FOLDS != fold)
        risks = chained(others, vocabulary, compiled)
        for rule in BROKEN_BY:
            values = [risks[rule].of(states) for states in train[fold::FOLDS]]
            parts[rule] += Told(past[rule][fold::FOLDS], values).predictions()
    maps = {}
    for rule, section in compiled.spec.properties.items():
        if rule in BROKEN_BY:
            fitted = fit(rule, section, parts[rule], method="isotonic", rate=compiled.spec.rate)
            assert fitted.found is not None, fitted.reason
            maps[rule] = fitted.found
    return maps


def ways_to_a_risk(
    train: Sequence[NDArray[np.int64]],
    past: Mapping[str, Sequence[Trace]],
    vocabulary: Vocabulary,
    compiled: CompiledSpec,
) -> Iterator[tuple[str, dict[str, Learned]]]:
    """Yield what each estimator makes of the same runs: its name, and the risks of each rule."""
    counts = [count(states, vocabulary) for states in train]
    chain = chained(counts, vocabulary, compiled, bounds=True)
    yield "chain", chain
    yield "chain, unsmoothed", chained(counts, vocabulary, compiled, Smoothing(alpha="none"))
    maps = calibrated(train, past, counts, vocabulary, compiled)
    yield (
        "chain, calibrated",
        {rule: Learned(item.states, maps[rule](item.values)) for rule, item in chain.items()},
    )
    visits = {rule: visited(train, past[rule]) for rule in BROKEN_BY}
    yield "counted", {rule: visit.share() for rule, visit in visits.items()}
    horizon = {rule: float(traces[0].horizon or 0) for rule, traces in past.items()}
    yield (
        "counted, chain as prior",
        {rule: visit.share(chain[rule], horizon[rule]) for rule, visit in visits.items()},
    )


def of_states(
    unseen: Sequence[Run], whole: Vocabulary, rule: str, told: Mapping[str, Told]
) -> list[dict[str, Any]]:
    """Return predictions and what was recorded in the product states that were branched.

    Parameters
    ----------
    unseen : sequence of Run
        Runs with all predicates.
    whole : Vocabulary
        All predicates.
    rule : str
        Name of the property.
    told : mapping
        What each variant says of the rule.
    """
    kept = kept_predicates(whole, tuple(PREDICATES))
    shipped = Vocabulary(tuple(whole.predicates[i] for i in kept), whole.terminals)
    truth = next(iter(told.values())).truth
    base = np.concatenate([project(run.states, kept) for run in unseen])
    slows = np.concatenate([run.states >> whole.predicates.index("braking") & 1 for run in unseen])
    followed, known = (np.concatenate(x) for x in zip(*map(judge_ticks, truth), strict=True))
    risks = {name: np.concatenate(item.values)[:, 1] for name, item in told.items()}
    rows: list[dict[str, Any]] = []
    branched = json.loads(BRANCHED.read_text(encoding="utf-8"))["rows"]
    for row in branched:
        if row["property"] != rule or not row["chosen"] or not row.get("recorded"):
            continue
        here = known & (base == shipped.parse_key(row["key"]))
        parts = {"": here, "braking": here & (slows == 1), "not braking": here & (slows == 0)}
        for part, chosen in parts.items():
            if chosen.any():
                means = {name: float(np.nanmean(risk[chosen])) for name, risk in risks.items()}
                rows.append(
                    {
                        "state": row["state"],
                        "part": part,
                        "ticks": int(chosen.sum()),
                        "recorded": round(float(followed[chosen].mean()), 4),
                        "predicted": {name: round(mean, 4) for name, mean in means.items()},
                    }
                )
    return rows


def compare(compiled: CompiledSpec, training: Sequence[Run], unseen: Sequence[Run]) -> Any:
    """Return the figures of all variants."""
    whole = compiled.abstraction.vocabulary
    truth, past = (
        {rule: [truth_of(run, rule, compiled) for run in runs] for rule in BROKEN_BY}
        for runs in (unseen, training)
    )
    told: dict[str, dict[str, Told]] = {rule: {} for rule in BROKEN_BY}
    report: dict[str, Any] = {}
    for name, variant in VARIANTS.items():
        kept = kept_predicates(whole, tuple(set(PREDICATES) - set(variant.added)))
        words = tuple(whole.predicates[i] for i in kept)
        train, test = ([project(run.states, kept) for run in runs] for runs in (training, unseen))
        if variant.history == 2:
            train, test = ([remembering(s, len(kept)) for s in part] for part in (train, test))
            words = (*words, *(f"{word} before" for word in words))
        vocabulary = Vocabulary(words, whole.terminals)
        seen = {int(code) for states in train for code in np.unique(states)} - {UNKNOWN}
        report[name] = {"predicates": len(words), "states": len(seen), "ways": {}}
        for way, risks in ways_to_a_risk(train, past, vocabulary, compiled):
            entry: dict[str, Any] = {}
            for rule in BROKEN_BY:
                mine = Told(truth[rule], [risks[rule].of(states) for states in test])
                told[rule][f"{name}: {way}"] = mine
                shipped = told[rule]["as shipped: chain"]
                entry[rule] = {
                    **mine.figures(compiled.spec.properties[rule]),
                    "brier_difference": brier_difference(mine, shipped),
                }
            report[name]["ways"][way] = entry
            print(name, way, json.dumps(entry), flush=True)
    return {
        "variants": report,
        "states": {
            rule: of_states(unseen, whole, rule, {name: told[rule][name] for name in IN_STATES})
            for rule in BROKEN_BY
        },
        "by_past": {"learning": by_past(training, compiled), "unseen": by_past(unseen, compiled)},
    }


def main() -> None:
    """Observe the recordings, learn every variant, and write the figures as JSON."""
    parser = arguments_of(__doc__, Path(__file__).with_name("braking.json"))
    arguments = parser.parse_args()
    compiled = compile_spec(with_candidates(load_spec(ROOT / "config" / "demo.yaml")))
    sets = observed_sets(arguments, compiled)
    write_report(arguments, sets, compare(compiled, *sets))


if __name__ == "__main__":
    main()
