"""What is compared: who may intervene, and when."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

from evaluation.closed_loop.demands import physical_quantities, stops_for_everything
from evaluation.harness.control import Library, OnSignals, Policies
from forewarn.config import MonitorSpec, load_spec
from forewarn.logic.specification import CompiledSpec
from forewarn.models import CountModel, load_model
from forewarn.monitoring.build import compile_for

CONFIG = Path(__file__).resolve().parents[1] / "sumo" / "predicates.yaml"
DEMO = Path(__file__).resolve().parents[2] / "config" / "demo.yaml"
"""The same states with danger scores."""
NOBODY, REACTIVE, FOREWARN = "nobody", "reactive", "Forewarn"
THRESHOLDS = (0.1, 0.2, 0.3, 0.5, 0.7)
ADAPTED = ", adapted"
HOLD = 8.0  # s: as long as this ego's driver ignores a light that has turned red
MOST = 5.0  # s
AT_LIGHTS = ("red_light", "brake_for_red")

Arms = dict[str, Library | None]


def load_acting(config: Path) -> tuple[CompiledSpec, CountModel]:
    """Load a monitor file as one that acts, and its model."""
    spec = load_spec(config)
    if spec.model_path is None:
        raise SystemExit(f"{config} names no model")
    model = load_model(spec.model_path)
    return compile_for(spec.model_copy(update={"mode": "act"}), model), model


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
    way_back = [{"after": MOST, "action": "WARN"}]
    return {
        name: {**policy, "hold": HOLD} if name in AT_LIGHTS else {**policy, "escalation": way_back}
        for name, policy in as_shipped(spec).items()
    }


def physical(
    compiled: CompiledSpec, deceleration: float, conflict: float, hold: float, most: float
) -> OnSignals:
    """Return the physical rule with these limits, and seconds for which it holds and may hold."""
    ticks = round(hold * compiled.spec.rate), most * compiled.spec.rate
    return OnSignals(compiled, physical_quantities(deceleration, conflict, *ticks))


def arms(compiled: CompiledSpec, model: CountModel) -> Arms:
    """Return who may intervene in each arm; None: nobody."""
    spec = compiled.spec

    def forewarn(policies: Policies) -> Library:
        return Library(compiled, model, policies)

    return {
        NOBODY: None,
        REACTIVE: Library(compiled, None),
        "stop always": OnSignals(compiled, stops_for_everything()),
        "physical 3 m/s², 1.5 s": physical(compiled, 3.0, 1.5, 0.5, math.inf),
        "physical 5 m/s², 1 s": physical(compiled, 5.0, 1.0, 0.5, math.inf),
        f"physical 5 m/s², 1 s{ADAPTED}": physical(compiled, 5.0, 1.0, HOLD, MOST),
        f"{FOREWARN} as shipped": forewarn(as_shipped(spec)),
        f"{FOREWARN} as shipped{ADAPTED}": forewarn(adapted(spec)),
        **{f"{FOREWARN} at {t:g}": forewarn(at_threshold(spec, t)) for t in THRESHOLDS},
    }


def key_of(arm: Library | None, compiled: CompiledSpec, model: CountModel) -> str:
    """Return what an arm's trips depend on: model and policies, or the signals alone."""
    if arm is None:
        return ""
    if not arm.policies:
        return compiled.abstraction.digest
    told = f"{model.fingerprint} {json.dumps(arm.policies, sort_keys=True)}"
    held = {n: p.hold_while for n, p in compiled.spec.properties.items() if p.hold_while}
    told += f" {json.dumps(held)}" if held else ""
    return hashlib.sha256(told.encode()).hexdigest()
