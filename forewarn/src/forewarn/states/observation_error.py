"""How often predicates are read wrongly: ``observation_error`` of the monitor file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forewarn.errors import ConfigError, ConfigErrors, InputError
from forewarn.states.interface import PREDICATES

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.states.abstraction import Abstraction


def observation_errors(
    spec: MonitorSpec, abstraction: Abstraction
) -> tuple[tuple[int, float], ...]:
    """Return the predicates that may be read wrongly, by number, and how probable that is.

    Raises ConfigErrors for each name that is no predicate, and where states are not vectors of
    predicates.
    """
    found: dict[int, float] = {}
    errors: list[InputError] = []
    for name, probability in (spec.observation_error or {}).items():
        numbers = _numbers(spec, abstraction, name)
        if not numbers:
            errors.append(_refused(spec, abstraction, name))
        elif probability:
            found |= dict.fromkeys(numbers, probability)
    if errors:
        raise ConfigErrors(errors)
    return tuple(sorted(found.items()))


def _numbers(spec: MonitorSpec, abstraction: Abstraction, name: str) -> list[int]:
    """Return the predicates that a key means: one, or all cuts of a signal of `bins`."""
    if spec.states.kind != PREDICATES:
        return []
    predicates = abstraction.vocabulary.present
    cuts = [abstraction.vocabulary.cut(predicate) for predicate in predicates]
    if name in spec.bins:
        return [i for i, cut in enumerate(cuts) if cut is not None and cut[0] == name]
    return [i for i, predicate in enumerate(predicates) if predicate == name]


def _refused(spec: MonitorSpec, abstraction: Abstraction, name: str) -> ConfigError:
    key = f"observation_error.{name}"
    if spec.states.kind != PREDICATES:
        return ConfigError(
            f"states of the kind {spec.states.kind} have no predicate that is read by itself",
            file=spec.file,
            key=key,
            accepted="observation_error where states are predicates",
        )
    known = (*abstraction.vocabulary.present, *spec.bins)
    problem = "terminal labels are not read wrongly" if name in spec.terminal else "no predicate"
    return ConfigError(
        f"{name!r}: {problem}",
        file=spec.file,
        key=key,
        accepted=", ".join(known) or "none is there",
    )
