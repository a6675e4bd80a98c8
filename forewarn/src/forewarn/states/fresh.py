"""Conditions that let something move: known for certain, and from what arrived just now.

Predicates may remember, hold an old value, or start with a default, and a part that is unknown may
not matter to them. Here all that would open a way on old or missing knowledge is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from forewarn.config import MonitorSpec
from forewarn.errors import ConfigError, ConfigErrors, ExpressionError, InputError
from forewarn.expressions import Unknown, compile_expression, parse_expression
from forewarn.signals.clock import NANOSECONDS
from forewarn.states.abstraction import Abstraction

KEY = "actuators.twist.escape"
TURN, ALWAYS = "turn", "true"
FRESH = 1.0
"""Seconds: the longest timeout of a signal on which such a condition may rest."""


@dataclass(frozen=True)
class FreshCondition:
    """An expression over signals that holds only if all of them are known.

    Attributes
    ----------
    text : str
        The expression.
    names : tuple of str
        The signals that it reads; none if it always holds.
    slots : tuple of int
        Where their values lie among those of all signals.
    by_platform : bool
        Another type of processor may find otherwise, by a last bit.
    """

    text: str
    names: tuple[str, ...]
    slots: tuple[int, ...]
    by_platform: bool

    @cached_property
    def _function(self) -> Any:
        return compile_expression(parse_expression(self.text), self.names)

    def denial(self, values: Sequence[Any]) -> str:
        """Return why it cannot be said to hold; empty if it holds.

        Parameters
        ----------
        values : sequence
            Values of all signals in slot order; None where unknown.
        """
        given = [values[slot] for slot in self.slots]
        missing = [name for name, value in zip(self.names, given, strict=True) if value is None]
        if missing:
            return f"{', '.join(missing)} is unknown"
        found = self._function(given)
        if found is True:
            return ""
        if found is False:
            return f"{self.text} is false"
        why = found.reason if isinstance(found, Unknown) else "it gives no truth value"
        return f"{self.text} is unknown: {why}"


def clear_ways(spec: MonitorSpec, abstraction: Abstraction) -> dict[str, FreshCondition]:
    """Return when a stopped robot may move, by the names of ways; none without `escape`.

    Raises
    ------
    ConfigErrors
        If an expression is none, or rests on signals that may be old.
    """
    conditions = {} if spec.escape is None else spec.escape.conditions
    found, errors = dict[str, FreshCondition](), list[InputError]()
    for name, text in conditions.items():
        try:
            found[name] = _condition(spec, abstraction, name, text)
        except ConfigErrors as error:
            errors += error.errors
    if errors:
        raise ConfigErrors(errors)
    return found


def _condition(spec: MonitorSpec, abstraction: Abstraction, way: str, text: str) -> FreshCondition:
    signals, key = abstraction.signals, f"{KEY}.{way}.when"
    if way == TURN and text.lower() == ALWAYS:
        return FreshCondition(ALWAYS, (), (), by_platform=False)
    errors: list[InputError] = []
    try:
        expression = parse_expression(text)
        names = tuple(sorted(expression.names))
        compile_expression(expression, signals)
    except ExpressionError as error:
        raise ConfigErrors([error.located(file=spec.file, key=key)]) from None
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
    slots = tuple(map(signals.index, names))
    return FreshCondition(text, names, slots, _by_platform(abstraction, names, expression))


def _needed(abstraction: Abstraction, names: Sequence[str]) -> list[str]:
    """Return signals, and all that they are computed from."""
    signals = abstraction.signals
    needs = {one.name: [signals[slot] for slot in one.arguments] for one in abstraction.derived}
    found, waiting = dict[str, None](), list(names)
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found[name] = None
            waiting += needs.get(name, ())
    return list(found)


def _old(abstraction: Abstraction, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what may be old of all that an expression rests on, and what would be accepted."""
    needed = _needed(abstraction, names)
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
            said = "never" if source.timeout_ns < 0 else f"{source.timeout_ns / NANOSECONDS:g}"
            yield (
                f"rests on {source.name}, whose timeout is {said}",
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


def _by_platform(abstraction: Abstraction, names: Sequence[str], own: Any) -> bool:
    needed = _needed(abstraction, names)
    derived = (one.expression for one in abstraction.derived if one.name in needed)
    arriving = (one for one in abstraction.sources if one.name in needed)
    return any(one.by_platform for one in (own, *derived, *arriving))
