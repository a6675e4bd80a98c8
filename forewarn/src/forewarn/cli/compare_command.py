"""``forewarn compare``: monitor files and rivals, side by side on the same recordings."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.comparison import (
    Contender,
    compare,
    differing_violations,
    with_one_truth,
)
from forewarn.assessment.episodes import AlertRule
from forewarn.assessment.replay import RecordedRun
from forewarn.assessment.results import remarks_on, scored_runs
from forewarn.cli.common import (
    alert_share_option,
    allow_missing_option,
    folds_option,
    plot_option,
    positive_number,
    properties_option,
    whole_number,
    write_report,
)
from forewarn.cli.compare_output import judged_record, print_judged
from forewarn.cli.options import argument, option
from forewarn.cli.output import Output
from forewarn.cli.readers import FleetOptions, Readers, part_option, store_option
from forewarn.cli.train_test_separation import identified
from forewarn.cli.tune_runs import folded_runs, held_out_runs, with_estimator
from forewarn.config.file import load_spec
from forewarn.config.sections import Estimator
from forewarn.config.signals import SignalSpec
from forewarn.errors import ConfigError, InputError, RecordingError
from forewarn.files.outputs import check_output
from forewarn.learning.folds import dealt
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.monitoring.step import Monitor
from forewarn.recordings.parts import Part
from forewarn.recordings.registry import existing_recordings
from forewarn.registry import ESTIMATORS, extensions

DESCRIPTION = """\
Judge monitor files, and rival quantities such as a distance, on the same recordings: how well they
rank moments (area under precision and recall), how right their probabilities are, and how early
they warn within a budget of false alarms. Models judge only recordings they did not learn from."""

EPILOG = """\
Differences are to the first monitor file, whose violations count for all. Intervals (95 %) come
from resampling whole recordings. Thresholds are chosen on other folds; the probability of a
rival is Platt's map of its rank.

exit codes: 0 compared, 2 wrong usage or input.

