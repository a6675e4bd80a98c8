"""From the section `anomaly` of a monitor file to what judges runs live."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from forewarn.errors import ConfigError, InputError
from forewarn.models.checked_json import Reader, parse_json
from forewarn.models.counts import CountModel
from forewarn.models.file import dump_model, parse_model
from forewarn.monitoring.anomalies import LIVE_RULES, Calibration
from forewarn.monitoring.anomaly_file import (
    check_calibration,
    dump_calibration,
    load_calibration,
)
from forewarn.monitoring.live_anomaly import Detector
from forewarn.monitoring.surprise import Predictor, predictor_of

if TYPE_CHECKING:
    from forewarn.logic.specification import CompiledSpec


def open_detector(compiled: CompiledSpec, model: CountModel | None) -> Detector | None:
    """Return what judges runs by the file that a monitor file names; None if it names none.

    Raises
    ------
    InputError
        If there is no model, the file cannot be read or belongs to another model, or rule and
        alpha do not suit it.
    """
    section = compiled.spec.anomaly
    if section is None:
        return None
    if model is None:
        raise ConfigError(
            "surprise needs a model of normal runs, and there is none",
            file=compiled.spec.file,
            key="anomaly",
            accepted="model: or -m with the model that the file was calibrated with",
        )
    predictor = predictor_of(model, "outcome")
    path = compiled.spec.beside(section.file)
    digest = compiled.abstraction.digest
    return _detector(compiled, predictor, load_calibration(path, predictor.digest, digest))


def _detector(compiled: CompiledSpec, predictor: Predictor, found: Calibration) -> Detector:
    section, clock = compiled.spec.anomaly, compiled.abstraction.clock
    assert section is not None
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


def need_live_actions(compiled: CompiledSpec, detector: Detector | None) -> None:
    """Raise ConfigError if surprise rests on actions that only the lines of a trace can name."""
    if detector is None or compiled.abstraction.action is not None:
        return
    if detector.predictor.choices or detector.predictor.outcomes:
        raise ConfigError(
            "normal runs were calibrated with actions, and nothing names them live",
            file=compiled.spec.file,
            key="action",
            accepted="an expression with the name of what is done, learned and calibrated with",
        )


def pack_detector(detector: Detector) -> bytes:
    """Return the calibration and its model as one text, for a record."""
    content = {
        "calibration": dump_calibration(detector.calibration),
        "model": dump_model(detector.predictor.model),
    }
    return json.dumps(content).encode()


def unpack_detector(compiled: CompiledSpec, packed: bytes) -> Detector:
    """Return the detector of a record; raises InputError."""
    reader = Reader(parse_json(packed), "")
    model = parse_model(reader.text("model").encode())
    predictor = predictor_of(model, "outcome")
    content = parse_json(reader.text("calibration").encode())
    digest = compiled.abstraction.digest
    return _detector(compiled, predictor, check_calibration(content, predictor.digest, digest))
