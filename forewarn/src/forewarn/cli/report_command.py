"""``forewarn report``: one HTML page about a replay."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forewarn.assessment.replay import Replaying, settled_runs
from forewarn.assessment.results import result
from forewarn.cli.common import (
    allow_missing_option,
    config_option,
    model_option,
    output_option,
    top_option,
)
from forewarn.cli.groups import group_by_option, group_source_option, grouping_of
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.cli.readers import PartOptions, Readers
from forewarn.errors import InputError
from forewarn.files.outputs import check_output, write_output
from forewarn.monitoring.loading import load_compiled, make_monitor
from forewarn.registry import part, report_sections
from forewarn.reports.html import render

DESCRIPTION = """\
Replay recordings and write one HTML page that needs no network: risk, interventions, violations,
states and signals at every tick; what other thresholds would give; calibration; coverage; how
violations come about. With --fleet the page is about many recordings: violations and near ones an
hour by group, coverage, and the worst incidents with clips."""

EPILOG = """\
exit codes: 0 the page was written, 2 wrong usage or input.

examples: forewarn report held_out.mcap -c monitor.yaml -m monitor.model.json -o report.html
          forewarn report 'bags/*/*.mcap' -c monitor.yaml -o fleet.html --fleet --clips clips \\
              --group-by robot --group-source 'bags/{robot}/*'
          forewarn report runs/ -c monitor.yaml -o report.html --refinement refined.json --top 20"""


@dataclass(frozen=True, kw_only=True)
class Options(PartOptions):
    """The arguments of ``report``."""

    config: Path = config_option()
    model: Path | None = model_option()
    output: Path = output_option("HTML")
    refinement: Path | None = option(
        "what `forewarn refine --save` kept: its rounds and counterexamples", "FILE"
    )
    fleet: bool = option("a page about all recordings together, without a picture of each")
    group_by: str | None = group_by_option("with --fleet, compare groups of recordings")
    group_source: str | None = group_source_option()
    clips: Path | None = option(
        "with --fleet, write a page and an MCAP file of each of the worst incidents", "FOLDER"
    )
    top: int = top_option("incidents")
    allow_missing: bool = allow_missing_option()


def run(options: Options, output: Output) -> int:
    """Replay and write the page."""
    check_output(options.output)
    _check_fleet(options)
    refinement = None
    if options.refinement is not None:
        refinement = _trees("refinement_file").load_refinement(options.refinement)
    monitor, model = make_monitor(options.config, options.model)
    recordings = options.existing(monitor.spec)
    readers = Readers(options, recordings, output)
    grouping = grouping_of(options.group_by, options.group_source)
    if options.fleet:
        compiled = load_compiled(options.config, model)
        fleet = part("fleet", "report", "--fleet").FleetReport(
            monitor, model, compiled, options.output, options.clips, options.top or sys.maxsize,
            grouping, options.allow_missing,
        )  # fmt: skip
        fleet.write(recordings, readers)
        return 0
    known = model.provenance if model else ()
    how = Replaying(monitor, known, options.allow_missing, keep_signals=True)
    runs = settled_runs(readers.replay(how, recordings))
    readers.warn()
    further = [] if refinement is None else _trees("report").refinement_parts(refinement)
    for parts_of in report_sections(monitor.spec):
        further += parts_of(monitor, load_compiled(options.config, model), recordings, readers)
    write_output(options.output, render(monitor, model, runs, further))
    output.say(f"report: {options.output}")
    output.emit({"report": options.output, **result(monitor, runs), "left_out": readers.record()})
    return 0


def _check_fleet(options: Options) -> None:
    """Refuse what speaks of a fleet's page alone; raises InputError."""
    only = {
        "--group-by": options.group_by,
        "--group-source": options.group_source,
        "--clips": options.clips,
    }
    given = [name for name, value in only.items() if value is not None]
    if given and not options.fleet:
        raise InputError("is of a fleet's page", key=given[0], accepted="--fleet as well")
    if options.fleet and options.refinement is not None:
        raise InputError("is of no fleet's page", key="--refinement", accepted="no --fleet")


def _trees(module: str) -> Any:
    return part("trees", module, "--refinement")
