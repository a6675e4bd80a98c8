"""What is compared: who may intervene, and when."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

from evaluation.harness.control import Library, OnSignals, Policies, Quantity, Values, number
from forewarn.config.file import MonitorSpec, load_spec
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import CountModel
from forewarn.models.file import load_model
from forewarn.monitoring.build import compile_for
from forewarn.monitoring.intervention import Intervention

DEMO = Path(__file__).resolve().parents[2] / "config" / "demo.yaml"
NOBODY = "nobody"
ADAPTED = ", adapted"
HOLD = 8.0  # s: as long as this ego's driver ignores a light that has turned red
MOST = 5.0  # s
STOP, SOFT_STOP = Intervention("EMERGENCY_STOP"), Intervention("COMFORTABLE_STOP")
CONFLICTS = tuple(
    f"conflict_{who}" for who in ("car", "stopped", "flank", "walker", "standing", "in_way")
)
"""The times to conflict that predicates are made of."""

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


def time_to_conflict(values: Values) -> float:
    """Return the least of the monitor file's times to conflict, in seconds."""
    times = [number(values, name, math.inf) for name in CONFLICTS]
    return min((seconds for seconds in times if seconds == seconds), default=math.inf)


def physical_quantities(
    deceleration: float, conflict: float, hold: int = 5, most: float = math.inf
) -> tuple[Quantity, ...]:
    """Return the rules that a monitor without a model would have.

    The first is on the m/s^2 that it takes to stop at a red or yellow light, and holds for so many
    ticks at the least; the second on the seconds until the ego meets somebody if both go on as they
    do, and stops for so many ticks at the most.
    """

    def needed(values: Values) -> float:
        return number(values, "brake_needed")

    def conflicts(values: Values) -> float:
        return -time_to_conflict(values)

    levels = deceleration, 0.6 * deceleration
    return (
        Quantity("required deceleration", needed, *levels, STOP, hold),
        Quantity("time to conflict", conflicts, -conflict, -1.5 * conflict, STOP, most=most),
    )


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
