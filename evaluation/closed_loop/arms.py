"""What is compared: who may intervene, and when."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from evaluation.closed_loop.demands import physical_quantities
from evaluation.harness.control import Library, OnSignals, Policies
from forewarn.config.file import MonitorSpec, load_spec
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import CountModel
from forewarn.models.file import load_model
from forewarn.monitoring.build import compile_for

DEMO = Path(__file__).resolve().parents[2] / "config" / "demo.yaml"
NOBODY = "nobody"
ADAPTED = ", adapted"
HOLD = 8.0  # s: as long as this ego's driver ignores a light that has turned red
MOST = 5.0  # s

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


def physical(
    compiled: CompiledSpec, deceleration: float, conflict: float, hold: float, most: float
) -> OnSignals:
    """Return the physical rule with these limits, and seconds for which it holds and may hold."""
    ticks = round(hold * compiled.spec.rate), most * compiled.spec.rate
    return OnSignals(compiled, physical_quantities(deceleration, conflict, *ticks))


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
