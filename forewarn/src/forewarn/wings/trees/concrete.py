"""Concrete states: what the variables of a tree are worth, and what conditions say of that."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from forewarn.errors import ConfigError
from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.models.trie import Concrete

Condition = Callable[[Concrete], bool | None]


def concrete(values: Mapping[str, Any], names: Sequence[str]) -> Concrete:
    """Return the concrete state of some variables, in a form that can be a key."""
    return tuple(_hashable(values[name]) for name in names)


def _hashable(value: Any) -> Hashable:
    items = value.tolist() if isinstance(value, np.ndarray) else value
    return tuple(map(_hashable, items)) if isinstance(items, list) else items


def condition_of(text: str, variables: Sequence[str]) -> Condition:
    """Return what tells whether a condition holds in a concrete state; None where it is unknown.

    Raises ConfigError if the condition asks about something that is no variable.
    """
    expression = parse_expression(text)
    names = sorted(expression.names)
    for name in names:
        if name not in variables:
            raise ConfigError(
                f"the tree asks about {name!r}, which is no variable",
                key="states.variables",
                accepted=", ".join(variables),
            )
    places = [variables.index(name) for name in names]
    evaluate = compile_expression(expression, names)

    def holds(state: Sequence[Any]) -> bool | None:
        values: list[Any] = []
        for place in places:
            value = state[place]
            if value is None:
                return None
            values.append(list(value) if isinstance(value, tuple) else value)
        found = evaluate(values)
        return None if isinstance(found, Unknown) or found != found else bool(found)

    return holds
