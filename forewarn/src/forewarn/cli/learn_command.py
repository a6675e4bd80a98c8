"""``forewarn learn``: from recordings to a model file."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forewarn.assessment.calibration import Fitted
from forewarn.assessment.outcome_counts import watch_for
from forewarn.assessment.results import stale_remark
from forewarn.cli.assessment import (
    LISTED,
    Requirement,
    add_requirement,
    coverage_record,
    dependence,
    dependence_record,
    estimator_record,
    estimators,
    print_coverage,
    print_dependence,
    print_estimators,
    verdict,
)
from forewarn.cli.calibration_step import (
    add_calibration,
    calibrate_model,
    calibration_method,
    calibration_record,
    print_calibration,
)
from forewarn.cli.common import (
    add_allow_missing,
    add_config,
    add_jobs,
    add_output,
    add_part,
    add_recordings,
    existing_recordings,
    overall,
    share,
)
from forewarn.cli.danger_step import print_scores, scores_record, with_scores
from forewarn.cli.estimates_step import estimated_model, estimates_record, print_estimates
from forewarn.cli.output import Bar, Output
from forewarn.cli.replay_command import Censoring
from forewarn.config import load_spec
from forewarn.errors import RecordingError
from forewarn.files.outputs import check_output
from forewarn.learning.copies import Copies
from forewarn.learning.danger_fit import FittedScore
from forewarn.learning.pipeline import Learned, RecordingReport, learn
from forewarn.logic.problems import all_problems
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models import CountModel, load_model, merge_models, save_model
from forewarn.recordings.interface import plural
from forewarn.recordings.parts import Part, file_of
from forewarn.reports.figures import percent
from forewarn.signals.clock import Clock

DESCRIPTION = """\
Learn a model from recordings: every recording goes through the signals and predicates of the
monitor file, and the transitions between the states of consecutive ticks are counted. The first
line says what the data are good for, and --assess why. Coverage: have the states been visited often
enough, and how often do they have to be? With --epsilon or --delta, no more recordings are read
once they have. Markov test: does what comes next depend on more than the state? Smoothing: how much
does the risk depend on it? A danger score of the monitor file is fitted before all that, by
scikit-learn. Where a property names an `estimator`, what its risk is made of is chosen by how well
it predicts recordings that were left out. With --calibrate, risks are then mapped to the
frequencies that other recordings show."""

EPILOG = """\
exit codes: 0 a model was written, 2 wrong usage or input.