examples: forewarn compare a.yaml b.yaml bags/
          forewarn compare a.yaml bags/ -e chain,ensemble
          forewarn compare a.yaml bags/ --rival 'near=-gap' --rival 'closing=-rate(gap, 1)'
          forewarn compare a.yaml b.yaml bags/ --property stop --models \\
              --false-alarms-per-hour 10 --folds 10 --resamples 1000 --plot curves.html"""

MONITOR_FILES = (".yaml", ".yml")


def _estimators(text: str) -> tuple[Estimator, ...]:
    found: list[Any] = []
    for name in text.split(","):
        own, known = get_args(Estimator), name.strip()
        if known in found or known not in (*own, *extensions(ESTIMATORS)):
            raise argparse.ArgumentTypeError(f"{known!r} (accepted: each of {', '.join(own)} once)")
        found.append(known)
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Options(FleetOptions):
    """The arguments of ``compare``."""

    files: list[Path] = argument(
        "monitor files (.yaml), compared with the first; and recordings, or folders of them", "FILE"
    )
    rivals: list[str] = option(
        "a quantity over signals of the first file, the greater the more dangerous (may"
        " be repeated)",
        "NAME=EXPRESSION",
        "--rival",
    )
    properties: list[str] = properties_option("compare")
    false_alarms_per_hour: float = option(
        "the budget within which lead times are compared", "B", of=positive_number, default=40.0
    )
    alert_share: float = alert_share_option()
    folds: int = folds_option("parts of the recordings that are judged in turn", default=5)
    estimators: tuple[Estimator, ...] = option(
        "judge each monitor file with each of these as the estimator of its risks, learning "
        f"once: {', '.join(get_args(Estimator))}",
        "E,...",
        "-e",
        of=_estimators,
        default=(),
    )
    models: bool = option("learn nothing: judge the models that the monitor files name")
    resamples: int = option(
        "how often recordings are drawn for an interval",
        "N",
        of=partial(whole_number, least=2),
        default=300,
    )
    store: Path | None = store_option()
    begin: str | None = part_option("--from", "begins")
    end: str | None = part_option("--to", "ends")
    plot: Path | None = plot_option("curves")
    allow_missing: bool = allow_missing_option()


def run(options: Options, output: Output) -> int:
    """Learn, replay, judge and show."""
    check_output(options.plot)
    configs, bags = _files(options.files)
    compiled = [compile_spec(load_spec(path)) for path in configs]
    recordings = existing_recordings(bags, compiled[0].spec, Part(options.begin, options.end))
    labels = _labels(configs, options.estimators)
    rivals = _rivals(options.rivals, labels)
    names = _shared_properties(options, compiled)
    compiled[0] = _with_rivals(compiled[0], rivals)
    readers = Readers(options, recordings, output)
    known = identified(recordings, compiled[0].spec, readers.executor)
    clusters = {path: identity.cluster for path, identity in known.items()}
    judged = _by_all(
        found
        for one in compiled
        for found in _judged(one, clusters, options, readers, bool(rivals))
    )
    readers.warn()
    parts = dealt([*clusters.values()], min(options.folds, len({*clusters.values()})))
    fold_of = dict(zip(clusters, parts, strict=True))
    paths = [run.path for run in judged[0][1]]
    folds = [fold_of[path] for path in paths]
    curves = {name: list(_contenders(name, labels, judged, list(rivals))) for name in names}
    found = {}
    for name, contenders in curves.items():
        _warn_of_other_questions(name, contenders, output)
        found[name] = compare(
            contenders,
            folds,
            options.false_alarms_per_hour,
            alert_share=options.alert_share,
            resamples=options.resamples,
            clusters=[clusters[path] for path in paths],
        )
        print_judged(name, found[name], judged[0][0].clock, output)
    if options.plot is not None:
        # plotly takes half a second to import: only who wants a picture waits for it.
        from forewarn.reports.comparison import comparison_page

        judged_alike = {name: with_one_truth(found) for name, found in curves.items()}
        write_report(options.plot, comparison_page(judged_alike), output, "plot")
    output.emit(
        {
            "recordings": paths,
            "left_out": readers.record(),
            "folds": folds,
            "budget": options.false_alarms_per_hour,
            "properties": {name: list(map(judged_record, rows)) for name, rows in found.items()},
        }
    )
    return 0


def _files(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the monitor files and the recordings; raises InputError if one kind is missing."""
    configs = [path for path in paths if path.suffix in MONITOR_FILES]
    bags = [path for path in paths if path.suffix not in MONITOR_FILES]
    if not configs or not bags:
        raise InputError(
            f"there is no {'recording' if configs else 'monitor file'}",
            key="FILE",
            accepted="at least one monitor file (.yaml) and one recording",
        )
    return configs, bags


def _warn_of_other_questions(name: str, contenders: Sequence[Contender], output: Output) -> None:
    first, *others = contenders
    for other in others:
        horizons = [{run.horizon for run in one.runs} for one in (first, other)]
        if horizons[0] != horizons[1]:
            output.warn(
                f"{name}: {other.name} has another horizon than {first.name}: all are judged by "
                f"what follows within that of {first.name}, probabilities and lead times as well"
            )
        differing = differing_violations(first, other)
        if differing:
            output.warn(
                f"{name}: the violations of {first.name} count; {other.name} has others at "
                f"{differing} moments"
            )


def _rivals(texts: Sequence[str], labels: Sequence[str]) -> dict[str, str]:
    """Return the expressions of the rivals by name; raises InputError if a name is taken."""
    found: dict[str, str] = {}
    for name, expression in map(_rival, texts):
        if name in found or name in labels:
            what = "a monitor file" if name in labels else "another rival"
            raise InputError(
                f"{name!r} is {what}", key="--rival", accepted="a name of its own for each"
            )
        found[name] = expression
    return found


def _rival(text: str) -> tuple[str, str]:
    name, equals, expression = text.partition("=")
    if not (name.isidentifier() and equals and expression.strip()):
        raise InputError(
            repr(text), key="--rival", accepted="NAME=EXPRESSION, such as 'closeness=-gap'"
        )
    return name, expression


def _shared_properties(options: Options, compiled: Sequence[CompiledSpec]) -> list[str]:
    """Return the properties to compare; raises ConfigError if a monitor file lacks one."""
    names = options.properties or list(compiled[0].spec.properties)
    for one in compiled:
        for name in names:
            if name not in one.spec.properties:
                raise ConfigError(
                    f"there is no property {name!r}",
                    file=one.spec.file,
                    key="properties",
                    accepted="the same properties in all monitor files; --property chooses some",
                )
    return names


