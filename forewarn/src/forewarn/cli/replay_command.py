"""``forewarn replay``: recordings through the monitor, as it would have run live."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
import zstandard

from forewarn.assessment.precursors import changed_over, of_missed, precursors_of
from forewarn.assessment.replay import RecordedRun, Replaying, settled_runs, weighted_runs
from forewarn.assessment.results import result, scores
from forewarn.cli.common import (
    allow_missing_option,
    config_option,
    model_option,
    report_option,
    write_report,
)
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.cli.readers import PartOptions, Readers
from forewarn.cli.tables import print_runs
from forewarn.cli.train_test_separation import calibrated_on
from forewarn.files.outputs import OutputFile, check_output
from forewarn.monitoring.loading import make_monitor

DESCRIPTION = """\
Run the monitor over recordings, tick by tick, with the code that runs live: the same recording
gives the same verdicts to the last bit."""

EPILOG = """\
A violation is foreseen if an alert is on that began at least one tick before. A false alarm is an
alert with no violation during it or within the horizon of its start.

exit codes: 0 no alert and no violation, 1 at least one of them (0 with --exit-zero),
2 wrong usage or input.

examples: forewarn replay held_out.mcap -c monitor.yaml -m monitor.model.json --report out.html
          forewarn replay held_out.mcap -c monitor.yaml -m model.json --verdicts verdicts.jsonl"""

_STDOUT = Path("-")
HOUR = 3600.0
"""Seconds, or steps, of recordings in which precursors are looked for."""


Censoring = Literal["drop", "weigh"]


def censoring_option() -> Any:
    """Declare what to do about ticks that the end of a recording keeps from being judged."""
    text = "drop ticks whose outcome the end of a recording hides, or weigh others for them"
    return option(text, default="drop")


@dataclass(frozen=True, kw_only=True)
class Options(PartOptions):
    """The arguments of ``replay``."""

    config: Path = config_option()
    model: Path | None = model_option()
    verdicts: Path | None = option("write every verdict as a JSON line (- for stdout)", "FILE")
    report: Path | None = report_option()
    allow_missing: bool = allow_missing_option()
    censoring: Censoring = censoring_option()
    exit_zero: bool = option("exit with 0 even if there are alerts")


def run(options: Options, output: Output) -> int:
    """Replay and report."""
    check_output(options.report, None if options.verdicts == _STDOUT else options.verdicts)
    monitor, model = make_monitor(options.config, options.model)
    to_stdout = options.verdicts == _STDOUT
    if to_stdout:
        output = Output(as_json=True, quiet=output.quiet)
    for note in monitor.all_notes:
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
    told = [] if model is None else _of_missed(how, readers, runs)
    for line in told:
        output.say(line)
    if options.report is not None:
        # plotly takes half a second to import: only who wants a picture waits for it.
        from forewarn.reports.html import render

        write_report(options.report, render(monitor, model, runs), output)
    if not to_stdout:
        output.emit({**result(monitor, runs), "missed": told, "left_out": readers.record()})
    findings = any(event.alerts or event.violations for run_ in runs for event in run_.events)
    return 1 if findings and not options.exit_zero else 0


def _of_missed(how: Replaying, readers: Readers, runs: Sequence[RecordedRun]) -> list[str]:
    """Say of rules that are mostly missed whether anything in the signals comes before.

    That takes the signals: where no report is asked for, recordings are read once more, an hour of
    them at the most, those with violations first.
    """
    monitor = how.monitor
    found = [
        (index, one)
        for index, one in enumerate(scores(monitor, runs))
        if one.missed and 2 * one.missed >= one.violations
    ]
    if not found:
        return []
    clock = monitor.clock
    if not how.keep_signals:
        violated = [any(run.events[i].violations for i, _ in found) for run in runs]
        chosen = [runs[at].path for at in np.argsort(~np.array(violated), kind="stable")]
        lengths = {run.path: len(run.history) / clock.rate for run in runs}
        passed = np.cumsum([lengths[path] for path in chosen])
        few = chosen[: max(1, int(np.searchsorted(passed, HOUR)))]
        again = replace(how, keep_signals=True, lines=False)
        runs = settled_runs(readers.replay(again, few))
    change = changed_over(clock) / clock.rate
    return [
        of_missed(one.name, one.missed, one.violations, precursors_of(runs, index), change)
        for index, one in found
    ]


def _write(stream: OutputFile | TextIO, path: Path, lines: bytes, *, named: bool) -> None:
    """Write the verdicts of a recording, behind its name if it is one of several."""
    if named:
        stream.write(json.dumps({"recording": str(path)}) + "\n")
    packed = zstandard.ZstdDecompressor().stream_reader(lines, read_across_frames=True)
    for line in io.TextIOWrapper(packed, encoding="utf-8", newline=""):
        stream.write(line)
