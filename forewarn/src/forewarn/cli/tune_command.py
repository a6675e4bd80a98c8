"""``forewarn tune``: from recordings to thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forewarn.assessment.episodes import ScoredRun
from forewarn.assessment.replay import RecordedRun, settled_runs
from forewarn.assessment.results import remarks_on, scored_runs
from forewarn.assessment.tuning import LEAST_VIOLATIONS, Goal, Tuning, Unit, tune
from forewarn.cli.common import (
    alert_share_option,
    allow_missing_option,
    at_least_one,
    config_option,
    folds_option,
    incident_labels,
    incidents_option,
    labelled,
    model_option,
    plot_option,
    positive_number,
    probability,
    properties_option,
    write_report,
)
from forewarn.cli.editing import KeyPath, difference, edited, put
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.cli.readers import PartOptions, Readers, store_option
from forewarn.cli.train_test_separation import identified
from forewarn.cli.tune_output import print_tuning, record, summary
from forewarn.cli.tune_runs import blocked_runs, folded_runs, held_out_runs
from forewarn.config.file import MonitorSpec, load_spec
from forewarn.errors import ConfigError, plural
from forewarn.files.outputs import check_output
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.record import INCIDENT_PREFIX
from forewarn.monitoring.step import Monitor
from forewarn.signals.clock import Clock

DESCRIPTION = """\
Choose thresholds: the longest lead time that a budget of false alarms allows, if asked for with a
guarantee on the share of violations that are missed. The model must not be learned from these
recordings; with --folds, models are learned from all but one part of them in turn."""

EPILOG = """\
A missed violation counts as a lead of 0 s. warn and release keep their proportion to act. The
guarantee of --miss-rate assumes that runs are exchangeable with those to come. With --folds nothing
is proven.

exit codes: 0 thresholds were found, 1 the data cannot support the goal, 2 wrong usage or input.

