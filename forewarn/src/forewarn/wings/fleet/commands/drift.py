"""``forewarn drift``: in which states groups of recordings do not go on alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forewarn.assessment.modelling import FALSE_DISCOVERY_RATE, learn_model
from forewarn.cli.common import (
    allow_missing_option,
    config_option,
    probability,
    top_option,
)
from forewarn.cli.groups import group_by_option, group_source_option, grouping_of
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.cli.readers import PartOptions, Readers, store_option
from forewarn.monitoring.loading import load_bare
from forewarn.wings.fleet.output import differences_record, print_differences

DESCRIPTION = """\
Compare groups of recordings (robots, versions of software, weeks) state by state: where does what
comes next differ? Chance is judged by recordings that change groups."""

EPILOG = """\
exit codes: 0 no state differs, 1 some do, 2 wrong usage or input.

examples: forewarn drift bags/ -c monitor.yaml --group-by week
          forewarn drift bags/ -c monitor.yaml --group-by robot --group-source 'bags/{robot}/*'
          forewarn drift bags/ -c monitor.yaml --group-by software --fdr 0.01"""


@dataclass(frozen=True, kw_only=True)
class Options(PartOptions):
    """The arguments of ``drift``."""

    config: Path = config_option()
    group_by: str = group_by_option("which recordings are compared with which", required=True)
    group_source: str | None = group_source_option()
    fdr: float = option(
        "false discovery rate: share of named states that differ by chance",
        "Q",
        of=probability,
        default=FALSE_DISCOVERY_RATE,
    )
    top: int = top_option()
    store: Path | None = store_option()
    allow_missing: bool = allow_missing_option()


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
