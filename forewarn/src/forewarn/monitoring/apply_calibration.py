"""Put the maps of a calibrated model into risk tables.

A map changes the table once, before the first tick. So the node, a replay, a verification and a
report all look up the same calibrated risk, to the last bit; records and verdicts hold that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from forewarn.errors import ModelError
from forewarn.signals.clock import Clock, within
from forewarn.signals.clock_kinds import clock_of

if TYPE_CHECKING:
    from forewarn.checking.interface import RiskTable
    from forewarn.config.file import MonitorSpec
    from forewarn.config.sections import PropertySpec
    from forewarn.models.calibration_map import Recalibration
    from forewarn.models.counts import CountModel


def maps_of(spec: MonitorSpec, model: CountModel) -> Mapping[str, Recalibration | None]:
    """Return the map of every property; raises ModelError if one belongs to another formula."""
    clock = clock_of(model.rate)
    maps = {calibration_map.name: calibration_map for calibration_map in model.recalibration}
    for name, section in spec.properties.items():
        found = maps.get(name)
        if found is not None and not found.fits(section.formula, section.horizon):
            raise ModelError(
                f"the model calibrates the risk of {name!r} for {_asked(found, clock)}; "
                f"the monitor file says {_asked(section, clock)}",
                key=f"properties.{name}",
                accepted="the formula and horizon it was fitted for; or learn and calibrate again; "
                "or `forewarn merge MODEL -o FILE`, which leaves calibrations out",
            )
    return {name: maps.get(name) for name in spec.properties}


def _asked(asked: Recalibration | PropertySpec, clock: Clock) -> str:
    return f"{asked.formula!r} {within(clock, asked.horizon)}"


def unused(found: Recalibration) -> str:
    """Say that the monitor file has no such property."""
    return f"{found.name}: the model calibrates a property that the monitor file does not have"


def calibrated(table: RiskTable, found: Recalibration | None, noun: str = "tick") -> RiskTable:
    """Return the table with the risk mapped; the expected time to a violation stays.

    Clustered bounds are of what follows, whatever the estimate of it: they are widened to hold the
    mapped risk, where other bounds are mapped as well.
    """
    if found is None:
        return table
    values, lower, upper = found(table.values), table.lower, table.upper
    by = f"({found.method}, {found.ticks} {noun}s of {len(found.recordings)} held-out recordings)"
    if table.kind == "clustered":
        note = f"the risk is calibrated {by}; its bounds are widened to hold it"
    else:
        lower, upper = (None if part is None else found(part) for part in (lower, upper))
        note = (
            f"risk and bounds are calibrated {by}; the bounds are those of the chain, mapped: "
            "they leave the uncertainty of the map out"
        )
    return replace(
        table,
        values=values,
        # The logistic curve may fall by a last bit where its logarithm does.
        lower=None if lower is None else np.fmin(lower, values),
        upper=None if upper is None else np.fmax(upper, values),
        notes=(*table.notes, note),
    )
