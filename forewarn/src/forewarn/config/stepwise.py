"""Checks of the keys that ``clock: steps`` forbids, and of those that need it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from forewarn.config.agent_signals import mismatches
from forewarn.config.fields import Misfit, Path

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec

OF_PROPERTIES = ("horizon", "hold", "out_of_model_timeout", "breach_clear_time")


def misfits(spec: MonitorSpec) -> Iterator[Misfit]:
    """Yield all that does not fit the clock of a monitor file."""
    if spec.clock == "steps":
        yield from _of_steps(spec)
        return
    for key in ("step", "episode"):
        if key in spec.model_fields_set:
            value = getattr(spec, key)
            yield Misfit((key,), f"{value!r} belongs to clock: steps", "no such key, for ticks")
    if spec.rate == "steps":
        yield Misfit(("rate",), "'steps': the clock is ticks", "ticks a second, or clock: steps")


def _of_agents(spec: MonitorSpec) -> Iterator[Misfit]:
    """Yield comparisons of texts with numbers in a file that judges the steps of agents."""
    own = {name for name, s in spec.signals.items() if s.source is None and not s.is_derived}
    if spec.step is not None or not own & {"proposed", "arguments", "calls"}:
        return
    texts: dict[Path, object] = {
        ("signals", n, "value"): s.value for n, s in spec.signals.items() if s.is_derived
    }
    texts |= {("predicates", name): text for name, text in spec.predicates.items()}
    texts |= {("terminal", name): text for name, text in spec.terminal.items()}
    for path, text in texts.items():
        for part in mismatches(str(text), own):
            yield Misfit(
                path,
                f"{part!r} compares a text with a number, and is never known",
                "float(TEXT), which is unknown where the text is no number; or a text",
            )


def _of_steps(spec: MonitorSpec) -> Iterator[Misfit]:
    if spec.rate != "steps":
        yield Misfit(("rate",), f"{spec.rate:g}: steps have no rate", "clock: steps without rate")
    for path, value in durations(spec):
        if not math.isinf(value) and value != int(value):
            yield Misfit(
                path,
                f"{value:g}: the clock is steps, and this is no whole number of them",
                "a whole number of steps, no seconds",
            )
    if spec.timestamp_source == "header":
        yield Misfit(("timestamp_source",), "'header': steps have no headers", "arrival")
    if spec.settle:
        yield Misfit(("settle",), f"{spec.settle:g}: steps do not settle", "0, or leave it out")
    yield from _of_agents(spec)
    if spec.step is None and all(s.source or s.is_derived for s in spec.signals.values()):
        listed = ", ".join(sorted(spec.topics))
        yield Misfit(("step",), "is missing: whose messages are steps", listed)
    if spec.step is not None and spec.step not in spec.topics:
        listed = ", ".join(sorted(spec.topics)) or "no step: no signal has a topic"
        yield Misfit(("step",), f"no signal reads {spec.step}", listed)
    twist = spec.actuators.twist
    if twist is not None and twist.monitor_timeout is None:
        yield Misfit(
            ("actuators", "twist"),
            "monitor_timeout is missing: steps come when they come, so that the gate cannot tell "
            "from the clock how long a monitor may be silent",
            "monitor_timeout: in seconds",
        )
    if spec.escape is not None:
        yield Misfit(
            ("actuators", "twist", "escape"),
            "the clock is steps: a way that was clear at the last step may be blocked now",
            "clock: ticks, or no such section",
        )


def durations(spec: MonitorSpec) -> Iterator[tuple[Path, float]]:
    """Yield every duration of the monitor's logic, which is in the unit of the clock."""
    yield ("startup_grace",), spec.startup_grace
    yield ("learning", "refresh"), spec.learning.refresh
    for wing in spec.wing_sections:
        yield from wing.durations(spec)
    for name, signal in spec.signals.items():
        if signal.timeout is not None:
            yield ("signals", name, "timeout"), signal.timeout
    for name, section in spec.properties.items():
        for key in OF_PROPERTIES:
            yield ("properties", name, key), getattr(section, key)
        for index, step in enumerate(section.escalation):
            yield ("properties", name, "escalation", index, "after"), step.after
