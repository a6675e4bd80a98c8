"""Other policies for the properties of a monitor whose tables are solved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from forewarn.errors import ConfigError
from forewarn.monitoring.policy import compile_rules

if TYPE_CHECKING:
    from forewarn.config.sections import PropertySpec
    from forewarn.monitoring.step import Monitor


def with_section(monitor: Monitor, name: str, section: PropertySpec) -> Monitor:
    """Return the monitor with another policy for one property; tables and automata stay.

    Raises
    ------
    ConfigError
        If the section changes formula or horizon, which the tables depend on.
    """
    changed = []
    for compiled in monitor.properties:
        if compiled.name == name:
            before = compiled.spec
            if (section.formula, section.horizon) != (before.formula, before.horizon):
                raise ConfigError(
                    "formula and horizon cannot change while running", key=f"properties.{name}"
                )
            if section.risk_measure == "min_risk" and before.risk_measure != "min_risk":
                raise ConfigError(
                    "min_risk is computed before the first tick, for properties whose risk_measure "
                    "it is "
                    "in the monitor file",
                    key=f"properties.{name}.risk_measure",
                    accepted="risk or upper; or min_risk in the file",
                )
            if section.risk_measure == "expected" and not monitor.fresh(compiled).belief:
                raise ConfigError(
                    "expected is followed from the first tick on, for properties whose "
                    "risk_measure it "
                    "is in the monitor file, or for all where it has observation_error",
                    key=f"properties.{name}.risk_measure",
                    accepted="risk or upper; or expected in the file, or observation_error: {}",
                )
            for key in ("risk_of", "hold_while"):
                if getattr(section, key) != getattr(before, key):
                    raise ConfigError(
                        f"{key} cannot change while running", key=f"properties.{name}.{key}"
                    )
            rules = compile_rules(section, monitor.clock)
            compiled = replace(compiled, spec=section, rules=rules)
        changed.append(compiled)
    spec = monitor.spec.model_copy(
        update={"properties": {**monitor.spec.properties, name: section}}
    )
    return replace(monitor, spec=spec, properties=tuple(changed))


def with_policies(monitor: Monitor, changes: Mapping[str, Mapping[str, object]]) -> Monitor:
    """Return `monitor` with other thresholds, by property.

    Raises
    ------
    ConfigError
        If a value is out of range.
    """
    for name, values in changes.items():
        section = monitor.spec.with_thresholds(name, values).properties[name]
        monitor = with_section(monitor, name, section)
    return monitor
