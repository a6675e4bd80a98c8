"""``forewarn init``: a first monitor file from a recording."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from forewarn.cli.common import (
    allow_missing_option,
    at_least_one,
    hertz_or_steps,
    positive_number,
    recordings_argument,
)
from forewarn.cli.improving import blocks_of, run_improvement
from forewarn.cli.init.draft import draft
from forewarn.cli.init.proposing import Proposed, proposed_rules
from forewarn.cli.init.rules import kind_of
from forewarn.cli.init.writing import compose, written
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.config.fields import Rate
from forewarn.config.file import load_spec, parse_spec
from forewarn.config.includes import KINDS
from forewarn.config.yaml_text import parse_document
from forewarn.errors import InputError, plural
from forewarn.files.outputs import check_output, write_output
from forewarn.logic.specification import compile_spec
from forewarn.recordings.interface import Recording
from forewarn.recordings.registry import existing_recordings, open_recording
from forewarn.recordings.traces import JsonTrace

MOST = 200
"""Recordings that are looked at: all of them are open at once."""
DEFAULT_RATE = 10.0
"""Hz."""

KINDS_IN_WORDS = {
    "mobile_base": "a mobile base", "arm": "an arm", "drone": "a drone", "car": "a car",
    "agent": "an agent",
}  # fmt: skip

DESCRIPTION = """\
Write a commented monitor file from the topics of recordings: signals, thresholds from the values,
and rules for this kind of robot, each tried on the recordings: how often it is broken, and whether
anything in the signals comes before. The file is valid as it is.

With --improve, propose predicates for a monitor file: cuts of its signals, of what they were over a
window, and of how long its predicates have held. Half of the recordings choose; the rest judges."""

EPILOG = """\
exit codes: 0 a file was written, or proposals were made, 2 wrong usage or input.

examples: forewarn init run.mcap -o monitor.yaml
          forewarn init --improve monitor.yaml bags/ -o better.yaml
          forewarn init run.mcap -o monitor.yaml --rate 20 --seconds 60 --kind drone --force
          forewarn init run.mcap -o steps.yaml --rate steps --step /plan
          forewarn init --improve monitor.yaml bags/ -o better.yaml \\
              --property stop --most 5 --tries 30 --blocks 60"""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of ``init``."""

    recordings: list[Path] = recordings_argument()
    output: Path | None = option(
        "the monitor file to write; needed but for --improve", "FILE", "-o"
    )
    improve: Path | None = option("propose predicates for this monitor file", "FILE")
    property: str | None = option("with --improve: whose risk (the file's first property)", "NAME")
    most: int = option(
        "with --improve: predicates to propose at the most", "N", of=at_least_one, default=3
    )
    tries: int = option(
        "with --improve: conditions to cross-validate for each of them",
        "N",
        of=at_least_one,
        default=12,
    )
    blocks: float | None = option(
        "with --improve: cut recordings into blocks of so many seconds, each of which counts as a "
        "recording",
        "S",
        of=positive_number,
    )
    allow_missing: bool = allow_missing_option()
    rate: Rate | None = option(
        "ticks a second, or steps (default: 10, or a trace's lines a second if these "
        "are fewer; steps for lines without times)",
        "HZ",
        of=hertz_or_steps,
    )
    step: str | None = option("with --rate steps: the topic whose messages are steps", "TOPIC")
    seconds: float = option(
        "how much of the recordings to look at, together", "S", of=positive_number, default=600.0
    )
    kind: str | None = option(
        "whose rules to propose (default: what the recordings look like)", choices=KINDS
    )
    force: bool = option("overwrite the file if it exists")


