"""``forewarn report``: one HTML page about a replay."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from forewarn.assessment.results import result
from forewarn.cli.common import (
    add_allow_missing,
    add_config,
    add_model,
    add_output,
    add_recordings,
    existing_recordings,
    make_monitor,
)
from forewarn.cli.output import Output
from forewarn.cli.replay_command import replay_all
from forewarn.files.outputs import check_output, write_output
from forewarn.reports.html import render

DESCRIPTION = """\
Replay recordings and write one self-contained HTML page: timeline of risk with its bounds,
interventions, violations, states and raw signals, down to every tick; events; what other thresholds
would give; calibration; coverage; how violations come about. A record of the node, or a bag with
its topics, is compared with what it published live. The page needs no network to be read."""

EPILOG = """\
exit codes: 0 the page was written, 2 wrong usage or input.

example: forewarn report held_out.mcap -c monitor.yaml -m monitor.model.json -o report.html"""


@dataclass(frozen=True)
class Options:
    """The arguments of ``report``."""

    recordings: list[Path]
    config: Path
    model: Path | None
    output: Path
    allow_missing: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recordings(parser)
    add_config(parser)
    add_model(parser)
    add_output(parser, "HTML")
    add_allow_missing(parser)


def run(options: Options, output: Output) -> int:
    """Replay and write the page."""
    check_output(options.output)
    monitor, model = make_monitor(options.config, options.model)
    recordings = existing_recordings(options.recordings, monitor.spec)
    runs = replay_all(
        monitor,
        recordings,
        output,
        learned_from=model.provenance if model else (),
        allow_missing=options.allow_missing,
        keep_signals=True,
    )
    write_output(options.output, render(monitor, model, runs))
    output.say(f"report: {options.output}")
    output.emit({"report": options.output, **result(monitor, runs)})
    return 0
