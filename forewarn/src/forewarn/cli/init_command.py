"""``forewarn init``: a first monitor file from a recording."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from forewarn.cli.common import (
    RECORDINGS_HELP,
    add_output,
    existing_recordings,
    hertz_or_steps,
    positive_number,
)
from forewarn.cli.drafting.draft import draft
from forewarn.cli.drafting.writing import compose
from forewarn.cli.output import Output
from forewarn.config import parse_spec
from forewarn.config.fields import Rate
from forewarn.config.yaml_text import parse_document
from forewarn.errors import InputError
from forewarn.files.outputs import check_output, write_output
from forewarn.logic.specification import compile_spec
from forewarn.recordings import open_recording

DESCRIPTION = """\
Write a commented monitor file from the topics of a recording: signals for the message types that
are known, thresholds from the values in the recording, examples of predicates and properties, and
all other topics with their fields as comments. The file is valid as it is."""

EPILOG = """\
exit codes: 0 a file was written, 2 wrong usage or input.

example: forewarn init run.mcap -o monitor.yaml"""


@dataclass(frozen=True)
class Options:
    """The arguments of ``init``."""

    recording: Path
    output: Path
    rate: Rate
    step: str | None
    seconds: float
    force: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("recording", type=Path, metavar="BAG", help=RECORDINGS_HELP)
    add_output(parser, "monitor")
    parser.add_argument(
        "--rate",
        type=hertz_or_steps,
        default=10.0,
        metavar="HZ",
        help="ticks a second (default: 10), or steps: one line of a trace, or message, is one step",
    )
    parser.add_argument(
        "--step", metavar="TOPIC", help="with --rate steps: the topic whose messages are steps"
    )
    parser.add_argument(
        "--seconds",
        type=positive_number,
        default=600.0,
        metavar="S",
        help="how much of the recording to look at for thresholds (default: 600)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite the file if it exists")


def run(options: Options, output: Output) -> int:
    """Draft, check and write the file."""
    check_output(options.output)
    if options.output.is_file() and not options.force:
        raise InputError(
            "exists already", file=options.output, accepted="a new name, or --force to overwrite"
        )
    first, *others = existing_recordings([options.recording])
    if others:
        output.note(f"note: {len(others)} more recordings in the folder are not looked at")
    with open_recording(first) as recording, output.progress("looking at signals") as tell:
        found = draft(recording, options.rate, options.seconds, tell, options.step)
        warnings = list(recording.warnings)
    text = compose(found)
    compile_spec(parse_spec(parse_document(text, options.output)))
    write_output(options.output, text)
    for warning in warnings:
        output.warn(f"{first}: {warning}")
    named = ", ".join(signal.name for signal in found.signals)
    output.say(f"{len(found.signals)} signals ({named}) -> {options.output}")
    output.emit(
        {
            "file": options.output,
            "signals": {
                signal.name: {
                    "topic": signal.topic,
                    "type": signal.msgtype,
                    "value": signal.proposal.value,
                    "statistics": signal.statistics,
                }
                for signal in found.signals
            },
            "unused_topics": [t.info.name for t in found.topics if t.fields or t.info.error],
        }
    )
    return 0
