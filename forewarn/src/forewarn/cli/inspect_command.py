"""``forewarn inspect``: what is in a model file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forewarn.assessment.sufficiency import Requirement, Sufficiency
from forewarn.cli.assessment import (
    RequirementOptions,
    coverage_record,
    print_coverage,
)
from forewarn.cli.common import config_option, top_option
from forewarn.cli.estimates_output import estimates_record, print_estimates
from forewarn.cli.options import argument, option
from forewarn.cli.output import Output
from forewarn.cli.tables import changed
from forewarn.errors import ModelError, located, plural
from forewarn.models.counts import CountModel
from forewarn.models.file import load_model
from forewarn.models.hierarchical_prior import prior_in_words, prior_record
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.composition import in_words as composition_in_words
from forewarn.monitoring.loading import load_compiled
from forewarn.monitoring.reasons import Reasons, explain_risk, in_words
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.tables import CompiledProperty
from forewarn.registry import model_section
from forewarn.reports.states import (
    RiskyState,
    by_visits,
    no_risk_text,
    risk_text,
    riskiest,
    successors,
)
from forewarn.signals.clock_kinds import by_clock, clock_of

DESCRIPTION = """\
Show a model: where its counts come from, its states with their visits, coverage and most
frequent successors; with a monitor file the states with the greatest risk. Coverage is about the
risk within the longest horizon, or without a monitor file about each transition probability."""

EPILOG = """\
exit codes: 0 fine, 2 wrong usage or input.

