"""Put the maps of a calibrated model into risk tables.

A map changes the table once, before the first tick. So the node, a replay, a verification and a
report all look up the same calibrated risk, to the last bit; records and verdicts hold that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from forewarn.checking.interface import RiskTable
from forewarn.config import MonitorSpec
from forewarn.config.sections import PropertySpec
from forewarn.errors import ModelError
from forewarn.models import CountModel
from forewarn.models.calibration_map import Recalibration
from forewarn.signals.clock import Clock, within
from forewarn.signals.clock_kinds import clock_of


def maps_of(spec: MonitorSpec, model: CountModel) -> Mapping[str, Recalibration | None]:
    """Return the map of every property; raises ModelError if one belongs to another formula."""
    clock = clock_of(model.rate)
    maps = {calibration_map.name: calibration_map for calibration_map in model.recalibration}
    for name, section in spec.properties.items():
        found = maps.get(name)
        if found is not None and not found.fits(
            section.formula, section.horizon, section.paper_counting
        ):
            raise ModelError(
                f"the model calibrates the risk of {name!r} for {_asked(found, clock)}; "
                f"the monitor file says {_asked(section, clock)}",
                key=f"properties.{name}",
                accepted="the formula and horizon it was fitted for; or learn and calibrate again; "
                "or `forewarn merge MODEL -o FILE`, which leaves calibrations out",
            )
    return {name: maps.get(name) for name in spec.properties}


def _asked(asked: Recalibration | PropertySpec, clock: Clock) -> str:
    counting = ", by the paper's counting" if asked.paper_counting else ""
    return f"{asked.formula!r} {within(clock, asked.horizon)}{counting}"


def unused(found: Recalibration) -> str:
    """Say that the monitor file has no such property."""
    return f"{found.name}: the model calibrates a property that the monitor file does not have"


def calibrated(table: RiskTable, found: Recalibration | None) -> RiskTable:
    """Return the table with risk and bounds mapped; the expected time to a violation stays."""
    if found is None:
        return table
    values = found(table.values)
    note = (
        f"risk and bounds are calibrated ({found.method}, {found.ticks} ticks of "
        f"{len(found.recordings)} held-out recordings); the bounds are those of the chain, mapped: "
        "they leave the uncertainty of the map out"
    )
    return replace(
        table,
        values=values,
        # The logistic curve may fall by a last bit where its logarithm does.
        lower=None if table.lower is None else np.fmin(found(table.lower), values),
        upper=None if table.upper is None else np.fmax(found(table.upper), values),
        notes=(*table.notes, note),
    )
