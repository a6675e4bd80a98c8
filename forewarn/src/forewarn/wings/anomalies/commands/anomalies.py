"""``forewarn anomalies``: which runs are unlike normal ones, and which step was surprising."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from forewarn.cli.common import (
    allow_missing_option,
    at_least_one,
    config_option,
    model_option,
    positive_number,
    recording_path,
    recordings_argument,
    report_option,
    write_report,
)
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.cli.readers import FleetOptions, Readers
from forewarn.cli.train_test_separation import without_known
from forewarn.errors import ConfigError, ModelError, RecordingError, located
from forewarn.files.outputs import check_output
from forewarn.learning.copies import Copies
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import CountModel
from forewarn.models.file import check_replaceable
from forewarn.monitoring.loading import load_fitting
from forewarn.monitoring.model_fit import check_model
from forewarn.recordings.parts import trace_of
from forewarn.recordings.registry import existing_recordings
from forewarn.wings.anomalies.calibration import (
    RULES,
    Calibration,
    Rule,
    calibrate,
)
from forewarn.wings.anomalies.calibration_file import FORMAT, load_calibration, save_calibration
from forewarn.wings.anomalies.drift import Drift
from forewarn.wings.anomalies.judged_runs import TOP, Run, drift_of, judge_run, read_surprises
from forewarn.wings.anomalies.output import anomaly_record, print_anomalies
from forewarn.wings.anomalies.surprise import WHATS, Predictor, What, predictor_of

DESCRIPTION = """\
Tell which runs are unlike normal ones: how surprising each transition is (the negative logarithm
of its smoothed probability), and what was expected there. The limit is calibrated on normal runs
that the model was not learned from. The rules `conformal` (greatest surprise), `prefix` (likelihood
at a checkpoint) and `cusum` (evidence of more surprise) report at most a share alpha of normal
runs; `normal`, `quantile` and `checkpoints` promise nothing."""

EPILOG = """\
exit codes: 0 no run is anomalous and there is no drift, 1 there is, 2 wrong usage or input.

