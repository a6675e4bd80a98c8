"""The part of `forewarn report` about runs that are unlike normal ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from forewarn.assessment.replay import Replaying
from forewarn.wings.anomalies.distance_live import DistanceDetector
from forewarn.wings.anomalies.distance_report import distance_parts, distant_runs
from forewarn.wings.anomalies.judged_runs import TOP, drift_of, judge_run, read_surprises
from forewarn.wings.anomalies.live import Detector
from forewarn.wings.anomalies.report import Surprise, surprise_parts
from forewarn.wings.anomalies.surprise import predictor_of

if TYPE_CHECKING:
    from forewarn.cli.readers import Readers
    from forewarn.logic.specification import CompiledSpec
    from forewarn.monitoring.step import Monitor
    from forewarn.reports.page import Part


def report_parts(
    monitor: Monitor, compiled: CompiledSpec, recordings: Sequence[Path], readers: Readers
) -> list[Part]:
    """Judge runs by what the monitor file names for live ones."""
    detector = monitor.detector
    if isinstance(detector, DistanceDetector):
        how = Replaying(monitor, allow_missing=readers.allow_missing)
        read = readers.read(recordings, distant_runs, how, verb="comparing")
        distant = [run for _, found in read for run in found]
        return distance_parts(distant, monitor.clock, detector.longest_normal)
    assert isinstance(detector, Detector)
    calibration = detector.calibration
    predictor = predictor_of(detector.predictor.model, calibration.statistic)
    runs = read_surprises(recordings, compiled, predictor, calibration.statistic, readers)
    judged = [judge_run(one, predictor, calibration, TOP) for one in runs if one.surprises]
    found = Surprise(judged, calibration, drift_of(judged, calibration, predictor))
    return surprise_parts(found, compiled)
