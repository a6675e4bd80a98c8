"""``forewarn replay``: recordings through the monitor, as it would have run live."""

from __future__ import annotations

import argparse
import io
import json
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TextIO

import zstandard

from forewarn.assessment.replay import Replaying, settled_runs, weighted_runs
from forewarn.assessment.results import result
from forewarn.cli.common import (
    add_allow_missing,
    add_config,
    add_model,
    add_report,
    write_report,
)
from forewarn.cli.fleet import PartOptions, Readers, add_fleet, add_parts
from forewarn.cli.output import Output
from forewarn.cli.tables import print_runs
from forewarn.cli.train_test_separation import calibrated_on
from forewarn.files.outputs import OutputFile, check_output
from forewarn.monitoring.loading import make_monitor

DESCRIPTION = """\
Run the monitor over recordings, tick by tick, with the code that runs live: the same recording
gives the same verdicts to the last bit."""

EPILOG = """\
A breach counts as one violation until it has cleared. A violation is foreseen if an alert is on
that began at least one tick before, and after any earlier violation had cleared; late if an
alert began in its very tick (it counts as missed); or missed. The lead time is at most the
horizon. A false alarm is an alert with no violation during it or within the horizon of its
start.

exit codes: 0 no alert and no violation, 1 at least one of them (0 with --exit-zero),
2 wrong usage or input.

example: forewarn replay held_out.mcap -c monitor.yaml -m monitor.model.json --report out.html"""

_STDOUT = Path("-")


Censoring = Literal["drop", "weigh"]


@dataclass(frozen=True)
class Options(PartOptions):
    """The arguments of ``replay``."""

    config: Path
    model: Path | None
    verdicts: Path | None
    report: Path | None
    exit_zero: bool
    whole_leads: bool
    censoring: Censoring


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_parts(parser)
    add_config(parser)
    add_model(parser)
    parser.add_argument(
        "--verdicts",
        type=Path,
        metavar="FILE",
        help="write every verdict as a JSON line (- for stdout)",
    )
    add_report(parser)
    add_fleet(parser)
    add_allow_missing(parser)
    parser.add_argument(
        "--whole-leads",
        action="store_true",
        help="count lead times from the start of the alert, also what exceeds the horizon",
    )
    add_censoring(parser)
    parser.add_argument(
        "--exit-zero", action="store_true", help="exit with 0 even if there are alerts"
    )


def add_censoring(parser: argparse.ArgumentParser) -> None:
    """Declare what to do about ticks that the end of a recording keeps from being judged."""
    parser.add_argument(
        "--censoring",
        choices=("drop", "weigh"),
        default="drop",
        help=(
            "drop ticks whose outcome the end of a recording hides, or weigh others for them (drop)"
        ),
    )


def run(options: Options, output: Output) -> int:
    """Replay and report."""
    check_output(options.report, None if options.verdicts == _STDOUT else options.verdicts)
    monitor, model = make_monitor(options.config, options.model)
    to_stdout = options.verdicts == _STDOUT
    if to_stdout:
        output = Output(as_json=True, quiet=output.quiet)
    for note in monitor.told:
        output.note(f"note: {note}")
    if model is None:
        output.note("note: without a model there are verdicts but no risk; give one with -m")
    recordings = options.existing(monitor.spec)
    readers = Readers(options, recordings, output)
    for path in calibrated_on(recordings, model, readers.executor):
        output.warn(
            f"{path.name}: the model was calibrated on this very recording: its Brier score and "
            "ECE flatter the model"
        )
    how = Replaying(
        monitor,
        model.provenance if model else (),
        options.allow_missing,
        keep_signals=options.report is not None,
        whole_leads=options.whole_leads,
        lines=options.verdicts is not None,
    )
    if options.verdicts is None:
        runs = readers.replay(how, recordings)
    else:
        with nullcontext(sys.stdout) if to_stdout else OutputFile(options.verdicts) as stream:
            write = partial(_write, stream, named=len(recordings) > 1)
            runs = readers.replay(how, recordings, write)
    readers.warn()
    runs = settled_runs(runs)
    if options.censoring == "weigh":
        runs = weighted_runs(runs)
    print_runs(monitor, runs, output)
    if options.report is not None:
        # plotly takes half a second to import: only who wants a picture waits for it.
        from forewarn.reports.html import render

        write_report(options.report, render(monitor, model, runs), output)
    if not to_stdout:
        output.emit({**result(monitor, runs), "left_out": readers.record()})
    findings = any(event.alerts or event.violations for run_ in runs for event in run_.events)
    return 1 if findings and not options.exit_zero else 0


def _write(stream: OutputFile | TextIO, path: Path, lines: bytes, *, named: bool) -> None:
    """Write the verdicts of a recording, behind its name if it is one of several."""
    if named:
        stream.write(json.dumps({"recording": str(path)}) + "\n")
    packed = zstandard.ZstdDecompressor().stream_reader(lines, read_across_frames=True)
    for line in io.TextIOWrapper(packed, encoding="utf-8", newline=""):
        stream.write(line)