examples: forewarn anomalies today/ -c monitor.yaml -m model.json --calibrate normal/ --save a.json
          forewarn anomalies today/ -c monitor.yaml -m model.json --calibration a.json
          forewarn anomalies today/ -c monitor.yaml --calibrate normal/ \\
              --statistic both --test prefix
          forewarn anomalies today/ -c monitor.yaml --calibration a.json \\
              --alpha 0.01 --period 5 --top 10"""

ALPHA, EVERY = 0.05, 10


def _alpha(text: str) -> float:
    alpha = positive_number(text)
    if alpha > 0.5:
        raise argparse.ArgumentTypeError(f"{text!r} (accepted: a number above 0, at most 0.5)")
    return alpha


@dataclass(frozen=True, kw_only=True)
class Options(FleetOptions):
    """The arguments of ``anomalies``."""

    recordings: list[Path] = recordings_argument()
    config: Path = config_option()
    model: Path | None = model_option()
    calibrate: list[Path] = option(
        "normal runs to calibrate on, which the model was not learned from",
        "BAG",
        of=recording_path,
        nargs="+",
        required=True,
        either="calibrated",
    )
    calibration: Path | None = option(
        "what --save wrote, instead", "FILE", required=True, either="calibrated"
    )
    save: Path | None = option("write what was calibrated", "FILE")
    alpha: float | None = option(
        f"share of false alarms among normal runs, at most 0.5 ({ALPHA:g})", "A", of=_alpha
    )
    statistic: What | None = option(
        "what may be surprising: what followed an action, its choice, both, or the "
        "state (both, or outcome if the model counts no actions)",
        choices=WHATS,
    )
    test: Rule | None = option(f"how a run is judged ({RULES[0]})", choices=RULES)
    period: float | None = option(
        f"between checkpoints, in seconds or steps ({EVERY} ticks or steps)",
        "DURATION",
        of=positive_number,
    )
    top: int = option(
        "surprising steps to list of an anomalous run", "N", "-n", of=at_least_one, default=TOP
    )
    report: Path | None = report_option()
    allow_missing: bool = allow_missing_option()


def run(options: Options, output: Output) -> int:
    """Calibrate, or load what was calibrated, and judge."""
    check_output(options.report)
    if options.save is not None:
        check_replaceable(options.save, FORMAT, "file of `forewarn anomalies --save`")
    compiled, model = _fitting(options)
    normal = existing_recordings(options.calibrate, compiled.spec)
    recordings = existing_recordings(options.recordings, compiled.spec)
    readers = Readers(options, [*normal, *recordings], output)
    predictor, found = _calibrated(options, compiled, model, normal, readers)
    if options.save is not None:
        save_calibration(found, options.save)
    runs = read_surprises(recordings, compiled, predictor, found.statistic, readers)
    readers.warn()
    _check_new(runs, model, found, output)
    judged = [judge_run(one, predictor, found, options.top) for one in runs if one.surprises]
    for one in runs:
        if not one.surprises:
            output.warn(f"{one.name}: no transition between known states: not judged")
    drift = drift_of(judged, found, predictor)
    print_anomalies(judged, found, drift, compiled, output)
    if options.report is not None:
        from forewarn.wings.anomalies.report import Surprise, surprise_page

        page = surprise_page(Surprise(judged, found, drift), compiled)
        write_report(options.report, page, output)
    record = anomaly_record(judged, found, drift, compiled, predictor)
    output.emit({**record, "left_out": readers.record()})
    return int(any(one.finding.anomalous for one in judged) or _drifts(drift))


def _fitting(options: Options) -> tuple[CompiledSpec, CountModel]:
    compiled, model = load_fitting(options.config, options.model)
    if model is None:
        raise ConfigError(
            "no model is given", file=options.config, key="model", accepted="-m MODEL"
        )
    with located(ModelError, file=options.model or compiled.spec.model_path):
        check_model(compiled, model)
    return compiled, model


def _calibrated(
    options: Options,
    compiled: CompiledSpec,
    model: CountModel,
    normal: Sequence[Path],
    readers: Readers,
) -> tuple[Predictor, Calibration]:
    clock = compiled.abstraction.clock
    period = None if options.period is None else max(1, clock.ticks(options.period))
    statistic: What = options.statistic or ("both" if model.steps else "outcome")
    digest = compiled.abstraction.digest
    if options.calibration is not None:
        loaded = load_calibration(
            options.calibration, predictor_of(model, "outcome").digest, digest
        )
        for key, given, kept in (
            ("statistic", options.statistic, loaded.statistic), ("period", period, loaded.period)
        ):  # fmt: skip
            if given is not None and given != kept:
                raise ModelError(
                    f"was calibrated with {kept}, and not with {given}",
                    file=options.calibration,
                    key=key,
                    accepted=f"no --{key}, or calibrate again",
                )
        test, alpha = options.test or loaded.test, options.alpha or loaded.alpha
        return predictor_of(model, loaded.statistic), replace(loaded, test=test, alpha=alpha)
    predictor = predictor_of(model, statistic)
    consequence = "it surprises the model less than a new one, and there would be false alarms"
    accepted = "normal runs that are not learned from"
    fresh = without_known(
        normal, model, compiled.spec, "this model", consequence, accepted, readers
    )
    runs = read_surprises([*fresh], compiled, predictor, statistic, readers)
    runs = _without_copies(runs, readers.output)
    found = calibrate(
        [one.surprises for one in runs],
        model=predictor.digest,
        abstraction=digest,
        statistic=statistic,
        test=options.test or RULES[0],
        period=period or EVERY,
        alpha=options.alpha or ALPHA,
        recordings=list(dict.fromkeys(one.digest for one in runs)),
    )
    return predictor, found


def _check_new(
    runs: Sequence[Run], model: CountModel, calibration: Calibration, output: Output
) -> None:
    normal = set(calibration.recordings)
    learned = {source.digest for source in model.provenance}
    traces = {trace_of(Path(one.recording)) for one in runs if one.digest not in normal} - {None}
    for one in runs:
        if one.digest in normal and trace_of(Path(one.recording)) in traces:
            output.warn(f"{one.name}: one of the normal runs holds the same data")
        elif one.digest in normal:
            raise RecordingError(
                "was calibrated on: it is normal by definition",
                file=one.recording,
                accepted="other runs",
            )
        if one.digest in learned:
            output.warn(f"{one.name}: the model was learned from it and is surprised too little")


def _without_copies(runs: Sequence[Run], output: Output) -> list[Run]:
    """Return the runs without those that another trace holds, too; raises RecordingError."""
    copies, found = Copies(allowed=True), []
    known: dict[str, bool] = {}
    for one in runs:
        if one.recording not in known:  # a recording may hold several runs
            known[one.recording] = copies.is_new(Path(one.recording), one.digest)
        found += [one] if known[one.recording] else []
    if remark := copies.remark():
        output.warn(remark)
    return found


def _drifts(drift: Drift | None) -> bool:
    return drift is not None and drift.since is not None
