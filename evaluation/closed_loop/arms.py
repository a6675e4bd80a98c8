"""What is compared: who may intervene, and when."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

from evaluation.closed_loop.controllers import Library, OnSignals, Policies
from evaluation.closed_loop.demands import physical_quantities, stops_for_everything
from evaluation.closed_loop.loading import open_watch
from forewarn.config import MonitorSpec, load_spec
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models import CountModel, load_model

NOBODY = "nobody"
REACTIVE = "reactive"
FOREWARN = "Forewarn"
THRESHOLDS = (0.1, 0.2, 0.3, 0.5, 0.7)
ADAPTED = ", adapted"
HOLD = 8.0  # s: as long as this ego's driver ignores a light that has turned red
MOST = 5.0  # s
AT_LIGHTS = ("red_light", "brake_for_red")

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
    """Return the policies of the monitor file."""
    return {
        name: {
            "hold": section.hold,
            "escalation": [step.model_dump() for step in section.escalation],
            **{key: getattr(section.thresholds, key) for key in ("warn", "act", "release")},
        }
        for name, section in spec.properties.items()
    }


def at_threshold(spec: MonitorSpec, threshold: float) -> Policies:
    """Return the policies of the monitor file with one threshold for all properties."""
    levels = {"warn": threshold / 2, "act": threshold, "release": threshold / 2}
    return {name: {**policy, **levels} for name, policy in as_shipped(spec).items()}


def adapted(spec: MonitorSpec) -> Policies:
    """Return the policies of the monitor file, adapted to what a stop leads to.

    Whoever is let go before a red light creeps over it: stops at lights last for `HOLD` at the
    least. Whoever stands where others want to go is in danger until he leaves: after `MOST` a stop
    before others becomes a warning.
    """
    policies = as_shipped(spec)
    way_back = [{"after": MOST, "action": "WARN"}]
    return {
        name: {**policy, "hold": HOLD} if name in AT_LIGHTS else {**policy, "escalation": way_back}
        for name, policy in policies.items()
    }


def arms(monitored: Monitored) -> dict[str, Controls | None]:
    """Return who may intervene in each arm; None: nobody."""
    compiled, model = monitored
    spec = compiled.spec
    with_model, without = open_watch(compiled, model), open_watch(compiled, None)

    def physical(deceleration: float, conflict: float, hold: float, most: float) -> OnSignals:
        quantities = physical_quantities(
            deceleration, conflict, round(hold * spec.rate), most * spec.rate
        )
        return OnSignals(without, quantities)

    return {
        NOBODY: None,
        REACTIVE: Library(without),
        "stop always": OnSignals(without, stops_for_everything()),
        "physical 3 m/s², 1.5 s": physical(3.0, 1.5, 0.5, math.inf),
        "physical 5 m/s², 1 s": physical(5.0, 1.0, 0.5, math.inf),
        f"physical 5 m/s², 1 s{ADAPTED}": physical(5.0, 1.0, HOLD, MOST),
        f"{FOREWARN} as shipped": Library(with_model, as_shipped(spec)),
        f"{FOREWARN} as shipped{ADAPTED}": Library(with_model, adapted(spec)),
        **{f"{FOREWARN} at {t:g}": Library(with_model, at_threshold(spec, t)) for t in THRESHOLDS},
    }
