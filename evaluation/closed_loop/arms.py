"""What is compared: who may intervene, and when."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from evaluation.closed_loop.controllers import Library, OnSignals, Policies, open_watch
from evaluation.closed_loop.demands import physical_quantities, stops_for_everything
from forewarn.config import MonitorSpec, load_spec
from forewarn.models import CountModel, load_model
from forewarn.properties.specification import CompiledSpec, compile_spec

NOBODY = "nobody"
FOREWARN = "Forewarn"
THRESHOLDS = (0.1, 0.2, 0.3, 0.5, 0.7)
PHYSICAL = ((3.0, 1.5), (5.0, 1.0))
"""Required deceleration in m/s^2 and time to conflict in s."""


Controls = Library | OnSignals


class Monitored(NamedTuple):
    """A monitor file that acts, and its model."""

    compiled: CompiledSpec
    model: CountModel

    @classmethod
    def load(cls, config: Path) -> Monitored:
        """Load both."""
        spec = load_spec(config)
        if spec.model_path is None:
            raise SystemExit(f"{config} names no model")
        acting = spec.model_copy(update={"mode": "act"})
        return cls(compile_spec(acting), load_model(spec.model_path))


def as_shipped(spec: MonitorSpec) -> Policies:
    """Return the thresholds of the monitor file."""
    return {
        name: {key: getattr(section.thresholds, key) for key in ("warn", "act", "release")}
        for name, section in spec.properties.items()
    }


def at_threshold(spec: MonitorSpec, threshold: float) -> Policies:
    """Return one threshold for all properties."""
    levels = {"warn": threshold / 2, "act": threshold, "release": threshold / 2}
    return dict.fromkeys(spec.properties, levels)


def arms(monitored: Monitored) -> dict[str, Controls | None]:
    """Return who may intervene in each arm; None: nobody."""
    compiled, model = monitored
    with_model, without = open_watch(compiled, model), open_watch(compiled, None)
    return {
        NOBODY: None,
        "reactive": Library(without),
        "stop always": OnSignals(without, stops_for_everything()),
        **{
            f"physical {deceleration:g} m/s², {conflict:g} s": OnSignals(
                without, physical_quantities(deceleration, conflict)
            )
            for deceleration, conflict in PHYSICAL
        },
        f"{FOREWARN} as shipped": Library(with_model, as_shipped(compiled.spec)),
        **{
            f"{FOREWARN} at {threshold:g}": Library(
                with_model, at_threshold(compiled.spec, threshold)
            )
            for threshold in THRESHOLDS
        },
    }
