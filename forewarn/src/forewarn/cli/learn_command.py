"""``forewarn learn``: from recordings to a model file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forewarn.assessment.calibration import Fitted
from forewarn.assessment.modelling import LearnedModel, learn_model
from forewarn.assessment.sufficiency import (
    Requirement,
    dependence,
    estimators,
    never_led_to,
    verdict,
)
from forewarn.cli.assessment import (
    LISTED,
    RequirementOptions,
    coverage_record,
    dependence_record,
    estimator_record,
    print_coverage,
    print_dependence,
    print_estimators,
)
from forewarn.cli.common import (
    allow_missing_option,
    config_option,
    output_option,
    share,
)
from forewarn.cli.estimates_output import estimates_record, print_estimates
from forewarn.cli.groups import group_by_option, group_source_option, grouping_of
from forewarn.cli.learn_calibration import (
    CalibrationOptions,
    calibrate_model,
    calibration_method,
    calibration_record,
    print_calibration,
    used_incidents,
)
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.cli.readers import PartOptions, Readers, jobs_option, store_option
from forewarn.errors import plural
from forewarn.files.outputs import alone, check_output
from forewarn.learning.pipeline import Learned
from forewarn.learning.recording_report import RecordingReport
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import CountModel
from forewarn.models.file import load_model, save_model
from forewarn.monitoring.loading import load_bare
from forewarn.recordings.registry import existing_recordings
from forewarn.registry import part
from forewarn.signals.clock import Clock
from forewarn.states import learned_signal

MANY = 20
"""Recordings from which on studies found learned scores ahead of the chain."""

DESCRIPTION = """\
Learn a model: count the transitions between the states of consecutive ticks of recordings. Learned
scores are fitted first, by scikit-learn. `replay` of other recordings tells what the model
foresees; --assess, what a guarantee would take. With --epsilon or --delta, no more recordings are
read once they give it. From ten recordings or more without any violation, the model also keeps what
normal moments look like. With --group-by, each group also has a model of its own, which takes
in counts of the others, as many as predict best; states in which groups differ are named."""

EPILOG = """\
exit codes: 0 a model was written, 2 wrong usage or input.

