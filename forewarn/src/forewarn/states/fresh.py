"""Conditions that let something move: known for certain, and from what arrived just now.

Predicates may remember, hold an old value, or start with a default, and a part that is unknown may
not matter to them. Here all that would open a way on old or missing knowledge is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from forewarn.errors import ConfigError, ConfigErrors, InputError
from forewarn.signals.clock import NANOSECONDS
from forewarn.states.condition import Condition, compiled_condition, parsed, rests_on

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.states.abstraction import Abstraction

KEY = "actuators.twist.escape"
TURN, ALWAYS = "turn", "true"
FRESH = 1.0
"""Seconds: the longest timeout of a signal on which such a condition may rest."""


def clear_ways(spec: MonitorSpec, abstraction: Abstraction) -> dict[str, Condition]:
    """Return when a stopped robot may move, by the names of ways; none without `escape`.

    Raises
    ------
    ConfigErrors
        If an expression is no condition, or rests on signals that may be old.
    """
    conditions = {} if spec.escape is None else spec.escape.conditions
    found, errors = dict[str, Condition](), list[InputError]()
    for name, text in conditions.items():
        try:
            found[name] = _condition(spec, abstraction, name, text)
        except ConfigErrors as error:
            errors += error.errors
    if errors:
        raise ConfigErrors(errors)
    return found


def _condition(spec: MonitorSpec, abstraction: Abstraction, way: str, text: str) -> Condition:
    key = f"{KEY}.{way}.when"
    if way == TURN and text.lower() == ALWAYS:
        return Condition(ALWAYS, (), (), by_platform=False)
    errors: list[InputError] = []
    expression = parsed(spec, abstraction, key, text)
    names = tuple(sorted(expression.names))
    if not names:
        also = "; or true, for a robot that may turn anywhere" if way == TURN else ""
        errors.append(
            ConfigError(
                f"{text!r} reads no signal: no sensor would have a say",
                file=spec.file,
                key=key,
                accepted=f"an expression over signals, clear_behind > 0.5, say{also}",
            )
        )
    errors += [
        ConfigError(problem, file=spec.file, key=key, accepted=accepted)
        for problem, accepted in _old(abstraction, names)
    ]
    if errors:
        raise ConfigErrors(errors)
    return compiled_condition(abstraction, expression, text)


def _old(abstraction: Abstraction, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what may be old of all that an expression rests on, and what would be accepted."""
    needed = rests_on(abstraction, names)
    for derived in abstraction.derived:
        if derived.name in needed and derived.memory is not None:
            yield (
                f"rests on {derived.name}, which remembers",
                "signals that depend on the present moment only",
            )
    for source in abstraction.sources:
        if source.name not in needed:
            continue
        if not 0 < source.timeout_ns <= FRESH * NANOSECONDS:
            timeout = "never" if source.timeout_ns < 0 else f"{source.timeout_ns / NANOSECONDS:g}"
            yield (
                f"rests on {source.name}, whose timeout is {timeout}",
                f"signals with a timeout of at most {FRESH:g} s",
            )
        if source.default is not None:
            yield (
                f"rests on {source.name}, which has the default {source.default!r} before anything "
                "has arrived",
                "signals without a default",
            )
        if source.stale == "hold":
            yield (
                f"rests on {source.name}, whose last value stays when it is stale (hold)",
                "signals that are stale: worst",
            )
