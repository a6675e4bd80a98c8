"""``forewarn drift``: in which states groups of recordings do not go on alike."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from forewarn.assessment.group_differences import LEVEL
from forewarn.assessment.modelling import learn_model
from forewarn.cli.common import (
    add_allow_missing,
    add_config,
    add_top,
    probability,
)
from forewarn.cli.fleet import PartOptions, Readers, add_fleet, add_parts, add_store
from forewarn.cli.groups import add_grouping, differences_record, grouping_of, print_differences
from forewarn.cli.output import Output
from forewarn.monitoring.loading import load_bare

DESCRIPTION = """\
Compare groups of recordings (robots, versions of software, weeks) state by state: where does
what comes next differ? Chance is judged by recordings that change groups; of the named states,
at most a share (--fdr) differ by chance. With --store no recording is read twice."""

EPILOG = """\
exit codes: 0 no state differs, 1 some do, 2 wrong usage or input.

examples: forewarn drift bags/ -c monitor.yaml --group-by week
          forewarn drift bags/ -c monitor.yaml --group-by robot --group-source 'bags/{robot}/*'"""


@dataclass(frozen=True)
class Options(PartOptions):
    """The arguments of ``drift``."""

    config: Path
    group_by: str
    group_source: str | None
    fdr: float
    top: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_parts(parser)
    add_config(parser)
    add_grouping(parser, "which recordings are compared with which", required=True)
    parser.add_argument(
        "--fdr",
        type=probability,
        default=LEVEL,
        metavar="Q",
        help=f"false discovery rate: share of named states that differ by chance ({LEVEL})",
    )
    add_top(parser)
    add_fleet(parser)
    add_store(parser)
    add_allow_missing(parser)


def run(options: Options, output: Output) -> int:
    """Count, compare and report."""
    compiled = load_bare(options.config)
    recordings = options.existing(compiled.spec)
    readers = Readers(options, recordings, output)
    learned = learn_model(
        compiled,
        recordings,
        executor=readers.executor,
        store=readers.store,
        allow_missing=options.allow_missing,
        grouping=grouping_of(options.group_by, options.group_source),
        level=options.fdr,
        bars=output.progress,
    )
    for problem in learned.counted.problems:
        output.warn(problem)
    readers.warn()
    assert learned.groups is not None
    groups, found = learned.groups.models, learned.groups.differences
    for line in learned.warnings:
        output.warn(line)
    print_differences(found, learned.model, len(groups), output, options.top)
    output.emit(
        {
            "groups": {name: len(model.provenance) for name, model in groups.items()},
            **differences_record(found, learned.model),
            "left_out": readers.record(),
        }
    )
    return int(bool(found.moved))