examples: forewarn tune held_out/ -c monitor.yaml -m model.json --false-alarms-per-hour 1
          forewarn tune bags/ -c monitor.yaml --folds 5 --false-alarms-per-hour 2 --write
          forewarn tune held_out/ -c monitor.yaml --false-alarms-per-hour 1 \\
              --per violation --blocks 60 --least-violations 10 --enter 1 --enter 3 \\
              --alert-share 0.05 --incidents incidents/ --plot t.html"""


@dataclass(frozen=True, kw_only=True)
class Options(PartOptions):
    """The arguments of ``tune``."""

    config: Path = config_option()
    model: Path | None = model_option()
    properties: list[str] = properties_option("tune")
    false_alarms_per_hour: float = option(
        "the budget: false alarms in an hour at most, for each property",
        "B",
        of=positive_number,
        required=True,
    )
    miss_rate: float | None = option(
        "guarantee that at most this share of violations is missed: 0.1, say", "A", of=probability
    )
    confidence: float = option(
        "of the guarantee and of the bounds", "C", of=probability, default=0.9
    )
    per: Unit = option(
        "what counts once in the guarantee; run means its group, if it has one", default="run"
    )
    alert_share: float = alert_share_option()
    least_violations: int = option(
        "recommend nothing from fewer violations", "N", of=at_least_one, default=LEAST_VIOLATIONS
    )
    enter: list[int] = option(
        "also choose `enter`, from the values given (may be repeated)", "N", of=at_least_one
    )
    folds: int | None = folds_option(
        "learn from K - 1 parts of the recordings and judge on the last, in turn"
    )
    blocks: float | None = option(
        "take blocks of so many seconds for runs, with --folds and in the guarantee",
        "SECONDS",
        of=positive_number,
    )
    store: Path | None = store_option()
    write: bool = option("write the thresholds into the monitor file")
    incidents: list[Path] = incidents_option(
        "an alert at an incident labelled true is no false alarm, whatever followed"
    )
    plot: Path | None = plot_option("trade-off")
    allow_missing: bool = allow_missing_option()


def run(options: Options, output: Output) -> int:
    """Replay, choose, show, and write if asked to."""
    check_output(options.plot, options.config if options.write else None)
    spec = load_spec(options.config)
    names = _chosen(options, spec)
    recordings = options.existing(spec)
    for path in recordings:
        if path.name.startswith(INCIDENT_PREFIX):
            output.warn(
                f"{path.name}: an incident is there because something happened: false alarms an "
                "hour, and shares of time, say nothing of other hours"
            )
    _check_blocks(options, spec)
    incidents = labelled(options.incidents, output)
    readers = Readers(options, recordings, output)
    monitor, runs, clusters = _runs(options, spec, recordings, readers)
    readers.warn()
    runs = settled_runs(runs)
    for line in remarks_on(monitor, runs):
        output.note(line)
    goal = _goal(options, monitor.clock, clusters)
    tunings = []
    for name in names:
        scored = _scored(monitor, runs, name, incidents, output)
        tunings.append(tune(name, monitor.spec.properties[name], scored, goal))
    for tuning in tunings:
        print_tuning(tuning, output)
    if options.plot is not None:
        # plotly takes half a second to import: only who wants a picture waits for it.
        from forewarn.reports.tuning import tuning_page

        write_report(options.plot, tuning_page(tunings), output, "plot")
    before, after = _edit(options.config, monitor.spec, tunings)
    change = _put(options, before, after, output)
    output.emit(
        {
            "recordings": recordings,
            "left_out": readers.record(),
            "properties": {tuning.name: record(tuning) for tuning in tunings},
            "diff": change,
            "written": options.write and before != after,
        }
    )
    return summary(tunings)


def _check_blocks(options: Options, spec: MonitorSpec) -> None:
    if options.blocks is not None and spec.learning.group_by is not None:
        raise ConfigError(
            "blocks of recordings that belong together are not exchangeable",
            file=spec.file,
            key="learning.group_by",
            accepted="no groups, or no --blocks",
        )


def _scored(
    monitor: Monitor,
    runs: Sequence[RecordedRun],
    name: str,
    incidents: Sequence[Any] | None,
    output: Output,
) -> list[ScoredRun]:
    """Return what the policy was shown, with what people say of incidents."""
    scored = scored_runs(monitor, runs, name)
    if incidents is None:
        return list(scored)
    confirmed = incident_labels().confirmed
    pairs = [confirmed(name, *both, incidents) for both in zip(runs, scored, strict=True)]
    heard = plural(sum(count for _, count in pairs), "incident")
    output.note(f"{name}: {heard} of these recordings labelled true: alerts there are right")
    return [run for run, _ in pairs]


def _runs(
    options: Options,
    spec: MonitorSpec,
    recordings: Sequence[Path],
    readers: Readers,
) -> tuple[Monitor, list[RecordedRun], tuple[str, ...]]:
    """Replay, and return the group of each run as well; none if the monitor file has no groups."""
    grouped = spec.learning.group_by is not None
    # Without the model: fitted parts are fitted again for each fold.
    compiled = compile_spec(spec)
    if options.folds is None:
        monitor, runs, clusters = held_out_runs(
            compiled,
            options.model,
            recordings,
            readers,
            accepted="-m FILE, a model that the monitor file names, or --folds to learn from these "
            "recordings in turn",
        )
        return monitor, runs, tuple(clusters) if grouped else ()
    known = identified(recordings, compiled.spec, readers.executor)
    folded = {path: identity.cluster for path, identity in known.items()}
    if options.blocks is None:
        (found,) = folded_runs(compiled, folded, options.folds, readers)
    else:
        found = blocked_runs(compiled, [*folded], options.folds, options.blocks, readers)
    readers.output.note(
        "note: every run was judged by a model learned from the other folds, not by the one that "
        "will be in use: nothing is proven of that one"
    )
    monitor, runs = found
    return monitor, runs, tuple(folded[run.path] for run in runs) if grouped else ()


def _goal(options: Options, clock: Clock, clusters: tuple[str, ...]) -> Goal:
    return Goal(
        false_alarms_per_hour=options.false_alarms_per_hour,
        miss_rate=options.miss_rate,
        confidence=options.confidence,
        unit=options.per,
        alert_share=options.alert_share,
        enter=tuple(dict.fromkeys(options.enter)),
        least_violations=options.least_violations,
        block=None if options.blocks is None else max(1, round(options.blocks * clock.rate)),
        crossed=options.folds is not None,
        clusters=clusters,
        clock=clock,
    )


def _chosen(options: Options, spec: MonitorSpec) -> Sequence[str]:
    for name in options.properties:
        if name not in spec.properties:
            raise ConfigError(
                f"{name!r} is no property",
                file=options.config,
                key="properties",
                accepted=", ".join(spec.properties),
            )
    return tuple(dict.fromkeys(options.properties)) or tuple(spec.properties)


def _edit(path: Path, spec: MonitorSpec, tunings: Sequence[Tuning]) -> tuple[str, str]:
    values: dict[KeyPath, float | int] = {}
    for tuning in tunings:
        if tuning.chosen is None:
            continue
        name = tuning.name
        for key, level in tuning.chosen.thresholds.model_dump(exclude_none=True).items():
            values["properties", name, "thresholds", key] = level
        if tuning.chosen.enter != spec.properties[name].enter:
            values["properties", name, "enter"] = tuning.chosen.enter
    return edited(path, values)


def _put(options: Options, before: str, after: str, output: Output) -> str:
    if before == after:
        if options.write:
            output.say(f"{options.config}: nothing to change")
        return ""
    if options.write:
        output.say(difference(options.config, before, after))
    return put(options.config, before, after, output, write=options.write)
