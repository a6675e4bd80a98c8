"""Why it is not known whether a moment breaks a rule: which conditions and signals are unknown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.values import Unknown
from forewarn.states.condition import rests_on

if TYPE_CHECKING:
    from forewarn.monitoring.step import Monitor
    from forewarn.monitoring.tables import CompiledProperty
    from forewarn.monitoring.verdict import PropertyVerdict, Verdict

EARLIER = "what came before is not known"


def possibly_broken(monitor: Monitor, verdict: Verdict, *, gap: bool) -> dict[str, str]:
    """Return the properties that a moment may violate, with the reason.

    `gap`: moments before this one were missed. What only they may have violated is left out.
    """
    found = {}
    for compiled, prop in zip(monitor.properties, verdict.properties, strict=True):
        if prop.possible_violation:
            why = "; ".join(_reasons(monitor, compiled, verdict, prop))
            if why or not gap:
                found[compiled.name] = why or EARLIER
    return found


def _reasons(
    monitor: Monitor, compiled: CompiledProperty, verdict: Verdict, prop: PropertyVerdict
) -> Iterator[str]:
    """Yield why each atom of a property that is unknown is so."""
    abstraction, atoms = monitor.abstraction, compiled.automaton.atoms
    letters = [*abstraction.vocabulary.letters(atoms, verdict.observation)]
    failed = {failure.where: failure.reason for failure in verdict.failures}
    for place, atom in enumerate(atoms):
        if len({letter >> place & 1 for letter in letters}) < 2:
            continue
        keys = [key for key in abstraction.conditions if key.rpartition(".")[2] == atom]
        names = [name for key in keys for name in sorted(abstraction.conditions[key].names)]
        needed = rests_on(abstraction, [name for name in names if name in abstraction.signals])
        causes = [f"{where} is unknown: {failed[where]}" for where in needed if where in failed]
        causes += [
            _evaluated(monitor, key, verdict) or failed[key] for key in keys if key in failed
        ]
        yield f"{atom} is unknown ({', '.join(causes or _absent(monitor, verdict, needed))})"


def _evaluated(monitor: Monitor, key: str, verdict: Verdict) -> str:
    """Return why a condition over known signals has no truth value; empty if that is not known."""
    abstraction = monitor.abstraction
    expression, signals = abstraction.conditions[key], abstraction.signals
    names = sorted(expression.names)
    if not set(names) <= set(signals):
        return ""
    values = [verdict.values[signals.index(name)] for name in names]
    found = compile_expression(expression, names)(values)
    return found.reason if isinstance(found, Unknown) else ""


def _absent(monitor: Monitor, verdict: Verdict, needed: Sequence[str]) -> Sequence[str]:
    """Return what has no value of the signals that a condition rests on."""
    signals = monitor.abstraction.signals
    missing = [name for name in needed if verdict.values[signals.index(name)] is None]
    return [f"{name} has no value" for name in missing] or ["not all that it rests on is known"]
