"""``forewarn report``: one HTML page about a replay."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from forewarn.assessment.judged_runs import judge_run
from forewarn.assessment.results import result
from forewarn.cli.anomalies_command import TOP, drift_of, read_surprises
from forewarn.cli.common import (
    add_allow_missing,
    add_config,
    add_model,
    add_output,
    add_part,
    add_recordings,
)
from forewarn.cli.output import Output
from forewarn.cli.replay_command import replay_all
from forewarn.files.outputs import check_output, write_output
from forewarn.learning.executors import Here
from forewarn.learning.refinement_file import load_refinement
from forewarn.logic.specification import CompiledSpec
from forewarn.monitoring.live_anomaly import Detector
from forewarn.monitoring.loading import load_compiled, make_monitor
from forewarn.monitoring.surprise import predictor_of
from forewarn.recordings.given import existing_recordings
from forewarn.recordings.parts import Part
from forewarn.reports.html import render
from forewarn.reports.learned import refinement_parts
from forewarn.reports.surprise import Surprise, surprise_parts

DESCRIPTION = """\
Replay recordings and write one self-contained HTML page: timeline of risk with its bounds,
interventions, violations, states and raw signals, down to every tick; events; what other thresholds
would give; calibration; coverage; how violations come about; states and process where they were
learned; surprise where the monitor file has `anomaly`. A record of the node, or a bag with
its topics, is compared with what it published live. The page needs no network to be read."""

EPILOG = """\
exit codes: 0 the page was written, 2 wrong usage or input.

example: forewarn report held_out.mcap -c monitor.yaml -m monitor.model.json -o report.html"""


@dataclass(frozen=True)
class Options:
    """The arguments of ``report``."""

    recordings: list[Path]
    begin: str | None
    end: str | None
    config: Path
    model: Path | None
    output: Path
    refinement: Path | None
    allow_missing: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recordings(parser)
    add_part(parser)
    add_config(parser)
    add_model(parser)
    add_output(parser, "HTML")
    parser.add_argument(
        "--refinement",
        type=Path,
        metavar="FILE",
        help="what `forewarn refine --save` kept: its rounds and counterexamples",
    )
    add_allow_missing(parser)


def run(options: Options, output: Output) -> int:
    """Replay and write the page."""
    check_output(options.output)
    refinement = None if options.refinement is None else load_refinement(options.refinement)
    monitor, model = make_monitor(options.config, options.model)
    recordings = existing_recordings(
        options.recordings, monitor.spec, Part(options.begin, options.end)
    )
    runs = replay_all(
        monitor,
        recordings,
        output,
        learned_from=model.provenance if model else (),
        allow_missing=options.allow_missing,
        keep_signals=True,
    )
    further = [] if refinement is None else refinement_parts(refinement)
    if monitor.detector is not None:
        compiled = load_compiled(options.config, model)
        found = _surprise(monitor.detector, compiled, recordings, options, output)
        further += surprise_parts(found, compiled)
    write_output(options.output, render(monitor, model, runs, further))
    output.say(f"report: {options.output}")
    output.emit({"report": options.output, **result(monitor, runs)})
    return 0


def _surprise(
    detector: Detector,
    compiled: CompiledSpec,
    recordings: list[Path],
    options: Options,
    output: Output,
) -> Surprise:
    """Judge the runs by what the monitor file names for live ones."""
    calibration = detector.calibration
    predictor = predictor_of(detector.predictor.model, calibration.what)
    runs = read_surprises(
        recordings,
        compiled,
        predictor,
        calibration.what,
        Here(),
        output,
        allow_missing=options.allow_missing,
    )
    judged = [judge_run(one, predictor, calibration, TOP) for one in runs if one.surprises]
    return Surprise(judged, calibration, drift_of(judged, calibration, predictor))