examples: forewarn inspect monitor.model.json -c monitor.yaml --top 20
          forewarn inspect monitor.model.json -c monitor.yaml --why"""


@dataclass(frozen=True, kw_only=True)
class Options(RequirementOptions):
    """The arguments of ``inspect``."""

    model: Path = argument("the model file", "MODEL")
    config: Path | None = config_option("the monitor file, for risks", required=False)
    top: int = top_option()
    why: bool = option(
        "with -c: ways and time to the violation of the riskiest states, and which "
        "predicate's change would lower the risk most"
    )


def run(options: Options, output: Output) -> int:
    """Print the model."""
    model = load_model(options.model)
    monitor = compiled = None
    if options.config is not None:
        compiled = load_compiled(options.config, model)
        with located(ModelError, file=options.model):
            monitor = build_monitor(compiled, model)
    found = Requirement.of(options.epsilon, options.delta, compiled, options.per_transition).judge(
        model
    )
    _print_head(model, output)
    for mended in model.recalibration:
        output.say(
            f"the risk of {mended.name} is calibrated: {mended.method}, "
            f"{plural(mended.ticks, clock_of(model.rate).noun)} of "
            f"{plural(len(mended.recordings), 'held-out recording')}"
        )
    print_estimates(model, output, details=True)
    for key, values in model.sections.items():
        if values and (words := model_section(key).in_words) is not None:
            output.say(words(values))
    limit = options.top or model.size
    _print_states(model, found, limit, output)
    print_coverage(model, found, limit, output)
    output.say()
    risks: dict[str, list[RiskyState]] = {}
    reasons: dict[str, dict[str, Reasons]] = {}
    if monitor is not None:
        for prop in monitor.properties:
            risks[prop.name] = riskiest(prop, model, limit)
            _print_risks(prop, risks[prop.name], output)
            if options.why:
                reasons[prop.name] = _explain(monitor, model, prop.name, risks[prop.name], output)
        for note in monitor.all_notes:
            output.note(f"note: {note}")
    output.emit({**_document(model, found, risks, monitor), "reasons": reasons})
    return 0


def _print_head(model: CountModel, output: Output) -> None:
    clock, seen = clock_of(model.rate), int(model.observed.sum())
    duration = sum(origin.duration for origin in model.provenance)
    output.say(
        f"{plural(model.size, 'state')} ({seen} observed), "
        f"{plural(int(model.counts.sum()), 'transition')} of {plural(model.counts.nnz, 'kind')}, "
        f"{plural(int(model.starts.sum()), 'episode')}, {by_clock(model.rate)}"
    )
    output.say(
        f"{plural(len(model.provenance), 'recording')}, "
        f"{clock.span(duration)}; smoothing "
        f"{model.smoothing.alpha} over {model.smoothing.candidates} states; "
        f"{plural(model.intervened, clock.noun)} left out under an intervention"
    )
    output.say(f"abstraction {model.digest[:16]}")
    if borrowed := prior_in_words(model):
        output.say(borrowed)
    output.say()


def _print_states(model: CountModel, found: Sufficiency, limit: int, output: Output) -> None:
    missing = None if found.coverage is None else found.coverage.missing
    rows = []
    for index in by_visits(model)[:limit]:
        following = ", ".join(
            f"{changed(model.name(index), model.name(target))} "
            f"{100 * number / max(int(model.visits[index]), 1):.1f} %"
            for target, number in successors(model, index)[:3]
        )
        rows.append(
            [
                model.vocabulary.key(model.states[index]),
                model.name(index),
                str(int(model.visits[index])),
                "never enough" if missing is None else f"{missing[index]:,}",
                str(int(model.starts[index])),
                str(len(successors(model, index))),
                following,
            ]
        )
    columns = (
        "?state",
        "name",
        ">visits",
        "?>missing",
        "?>starts",
        "?>successors",
        "most frequent",
    )
    output.table(columns, rows, "the most visited states")
    output.say()


def _print_risks(compiled: CompiledProperty, rows: list[RiskyState], output: Output) -> None:
    if not rows:
        output.say(f"{compiled.name}: {no_risk_text(compiled)}")
        return
    cells = [
        [
            risk_text(row.risk),
            "" if row.lower != row.lower else f"{row.lower:.3f}..{row.upper:.3f}",
            row.name,
            row.automaton,
            str(row.visits),
        ]
        for row in rows
    ]
    output.table(
        (">risk", "bounds", "state", "obligation", ">visits"),
        cells,
        f"{compiled.name}: the riskiest states",
    )
    output.say()


def _explain(
    monitor: Monitor, model: CountModel, name: str, risky: list[RiskyState], output: Output
) -> dict[str, Reasons]:
    found: dict[str, Reasons] = {}
    clock = monitor.clock
    for state in risky:
        why = explain_risk(monitor, name, model.states[state.row], state.automaton_state)
        if why is None:
            continue
        found[state.state] = why
        time = (
            ""
            if math.isnan(why.expected_time)
            else f", expected in {clock.say(why.expected_time, '.1f')}"
        )
        output.say(f"{state.name} ({state.automaton}): {risk_text(why.published)}{time}")
        if why.made_of is not None:
            output.say(f"  {composition_in_words(why.made_of)}")
            output.say(f"  the chain alone says {risk_text(why.risk)}, along these paths:")
        for way in why.ways:
            time = clock.say(way.time, ".1f")
            output.say(f"  {_percentage(way.share):>3} %  {time}  {' > '.join(way.states)}")
        for sentence in in_words(why, clock)[bool(why.ways) :]:
            output.say(f"  {sentence}")
    output.say()
    return found


def _percentage(share: float) -> str:
    """Return a share so that only none is 0 and only all is 100."""
    if 0.005 <= share <= 0.995 or share in (0.0, 1.0):
        return f"{100 * share:.0f}"
    return "<1" if share < 0.5 else ">99"


def _section_facts(model: CountModel) -> dict[str, Any]:
    """Return what the sections of wings and other packages hold, by their keys."""
    kept = ((key, model_section(key).facts, values) for key, values in model.sections.items())
    return {key: facts(values) for key, facts, values in kept if values and facts is not None}


def _document(
    model: CountModel,
    found: Sufficiency,
    risks: dict[str, list[RiskyState]],
    monitor: Monitor | None,
) -> dict[str, Any]:
    return {
        **_section_facts(model),
        "rate": model.rate,
        "digest": model.digest,
        "predicates": model.vocabulary.predicates,
        "terminals": model.vocabulary.terminals,
        "smoothing": model.smoothing,
        "intervened": model.intervened,
        "recordings": [origin.__dict__ for origin in model.provenance],
        "recalibration": model.recalibration,
        "estimates": estimates_record(model),
        "hierarchical_prior": prior_record(model),
        "states": [
            {
                "state": model.vocabulary.key(model.states[index]),
                "name": model.name(index),
                "visits": int(model.visits[index]),
                "starts": int(model.starts[index]),
                "successors": {
                    model.vocabulary.key(model.states[j]): number
                    for j, number in successors(model, index)
                },
            }
            for index in by_visits(model)
        ],
        "coverage": coverage_record(model, found),
        "riskiest": risks,
        "notes": () if monitor is None else monitor.all_notes,
    }