def _with_rivals(compiled: CompiledSpec, rivals: dict[str, str]) -> CompiledSpec:
    """Return a monitor file with the rivals as signals, for which its models remain valid."""
    if not rivals:
        return compiled
    spec = compiled.spec
    for name in rivals.keys() & spec.signals.keys():
        raise InputError(
            f"{name!r} is a signal of {spec.file}",
            key="--rival",
            accepted=f"another name, such as rival_{name}={rivals[name]}",
        )
    signals = {name: SignalSpec(value=text) for name, text in rivals.items()}
    return compile_spec(spec.derived({**spec.signals, **signals}))


Replayed = tuple[Monitor, list[RecordedRun]]


def _by_all(judged: Iterable[Replayed]) -> list[Replayed]:
    """Return the runs that every monitor file could be judged by; raises RecordingError if none."""
    found = list(judged)
    common = set.intersection(*({run.path for run in runs} for _, runs in found))
    if not common:
        raise RecordingError(
            "no recording can be read by all monitor files and is unknown to all of their models",
            accepted="recordings that all of them can be judged by",
        )
    return [(monitor, [run for run in runs if run.path in common]) for monitor, runs in found]


def _judged(
    compiled: CompiledSpec,
    clusters: Mapping[Path, str],
    options: Options,
    readers: Readers,
    keep_signals: bool,
) -> list[Replayed]:
    if options.models:
        variants = [with_estimator(compiled, one) for one in options.estimators] or [compiled]
        found = [
            held_out_runs(
                variant,
                None,
                [*clusters],
                readers,
                accepted="a model that the monitor file names; or no --models, to learn from these "
                "recordings in turn",
                keep_signals=keep_signals,
            )[:2]
            for variant in variants
        ]
    else:
        found = folded_runs(
            compiled,
            clusters,
            options.folds,
            readers,
            keep_signals=keep_signals,
            estimators=options.estimators,
        )
    for line in remarks_on(*found[0]):
        readers.output.note(f"{compiled.spec.file}: {line}")
    return found


def _labels(configs: Sequence[Path], estimators: Sequence[str]) -> list[str]:
    labels = [path.stem for path in configs]
    if len(set(labels)) < len(labels):
        labels = list(map(str, configs))
    if len(configs) == 1 and len(estimators) > 1:
        return list(estimators)
    return [" ".join((label, one)).strip() for label in labels for one in estimators or ("",)]


def _contenders(
    name: str, labels: Sequence[str], judged: Sequence[Replayed], rivals: Sequence[str]
) -> Iterator[Contender]:
    for label, (monitor, runs) in zip(labels, judged, strict=True):
        index = list(monitor.spec.properties).index(name)
        tracks = [run.tracks[index] for run in runs]
        yield Contender(
            label,
            AlertRule.of(monitor.spec.properties[name]),
            tuple(scored_runs(monitor, runs, name)),
            tuple(track.probability for track in tracks),
            None if monitor.model is None else len(monitor.model.states),
        )
    monitor, runs = judged[0]
    own = AlertRule.of(monitor.spec.properties[name])
    # A quantity releases where it alerts: 0 need not be safe for it.
    rule = AlertRule(None, own.enter, own.exit, own.hold)
    traces = scored_runs(monitor, runs, name)
    for rival in rivals:
        values = [_numbers(rival, run) for run in runs]
        scored = [
            replaced._replace(score=score, out_of_model=None)
            for replaced, score in zip(traces, values, strict=True)
        ]
        yield Contender(rival, rule, tuple(scored))


def _numbers(rival: str, run: RecordedRun) -> NDArray[np.float64]:
    """Return what a rival was at each moment; raises InputError if it is a text or a list."""
    series = next(one for one in run.signals if one.name == rival)
    if series.kind not in ("number", "truth"):
        what = "a text" if series.kind == "text" else "a list"
        raise InputError(
            f"{rival} is {what} in {run.path}", key="--rival", accepted="a number or a truth value"
        )
    return series.values