examples: forewarn learn bags/ -c monitor.yaml -o monitor.model.json
          forewarn learn bags/ -c monitor.yaml -o model.json --epsilon 0.05 --per-transition
          forewarn learn bags/ -c monitor.yaml -o model.json --calibrate held_out/
          forewarn learn bags/ -c monitor.yaml -o model.json --group-by robot \\
              --group-source fleet.csv
          forewarn learn bags/ -c monitor.yaml -o model.json --add-to monday.json \\
              --jobs 8 --assess --delta 0.1
          forewarn learn bags/ -c monitor.yaml -o model.json --calibrate held_out/ \\
              --calibration platt --censoring weigh --incidents incidents/"""


@dataclass(frozen=True, kw_only=True)
class Options(RequirementOptions, CalibrationOptions, PartOptions):
    """The arguments of ``learn``."""

    config: Path = config_option()
    output: Path = output_option("model")
    add_to: list[Path] = option(
        "also take in the counts of this model file, learned elsewhere (may be repeated)", "MODEL"
    )
    jobs: int = jobs_option(
        "processes to use; by default one per core, and one for a few small recordings", 0
    )
    store: Path | None = store_option()
    group_by: str | None = group_by_option("learn a model for each group of recordings, too")
    group_source: str | None = group_source_option()
    assess: bool = option("print what a guarantee would take: coverage, Markov test and estimators")
    allow_missing: bool = allow_missing_option()


def run(options: Options, output: Output) -> int:
    """Learn, write the model file, and report."""
    check_output(options.output)
    grows = os.path.isfile(options.output) and os.path.realpath(options.output) in map(
        os.path.realpath, options.add_to
    )
    with alone(options.output) if grows else nullcontext():
        return _learn(options, output)


def _learn(options: Options, output: Output) -> int:
    compiled = load_bare(options.config)
    method = calibration_method(compiled, options.calibration, options.calibrate)
    incidents = used_incidents(options.incidents, options.calibrate, output)
    grouping = grouping_of(options.group_by, options.group_source)
    if grouping is not None:
        check_output(_group_output().group_file(options.output, "any"))
    recordings = options.existing(compiled.spec)
    requirement = Requirement.of(options.epsilon, options.delta, compiled, options.per_transition)
    others = [load_model(path) for path in options.add_to]
    held_out = existing_recordings(options.calibrate, compiled.spec)
    readers = Readers(options, [*recordings, *held_out], output)
    learned = learn_model(
        compiled,
        recordings,
        others=others,
        executor=readers.executor,
        store=readers.store,
        allow_missing=options.allow_missing,
        until=requirement if _asked(options) else None,
        grouping=grouping,
        normal=True,
        bars=output.progress,
    )
    _remark(learned, options, others, output)
    model, fitted = learned.model, list[Fitted]()
    if options.calibrate:
        model, fitted = calibrate_model(
            learned.compiled,
            learned.model,
            held_out,
            method,
            readers,
            weigh=options.censoring == "weigh",
            incidents=incidents,
        )
    readers.warn()
    save_model(model, options.output)
    if learned.scored:
        noun = learned.compiled.abstraction.clock.noun
        learned_signal.wing("output").print_scores(learned.scored, noun, output)
    if learned.normal is not None:
        asked = learned.compiled.spec.anomaly is not None
        _normal_output().print_normal(learned.normal, asked=asked, output=output)
    _report(learned, model, requirement, options, output, fitted, readers.record())
    return 0


def _remark(
    learned: LearnedModel, options: Options, others: Sequence[CountModel], output: Output
) -> None:
    """Print what the user should know of how the model was learned."""
    counted = learned.counted
    for note in learned.notes:
        output.note(f"note: {note}")
    for problem in counted.problems[:LISTED]:
        output.warn(problem)
    if options.store is not None:
        found = plural(len(counted.reports), "shard")
        output.note(f"{counted.kept} of {found} from the store")
        if learned.scored and counted.kept < len(counted.reports):
            clock = learned.compiled.abstraction.clock
            length = clock.span(sum(one.provenance.duration for one in counted.reports))
            output.note(
                f"note: learned scores were fitted again: {length} of recordings were read twice, "
                "to fit them and to count; `--add-to MODEL` keeps the scores of a model, and reads "
                "new recordings once"
            )
    if counted.fetched:
        output.note(f"{counted.fetched / 1e6:.3g} MB came over the network")
    for path, other in zip(options.add_to, others, strict=True):
        if other.recalibration:
            output.note(f"note: the calibration in {path} is left out: it was fitted to it alone")
        if other.hierarchical_prior is not None:
            output.note(f"note: counts that {path} borrows from other groups are left out")
    if len(counted.reports) >= MANY and (names := _by_default(learned.compiled)):
        output.note(
            f"note: the risk of {', '.join(names)} is the chain's alone. From so many recordings "
            "`estimator: ensemble` and learned scores often foresee more; `forewarn compare` tells"
        )


def _asked(options: Options) -> bool:
    return options.epsilon is not None or options.delta is not None


def _report(
    learned: LearnedModel,
    model: CountModel,
    requirement: Requirement,
    options: Options,
    output: Output,
    fitted: Sequence[Fitted],
    left_out: Mapping[str, str],
) -> None:
    compiled, counted = learned.compiled, learned.counted
    clock = compiled.abstraction.clock
    found = requirement.judge(model)
    tests = dependence(counted.triples)
    choices = estimators(compiled, model)
    judged = verdict(model, found, tests, choices)
    if options.assess or _asked(options):
        output.say(judged)
    elif never := never_led_to(choices):
        output.say(f"{never}: they have no risk")
    _print_recordings(counted.reports, clock, output)
    for line in learned.warnings:
        output.warn(line)
    transitions = int(model.counts.sum())
    if options.assess or _asked(options):
        print_coverage(model, found, model.size if options.assess else LISTED, output)
    if _asked(options):
        output.say(_stopped(counted, found.share))
    if options.assess:
        print_dependence(compiled, model, tests, model.size, output)
        print_estimators(model, choices, output)
    print_estimates(model, output, details=options.assess)
    print_calibration(fitted, clock.noun, output)
    output.say(
        f"{plural(model.size, 'state')}, {plural(transitions, 'transition')} -> {options.output}"
    )
    groups = None if learned.groups is None else _save_groups(learned.groups, options, output)
    output.emit(
        {
            "model": options.output,
            "states": model.size,
            "transitions": transitions,
            "guarantee": judged,
            "recordings": [_record(report) for report in counted.reports],
            "unread": counted.unread,
            "left_out": left_out,
            "from_store": counted.kept,
            "fetched": counted.fetched,
            "coverage": coverage_record(model, found),
            "markov": dependence_record(compiled, model, tests),
            "estimators": estimator_record(model, choices),
            "estimates": estimates_record(model),
            "calibration": calibration_record(fitted),
            "learned_score": {fit.name: fit.facts for fit in model.learned_score}
            | {one.fit.name: one.fit.facts | one.facts for one in learned.scored},
            "groups": groups,
            "normal": learned.normal and learned.normal.facts,
        }
    )


def _save_groups(groups: Any, options: Options, output: Output) -> Any:
    """Write and print the models of groups; return them for ``--json``."""
    words = _group_output()
    files = [words.group_file(options.output, name) for name in groups.models]
    for file, model in zip(files, groups.models.values(), strict=True):
        save_model(model, file)
    words.print_groups(groups, files, output)
    return words.groups_record(groups, files)


def _group_output() -> Any:
    return part("fleet", "output", "--group-by")


def _normal_output() -> Any:
    return part("anomalies", "learned_output", "what is normal")


def _by_default(compiled: CompiledSpec) -> list[str]:
    """Return the properties for whose risk the monitor file asks for no estimator."""
    sections = compiled.spec.properties.items()
    return [
        name
        for name, section in sections
        if section.risk_of == "state" and "estimator" not in section.model_fields_set
    ]


def _print_recordings(reports: Sequence[RecordingReport], clock: Clock, output: Output) -> None:
    """Print what was counted in each recording, and in all."""
    rows = [_row(report.provenance.recording, [report], clock) for report in reports]
    if len(rows) > 1:
        rows.append(_row("all", reports, clock))
    columns = (
        "recording", ">length", f">{clock.noun}s", ">known", ">inactive", ">intervened", ">gaps",
        ">transitions",
    )  # fmt: skip
    output.table(
        [_heading(name, [row[at] for row in rows]) for at, name in enumerate(columns)], rows
    )


def _heading(name: str, cells: Sequence[str]) -> str:
    """Return a heading, with a mark if the column may be left out where there is no room."""
    return f"?{name}" if set(cells) == {"0"} else name


def _stopped(learned: Learned, share: float) -> str:
    if share < 1.0:
        return "not enough yet: all recordings were read"
    left = len(learned.unread)
    return "enough: " + (
        f"the last {left} of {plural(left + len(learned.reports), 'recording')} "
        f"{'was' if left == 1 else 'were'} not read"
        if left
        else "all recordings were read"
    )


def _row(name: str, reports: Sequence[RecordingReport], clock: Clock) -> list[str]:
    """Return what was counted in some recordings."""
    ticks = sum(one.counts.ticks for one in reports)
    unknown = sum(one.counts.unknown for one in reports)
    return [
        name,
        clock.span(sum(one.provenance.duration for one in reports)),
        str(ticks),
        share(1 - unknown / ticks if ticks else None),
        str(sum(one.inactive for one in reports)),
        str(sum(one.counts.intervened for one in reports)),
        str(sum(one.counts.gaps for one in reports)),
        str(sum(one.provenance.transitions for one in reports)),
    ]


def _record(report: RecordingReport) -> dict[str, Any]:
    return {
        **report.provenance.__dict__,
        "unknown": report.counts.unknown,
        "inactive": report.inactive,
        "invalid": report.invalid,
        "intervened": report.counts.intervened,
        "gaps": report.counts.gaps,
        "refused": sum(report.counts.refused.values()),
        "stale": report.stale,
        "failures": report.failures,
        "warnings": report.warnings,
    }