def run(options: Options, output: Output) -> int:
    """Draft, check and write the file, or propose predicates for one."""
    check_output(options.output)
    if options.improve is None and options.output is None:
        raise InputError("is missing", key="-o", accepted="the monitor file to write")
    if options.output is not None and options.output.is_file() and not options.force:
        raise InputError(
            "exists already", file=options.output, accepted="a new name, or --force to overwrite"
        )
    if options.improve is not None:
        recordings = existing_recordings(options.recordings, load_spec(options.improve))
        run_improvement(
            options.improve,
            recordings if options.blocks is None else blocks_of(recordings, options.blocks),
            options.output,
            options.property,
            options.most,
            options.tries,
            output,
            allow_missing=options.allow_missing,
        )
    elif options.output is not None:
        _draft(options, options.output, output)
    return 0


def _draft(options: Options, target: Path, output: Output) -> None:
    """Draft, check and write a monitor file."""
    paths = existing_recordings(options.recordings)
    if len(paths) > MOST:
        output.note(f"note: {len(paths) - MOST} more recordings are not looked at")
    with ExitStack() as opened, output.progress("looking at signals") as tell:
        found_all = [opened.enter_context(open_recording(path)) for path in paths[:MOST]]
        traced = isinstance(found_all[0], JsonTrace)
        recordings = [each for each in found_all if isinstance(each, JsonTrace) == traced]
        if len(recordings) < len(found_all):
            left = len(found_all) - len(recordings)
            output.warn(f"{plural(left, 'recording')} not looked at: no file reads both kinds")
        rate = _rate_of(recordings) if options.rate is None else options.rate
        found = draft(recordings, rate, options.seconds, tell, options.step)
        warnings = [f"{each.path}: {text}" for each in recordings for text in each.warnings]
    if found.unnamed:
        named = ", ".join(found.unnamed)
        warnings.append(f"left out, because no signal may have such a name: {named}")
    if options.rate is None and not (found.timed or found.calls):
        warnings.append("no line has a time: each is a step (for ticks, call the seconds t)")
    kind = options.kind or kind_of(found)
    with output.progress("trying rules") as tell:
        proposed = proposed_rules(found, kind, recordings, options.seconds, tell)
    text = compose(found, proposed.example)
    spec = parse_spec(parse_document(text, target))
    compile_spec(spec)
    write_output(target, text)
    for warning in warnings:
        output.warn(warning)
    signals = written(found)
    named = ", ".join(signal.name for signal in signals)
    output.say(f"{plural(len(signals), 'signal')} ({named}) -> {target}")
    _show(kind, proposed, spec.properties.keys(), output)
    output.emit(
        {
            "file": target,
            "kind": kind,
            "rules": {name: trial._asdict() for name, trial in proposed.trials.items()},
            "signals": {
                signal.name: {
                    "topic": signal.topic,
                    "type": signal.msgtype,
                    "value": signal.proposal.value,
                    "statistics": signal.statistics,
                }
                for signal in signals
            },
            "unused_topics": [t.info.name for t in found.topics if t.fields or t.info.error],
        }
    )


def _show(kind: str, proposed: Proposed, active: Collection[str], output: Output) -> None:
    """Show each rule that was tried, and what came of it in these recordings."""
    if not proposed.trials:
        output.say(f"no rule for {KINDS_IN_WORDS[kind]} can be watched with these signals")
        return
    output.say(
        f"rules for {KINDS_IN_WORDS[kind]} (--kind says otherwise); those with "
        "a star are in the file, the others are comments:"
    )
    rows = [
        ["*" if name in active else "", name, trial.told()]
        for name, trial in proposed.trials.items()
    ]
    output.table(("", "rule", "in these recordings"), rows)


def _rate_of(recordings: Sequence[Recording]) -> Rate:
    """Return the default rate, or that of a trace's lines if it is lower, but 1 at the least."""
    if not recordings[0].timed:
        return "steps"
    seconds = sum(one.duration for one in recordings)
    if not isinstance(recordings[0], JsonTrace) or seconds <= 0:
        return DEFAULT_RATE
    lines = sum(one.count - 1 for one in recordings)
    return float(min(DEFAULT_RATE, max(1, round(lines / seconds))))
