"""``forewarn learn``: from recordings to a model file."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forewarn.cli.common import (
    add_config,
    add_recordings,
    existing_recordings,
    fraction,
    load_compiled,
    overall,
    share,
    span,
    whole_number,
)
from forewarn.cli.enough import (
    coverage_record,
    estimators,
    not_markov,
    print_coverage,
    print_estimators,
    print_not_markov,
)
from forewarn.cli.output import Output
from forewarn.errors import RecordingError
from forewarn.learning.coverage import DELTA, EPSILON, coverage
from forewarn.learning.pipeline import (
    Learned,
    RecordingReport,
    assemble,
    count_recording,
    learn,
    refuse_duplicates,
)
from forewarn.models import CountModel, load_model, merge_models, save_model
from forewarn.predicates.validity import build_validity
from forewarn.properties.specification import CompiledSpec
from forewarn.reports.results import stale_remark

DESCRIPTION = """\
Learn a model from recordings: every recording goes through the signals and predicates of the
monitor file, and the transitions between the states of consecutive ticks are counted."""

EPILOG = """\
exit codes: 0 a model was written, 2 wrong usage or input.

example: forewarn learn bags/ -c monitor.yaml -o monitor.model.json --jobs 4"""


@dataclass(frozen=True)
class Options:
    """The arguments of ``learn``."""

    recordings: list[Path]
    config: Path
    output: Path
    add_to: list[Path]
    jobs: int
    epsilon: float
    delta: float
    stop_when_covered: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recordings(parser)
    add_config(parser)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the model file to write"
    )
    parser.add_argument(
        "--add-to",
        type=Path,
        action="append",
        default=[],
        metavar="MODEL",
        help="also take in the counts of this model file, learned elsewhere (may be repeated)",
    )
    parser.add_argument(
        "-j",
        "--jobs",
        type=whole_number,
        default=1,
        metavar="N",
        help="processes to use, 0 for one per core (default: 1)",
    )
    for name, default, text in (
        ("--epsilon", EPSILON, "error of a transition probability that is allowed"),
        ("--delta", DELTA, "probability with which it may be exceeded"),
    ):
        parser.add_argument(
            name,
            type=fraction,
            default=default,
            metavar="P",
            help=f"for coverage: {text} (default: {default:g})",
        )
    parser.add_argument(
        "--stop-when-covered",
        action="store_true",
        help="read no more recordings once every state has the visits that it needs",
    )


def run(options: Options, output: Output) -> int:
    """Learn, write the model file, and report."""
    compiled = load_compiled(options.config)
    recordings = existing_recordings(options.recordings)
    others = [load_model(path) for path in options.add_to]
    if options.stop_when_covered:
        learned = _until_covered(compiled, recordings, options, output)
    else:
        with output.progress(f"learning from {len(recordings)} recordings") as tell:
            learned = learn(
                recordings,
                compiled.spec,
                compiled.abstraction,
                jobs=options.jobs or os.cpu_count() or 1,
                progress=overall(recordings, tell),
            )
    if not any(report.provenance.transitions for report in learned.reports):
        raise RecordingError(
            "no transition could be counted: " + _why_nothing(learned.reports),
            file=options.recordings[0],
            accepted="recordings in which two consecutive ticks have all predicates known",
        )
    model = merge_models([learned.model, *others]) if others else learned.model
    save_model(model, options.output)
    _report(compiled, learned, model, options, output)
    return 0


def _until_covered(
    compiled: CompiledSpec, recordings: list[Path], options: Options, output: Output
) -> Learned:
    """Learn recording by recording until every state is covered."""
    spec, abstraction = compiled.spec, compiled.abstraction
    validity = build_validity(spec, abstraction)
    reports: list[RecordingReport] = []
    with output.progress("required visits made") as tell:
        for path in recordings:
            reports.append(count_recording(path, spec, abstraction, validity))
            refuse_duplicates(recordings[: len(reports)], reports)
            learned = assemble(reports, spec, abstraction, validity)
            found = coverage(learned.model, options.epsilon, options.delta)
            tell(found.share, 1.0)
            if found.complete:
                break
    output.note(
        f"note: every state is covered, {len(recordings) - len(reports)} recordings were not read"
        if found.complete
        else "note: all recordings were read, and some states are not covered yet"
    )
    return learned


def _why_nothing(reports: Iterable[RecordingReport]) -> str:
    stale = sum((report.stale for report in reports), Counter[str]())
    if stale:
        return "signals without a value: " + ", ".join(name for name, _ in stale.most_common(8))
    failures = sum((report.failures for report in reports), Counter[str]())
    if failures:
        return failures.most_common(1)[0][0]
    return "no tick had a known state while `active_when` held"


def _report(
    compiled: CompiledSpec, learned: Learned, model: CountModel, options: Options, output: Output
) -> None:
    reports = learned.reports
    rows = [_row(report) for report in reports]
    if len(rows) > 1:
        rows.append(_total(reports))
    output.table(
        ("recording", ">length", ">ticks", ">known", ">inactive", ">intervened", ">gaps",
         ">transitions"),
        rows,
    )  # fmt: skip
    for line in remarks(reports):
        output.warn(line)
    transitions = int(model.counts.sum())
    found = coverage(model, options.epsilon, options.delta)
    print_coverage(model, found, output)
    dependent = not_markov(model, learned.triples)
    print_not_markov(model, dependent, output)
    choices = estimators(compiled, model)
    print_estimators(model, choices, output)
    output.say(f"{model.size} states, {transitions} transitions -> {options.output}")
    output.emit(
        {
            "model": options.output,
            "states": model.size,
            "transitions": transitions,
            "recordings": [_record(report) for report in reports],
            "coverage": coverage_record(model, found),
            "not_markov": [
                {**test._asdict(), "state": model.vocabulary.key(test.state)} for test in dependent
            ],
            "estimators": choices,
        }
    )


def _row(report: RecordingReport) -> list[str]:
    counts, source = report.counts, report.provenance
    known = 1 - counts.unknown / counts.ticks if counts.ticks else None
    return [
        source.recording,
        span(source.duration),
        str(counts.ticks),
        share(known),
        str(report.inactive),
        str(counts.intervened),
        str(counts.gaps),
        str(source.transitions),
    ]


def _total(reports: Iterable[RecordingReport]) -> list[str]:
    parts = list(reports)
    ticks = sum(part.counts.ticks for part in parts)
    unknown = sum(part.counts.unknown for part in parts)
    return [
        "all",
        span(sum(part.provenance.duration for part in parts)),
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
    lines += [f"{reason} ({number} ticks)" for reason, number in failures.most_common(10)]
    if invalid:
        lines.append(
            f"{invalid} ticks are in states that a constraint or the thresholds on a signal "
            "exclude; they are not counted"
        )
    if refused:
        lines.append(
            f"{sum(refused.values())} transitions are forbidden by a constraint, and yet recorded; "
            "they are not counted"
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
