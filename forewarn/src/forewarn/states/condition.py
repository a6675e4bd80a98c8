"""Conditions over signals that the step asks beside the state.

Some let something move: they must be known for certain, and from what arrived just now. Predicates
may remember, hold an old value, or start with a default, and a part that is unknown may not matter
to them. There all that would open a way on old or missing knowledge is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from forewarn.errors import ConfigError, ConfigErrors, ExpressionError, InputError
from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.syntax import Expression, parse_expression
from forewarn.expressions.values import Unknown
from forewarn.signals.clock import NANOSECONDS

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.states.abstraction import Abstraction


@dataclass(frozen=True)
class Condition:
    """An expression over signals whose truth is known only if all of them are."""

    text: str  # the expression
    names: tuple[str, ...]  # the signals that it reads; none if it always holds
    slots: tuple[int, ...]  # where their values lie among those of all signals
    by_platform: bool  # another type of processor may find otherwise, by a last bit

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind the compiled function, which cannot travel."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def _function(self) -> Any:
        return compile_expression(parse_expression(self.text), self.names)

    def truth(self, values: Sequence[Any]) -> tuple[bool | None, str]:
        """Return whether it holds, None if that is unknown, and why it is.

        `values`: values of all signals in slot order; None where unknown.
        """
        given = [values[slot] for slot in self.slots]
        missing = [name for name, value in zip(self.names, given, strict=True) if value is None]
        if missing:
            return None, f"{', '.join(missing)} is unknown"
        found = self._function(given)
        if found is True or found is False:
            return found, ""
        why = found.reason if isinstance(found, Unknown) else "it gives no truth value"
        return None, f"{self.text} is unknown: {why}"

    def denial(self, values: Sequence[Any]) -> str:
        """Return why it does not hold; empty if it holds."""
        holds, why = self.truth(values)
        return why if holds is None else "" if holds else f"{self.text} is false"


def parsed(spec: MonitorSpec, abstraction: Abstraction, key: str, text: str) -> Expression:
    """Return the expression of a condition at a key path; raises ConfigErrors."""
    try:
        expression = parse_expression(text)
        compile_expression(expression, abstraction.signals)
    except ExpressionError as error:
        raise ConfigErrors([error.located(file=spec.file, key=key)]) from None
    return expression


def compiled_condition(abstraction: Abstraction, expression: Expression, text: str) -> Condition:
    """Return a condition that was parsed."""
    names = tuple(sorted(expression.names))
    slots = tuple(map(abstraction.signals.index, names))
    return Condition(text, names, slots, _by_platform(abstraction, names, expression))


def rests_on(abstraction: Abstraction, names: Sequence[str]) -> list[str]:
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


def hold_conditions(spec: MonitorSpec, abstraction: Abstraction) -> dict[str, Condition]:
    """Return the conditions that hold interventions, by the properties that have one.

    Raises ConfigErrors if an expression is no condition, or another type of processor may decide it
    otherwise.
    """
    found, errors = dict[str, Condition](), list[InputError]()
    for name, section in spec.properties.items():
        if section.hold_while is None:
            continue
        key = f"properties.{name}.hold_while"
        try:
            expression = parsed(spec, abstraction, key, section.hold_while)
        except ConfigErrors as error:
            errors += error.errors
            continue
        found[name] = compiled_condition(abstraction, expression, section.hold_while)
        if found[name].by_platform:
            errors.append(
                ConfigError(
                    f"{section.hold_while!r} may differ in a last bit on another type of processor",
                    file=spec.file,
                    key=key,
                    accepted="signals and functions that give the same bits everywhere, as "
                    "+ - * / min max abs sqrt do",
                )
            )
    if errors:
        raise ConfigErrors(errors)
    return found


def _by_platform(abstraction: Abstraction, names: Sequence[str], own: Expression) -> bool:
    needed = rests_on(abstraction, names)
    derived = any(s.expression.by_platform for s in abstraction.derived if s.name in needed)
    arriving = any(s.by_platform for s in abstraction.sources if s.name in needed)
    return own.by_platform or derived or arriving


KEY = "actuators.twist.escape"
TURN, ALWAYS = "turn", "true"
FRESH = 1.0
"""Seconds: the longest timeout of a signal on which such a condition may rest."""


def clear_ways(spec: MonitorSpec, abstraction: Abstraction) -> dict[str, Condition]:
    """Return when a stopped robot may move, by the names of ways; none without `escape`.

    Raises ConfigErrors if an expression is no condition, or rests on signals that may be old.
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
