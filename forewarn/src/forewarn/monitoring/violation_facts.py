"""What a rule saw when it was broken: the values of the signals that its formula reads."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from forewarn.expressions.syntax import parse_expression

if TYPE_CHECKING:
    from forewarn.monitoring.step import Monitor
    from forewarn.monitoring.tables import CompiledProperty
    from forewarn.monitoring.verdict import Verdict

SHOWN = 4
LONGEST = 24


def violation_values(
    monitor: Monitor, compiled: CompiledProperty, verdict: Verdict
) -> dict[str, Any]:
    """Return the signals that a property reads, with their values at a tick; None where unknown.

    Signals of atoms that hold come first, because a broken rule is mostly about what holds.
    """
    signals = monitor.abstraction.signals
    state, space = verdict.observation.state, monitor.abstraction.vocabulary
    atoms = sorted(
        compiled.automaton.atoms, key=lambda atom: state is None or not space.holds(atom, state)
    )
    spec = monitor.spec
    texts = [spec.predicates.get(atom) or spec.terminal.get(atom) or atom for atom in atoms]
    names = dict.fromkeys(name for text in texts for name in _names(text) if name in signals)
    return {name: verdict.values[signals.index(name)] for name in names}


def violation_facts(monitor: Monitor, verdict: Verdict, name: str) -> tuple[str, ...]:
    """Return a sentence about what a property that is violated at a tick saw."""
    pairs = zip(monitor.properties, verdict.properties, strict=True)
    compiled, prop = next(pair for pair in pairs if pair[0].name == name)
    if not prop.violation:
        return ()
    values = in_words(violation_values(monitor, compiled, verdict))
    return (f"{name} is violated: {values}",) if values else ()


@lru_cache(maxsize=1024)
def _names(text: str) -> tuple[str, ...]:
    return tuple(sorted(parse_expression(text).names))


def in_words(values: dict[str, Any]) -> str:
    """Return the values in one line: ``gap 0.31, speed 3.2``; empty without any."""
    shown = [f"{name} {_shown(value)}" for name, value in [*values.items()][:SHOWN]]
    return ", ".join(shown)


def _shown(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:.3g}" if math.isfinite(value) else str(value)
    text = repr(value) if isinstance(value, str) else f"{type(value).__name__} of {len(value)}"
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
