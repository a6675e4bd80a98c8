"""From the section `anomaly` of a monitor file to what judges runs live."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from forewarn.errors import ConfigError, InputError
from forewarn.models.checked_json import Reader, parse_json
from forewarn.models.counts import CountModel
from forewarn.models.file import parse_model
from forewarn.wings.anomalies.calibration import LIVE_RULES, Calibration
from forewarn.wings.anomalies.calibration_file import (
    check_calibration,
    load_calibration,
)
from forewarn.wings.anomalies.distance_live import DistanceDetector
from forewarn.wings.anomalies.live import Detector
from forewarn.wings.anomalies.normal_file import parse_normal
from forewarn.wings.anomalies.normal_moments import KEY, NormalMoments
from forewarn.wings.anomalies.surprise import Predictor, predictor_of

if TYPE_CHECKING:
    from forewarn.logic.specification import CompiledSpec
    from forewarn.wings.anomalies.section import AnomalySpec


def open_detector(compiled: CompiledSpec, model: CountModel | None) -> Detector | DistanceDetector:
    """Return what judges runs by the file that the section names, or by the model.

    Raises InputError if there is no model, it keeps no normal runs, the file cannot be read or
    belongs to another model, or rule and alpha do not suit it.
    """
    section: AnomalySpec = compiled.spec.anomaly
    if model is None:
        raise ConfigError(
            "surprise needs a model of normal runs",
            file=compiled.spec.file,
            key="anomaly",
            accepted="model: or -m with the model that was learned from normal runs",
        )
    if section.file is None:
        return _by_distance(compiled, _normal_of(compiled, model))
    predictor = predictor_of(model, "outcome")
    path = compiled.spec.beside(section.file)
    digest = compiled.abstraction.digest
    return _detector(compiled, predictor, load_calibration(path, predictor.digest, digest))


def _normal_of(compiled: CompiledSpec, model: CountModel) -> NormalMoments:
    kept: tuple[NormalMoments, ...] = model.sections.get(KEY, ())
    if not kept:
        raise ConfigError(
            "the model keeps no moments of normal runs",
            file=compiled.spec.file,
            key="anomaly",
            accepted="a model that `forewarn learn` learned with this monitor file; or `file`",
        )
    return kept[0]


def _by_distance(compiled: CompiledSpec, normal: NormalMoments) -> DistanceDetector:
    section: AnomalySpec = compiled.spec.anomaly
    abstraction, file = compiled.abstraction, compiled.spec.file
    if section.test not in (None, "conformal"):
        raise ConfigError(
            f"the test {section.test} needs `file`",
            file=file,
            key="anomaly.test",
            accepted="conformal",
        )
    names = abstraction.signals
    missing = sorted({*normal.signals} - {*names})
    if missing:
        raise ConfigError(
            f"normal runs were compared by {missing[0]!r}, which is no signal here",
            file=file,
            key="signals",
            accepted="the signals that the model was learned with",
        )
    longest = None if math.isinf(section.run) else abstraction.clock.at_least(section.run)
    found = DistanceDetector(
        normal,
        section.alpha or normal.usual_alpha,
        tuple(map(names.index, normal.signals)),
        abstraction.vocabulary,
        longest,
    )
    try:
        found.limit  # noqa: B018  it raises if no run could be anomalous
    except InputError as error:
        raise error.located(file=file, key="anomaly.alpha") from error
    return found


def _detector(compiled: CompiledSpec, predictor: Predictor, found: Calibration) -> Detector:
    section: AnomalySpec = compiled.spec.anomaly
    clock = compiled.abstraction.clock
    test, alpha = section.test or found.test, section.alpha or found.alpha
    if test not in LIVE_RULES:
        raise ConfigError(
            f"the test {test} judges a run when it is over",
            file=compiled.spec.file,
            key="anomaly.test",
            accepted=", ".join(LIVE_RULES),
        )
    try:
        calibration = replace(found, test=test, alpha=alpha)
    except InputError as error:
        key = "anomaly.alpha" if section.test is None else "anomaly.test"
        raise error.located(file=compiled.spec.file, key=key) from error
    longest = None if math.isinf(section.run) else clock.at_least(section.run)
    return Detector(predictor, calibration, longest)


def unpack_detector(compiled: CompiledSpec, packed: bytes) -> Detector | DistanceDetector:
    """Return the detector of a record; raises InputError."""
    reader = Reader(parse_json(packed), "")
    if KEY in reader.value:
        return _by_distance(compiled, parse_normal(reader.children(KEY))[0])
    model = parse_model(reader.text("model").encode())
    predictor = predictor_of(model, "outcome")
    content = parse_json(reader.text("calibration").encode())
    digest = compiled.abstraction.digest
    return _detector(compiled, predictor, check_calibration(content, predictor.digest, digest))