examples: forewarn learn bags/ -c monitor.yaml -o monitor.model.json
          forewarn learn bags/ -c monitor.yaml -o model.json --epsilon 0.05 --per-transition
          forewarn learn bags/ -c monitor.yaml -o model.json --calibrate held_out/"""


SMALL = 16 << 20
COLUMNS = (
    "recording",
    ">length",
    ">ticks",
    ">known",
    ">inactive",
    ">intervened",
    ">gaps",
    ">transitions",
)


@dataclass(frozen=True)
class Options:
    """The arguments of ``learn``."""

    recordings: list[Path]
    begin: str | None
    end: str | None
    config: Path
    output: Path
    add_to: list[Path]
    jobs: int
    epsilon: float | None
    delta: float | None
    per_transition: bool
    assess: bool
    calibrate: list[Path]
    calibration: str | None
    allow_missing: bool
    censoring: Censoring


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recordings(parser)
    add_part(parser)
    add_config(parser)
    add_output(parser, "model")
    parser.add_argument(
        "--add-to",
        type=Path,
        action="append",
        default=[],
        metavar="MODEL",
        help="also take in the counts of this model file, learned elsewhere (may be repeated)",
    )
    add_jobs(
        parser, "processes to use; by default one per core, and one for a few small recordings", 0
    )
    add_requirement(parser)
    parser.add_argument(
        "--assess",
        action="store_true",
        help="print all of coverage, Markov test and estimators, not only the first line",
    )
    add_calibration(parser)
    add_allow_missing(parser)


def run(options: Options, output: Output) -> int:
    """Learn, write the model file, and report."""
    check_output(options.output)
    with all_problems(options.config):
        compiled = compile_spec(load_spec(options.config))
    method = calibration_method(compiled, options.calibration, options.calibrate)
    recordings = existing_recordings(
        options.recordings, compiled.spec, Part(options.begin, options.end)
    )
    others = [load_model(path) for path in options.add_to]
    jobs = options.jobs or _processes(recordings)
    compiled, scored = with_scores(
        compiled, recordings, others, jobs, output, allow_missing=options.allow_missing
    )
    requirement = Requirement.of(options.epsilon, options.delta, compiled, options.per_transition)
    copies = Copies(allowed=True)
    with output.progress(f"learning from {plural(len(recordings), 'recording')}") as tell:
        stop = _Stop(requirement, others, tell) if _asked(options) else None
        learned = learn(
            recordings,
            compiled.spec,
            compiled.abstraction,
            jobs=jobs,
            progress=overall(recordings, tell),
            enough=stop,
            allow_missing=options.allow_missing,
            watch=watch_for(compiled),
            copies=copies,
        )
    if remark := copies.remark():
        output.warn(remark)
    if not any(report.provenance.transitions for report in learned.reports):
        raise RecordingError(
            "no transition could be counted: " + _why_nothing(learned.reports),
            file=options.recordings[0],
            accepted="recordings in which two consecutive ticks have all predicates known",
        )
    model = merge_models([learned.model, *others]) if others else learned.model
    model = estimated_model(compiled, model, output)
    for path, other in zip(options.add_to, others, strict=True):
        if other.recalibration:
            output.note(f"note: the calibration in {path} is left out: it was fitted to it alone")
    fitted: list[Fitted] = []
    if options.calibrate:
        model, fitted = calibrate_model(
            compiled,
            model,
            options.calibrate,
            method,
            output,
            allow_missing=options.allow_missing,
            weigh=options.censoring == "weigh",
        )
    save_model(model, options.output)
    print_scores(scored, output)
    _report(compiled, learned, model, requirement, options, output, fitted, scored)
    return 0


def _asked(options: Options) -> bool:
    return options.epsilon is not None or options.delta is not None


@dataclass(frozen=True)
class _Stop:
    """Tells after each recording how far the data suffice, and shows it on the bar."""

    requirement: Requirement
    others: list[CountModel]
    tell: Bar

    def __call__(self, model: CountModel) -> float:
        """Return the share of the required visits that were made."""
        share = self.requirement.judge(merge_models([model, *self.others])).share
        self.tell(label=f"learning, coverage {percent(share, 3)}")
        return share


def _processes(recordings: Sequence[Path]) -> int:
    """Return how many processes pay: each takes a second to start."""
    size = sum(
        part.stat().st_size
        for path in map(file_of, recordings)
        for part in (path.rglob("*") if path.is_dir() else (path,))
        if part.is_file()
    )
    return 1 if size < SMALL else os.cpu_count() or 1


def _why_nothing(reports: Iterable[RecordingReport]) -> str:
    stale = sum((report.stale for report in reports), Counter[str]())
    failures = sum((report.failures for report in reports), Counter[str]())
    # Signals are stale for some ticks in any recording: the cause is what lasts longest.
    if failures and max(failures.values()) > max(stale.values(), default=0):
        return failures.most_common(1)[0][0]
    if stale:
        return "signals without a value: " + ", ".join(name for name, _ in stale.most_common(8))
    return "no tick had a known state while `active_when` held"


def _report(
    compiled: CompiledSpec,
    learned: Learned,
    model: CountModel,
    requirement: Requirement,
    options: Options,
    output: Output,
    fitted: Sequence[Fitted],
    scored: Sequence[FittedScore],
) -> None:
    reports = learned.reports
    clock = compiled.abstraction.clock
    rows = [_row(report, clock) for report in reports]
    if len(rows) > 1:
        rows.append(_total(reports, clock))
    found = requirement.judge(model)
    tests = dependence(learned.triples)
    choices = estimators(compiled, model)
    judged = verdict(model, found, tests, choices)
    output.say(judged)
    output.table(
        [_heading(name, [row[at] for row in rows]) for at, name in enumerate(COLUMNS)], rows
    )
    for line in remarks(reports):
        output.warn(line)
    transitions = int(model.counts.sum())
    if options.assess or _asked(options):
        print_coverage(model, found, model.size if options.assess else LISTED, output)
    if _asked(options):
        output.say(_stopped(learned, found.share))
    if options.assess:
        print_dependence(compiled, model, tests, model.size, output)
        print_estimators(model, choices, output)
    print_estimates(model, output)
    print_calibration(fitted, output)
    output.say(
        f"{plural(model.size, 'state')}, {plural(transitions, 'transition')} -> {options.output}"
    )
    output.emit(
        {
            "model": options.output,
            "states": model.size,
            "transitions": transitions,
            "verdict": judged,
            "recordings": [_record(report) for report in reports],
            "unread": learned.unread,
            "coverage": coverage_record(model, found),
            "markov": dependence_record(compiled, model, tests),
            "estimators": estimator_record(model, choices),
            "estimates": estimates_record(model),
            "calibration": calibration_record(fitted),
            "danger": scores_record(model.danger, scored),
        }
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


def _row(report: RecordingReport, clock: Clock) -> list[str]:
    counts, source = report.counts, report.provenance
    known = 1 - counts.unknown / counts.ticks if counts.ticks else None
    return [
        source.recording,
        clock.span(source.duration),
        str(counts.ticks),
        share(known),
        str(report.inactive),
        str(counts.intervened),
        str(counts.gaps),
        str(source.transitions),
    ]


def _total(reports: Iterable[RecordingReport], clock: Clock) -> list[str]:
    parts = list(reports)
    ticks = sum(part.counts.ticks for part in parts)
    unknown = sum(part.counts.unknown for part in parts)
    return [
        "all",
        clock.span(sum(part.provenance.duration for part in parts)),
        str(ticks),
        share(1 - unknown / ticks if ticks else None),
        str(sum(part.inactive for part in parts)),
        str(sum(part.counts.intervened for part in parts)),
        str(sum(part.counts.gaps for part in parts)),
        str(sum(part.provenance.transitions for part in parts)),
    ]


def remarks(reports: Iterable[RecordingReport]) -> list[str]:
    """Return what was left out of the counts, and why; nothing is skipped in silence."""
    parts = list(reports)
    ticks = sum(part.counts.ticks for part in parts)
    stale = sum((part.stale for part in parts), Counter[str]())
    failures = sum((part.failures for part in parts), Counter[str]())
    invalid = sum(part.invalid for part in parts)
    refused = sum((part.counts.refused for part in parts), Counter[tuple[int, int]]())
    lines = [
        f"{part.provenance.recording}: {warning}" for part in parts for warning in part.warnings
    ]
    if stale:
        lines.append(stale_remark(stale, ticks))
    lines += [f"{reason} ({plural(number, 'tick')})" for reason, number in failures.most_common(10)]
    if invalid:
        lines.append(
            f"{plural(invalid, 'tick')} in states that a constraint or the thresholds on a signal "
            "exclude: not counted"
        )
    if refused:
        lines.append(
            f"{plural(sum(refused.values()), 'transition')} recorded that a constraint forbids: "
            "not counted"
        )
    return lines


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
