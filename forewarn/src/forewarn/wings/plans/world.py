"""What is known of objects while a plan is carried out, step by step."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import InputError, plural

MOST_STEPS = 200_000
MOST_OBJECTS = 20_000
MOST_FACTS = 1_000_000

Scalar = bool | float | str
Fact = tuple[str, ...]
"""A relation and its objects: ``("inside", "fork", "microwave")``; one object: a property."""


class PlanError(InputError):
    """A plan, or rules about plans, cannot be read."""


class State(NamedTuple):
    """All that is known at one moment: the facts that hold, and values of (property, object).

    Of the relations and properties in `known` something is said, be it that they do not hold.
    """

    facts: frozenset[Fact] = frozenset()
    values: Mapping[tuple[str, str], Scalar] = {}
    known: frozenset[str] = frozenset()


NOTHING = State()


class Step(NamedTuple):
    """An action with its arguments, and the state after it where the plan says so.

    One that `failed` was tried and did not succeed: it has no effect.
    """

    action: str
    arguments: tuple[str, ...] = ()
    failed: bool = False
    state: State | None = None

    def __str__(self) -> str:
        return f"{self.action}({', '.join(self.arguments)})"


@dataclass(frozen=True)
class Plan:
    """A finite plan, or one way in which a behaviour tree may go.

    `fields` is what else the file says of it: model, kind of prompt, success, tokens ...
    """

    name: str
    steps: tuple[Step, ...]
    initial: State = NOTHING
    types: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def objects(self) -> dict[str, str]:
        """Type of each object that the plan names anywhere; one without a type is its own."""
        # In the same order each time: which object is named first must not depend on the process.
        stated = {name for fact in self._facts() for name in fact[1:]}
        found = dict.fromkeys(sorted(stated), "")
        for step in self.steps:
            found.update(dict.fromkeys(step.arguments, ""))
        found.update(self.types)
        if len(found) > MOST_OBJECTS:
            raise PlanError(
                f"has {len(found)} objects", key=self.name, accepted=f"at most {MOST_OBJECTS}"
            )
        return {name: kind or type_in(name) for name, kind in found.items()}

    def _facts(self) -> Iterator[Fact]:
        for state in (self.initial, *(step.state for step in self.steps if step.state)):
            yield from state.facts
            yield from (("", owner) for _, owner in state.values)


def type_in(name: str) -> str:
    """Return the type that a name tells: ``Bowl|-02.77|+00.72``, ``fridge_305``, ``bowl2``."""
    head = name.split("|", 1)[0]
    return head.rstrip("0123456789").rstrip("_.- ") or head


_SAME = {
    "ison": "on", "istoggled": "on", "toggled": "on", "isopen": "open", "isbroken": "broken",
    "isdirty": "dirty", "issliced": "sliced", "iscooked": "cooked", "ishot": "hot",
    "isfilledwithliquid": "filled", "filledwithliquid": "filled", "isfilled": "filled",
    "ispickedup": "held", "pickedup": "held", "parentreceptacles": "inside", "holds": "holding",
}  # fmt: skip


def folded(name: str) -> str:
    """Return the name of a relation or property as all its spellings share it."""
    name = name.casefold()
    return _SAME.get(name, name)


class Effect(NamedTuple):
    """A fact with patterns in it: parameters, ``*`` for any object, or names of objects."""

    relation: str
    arguments: tuple[str, ...]


class Description(NamedTuple):
    """What an action does; `bind` has variables for each object of which a fact holds before it."""

    parameters: tuple[str, ...]
    adds: tuple[Effect, ...] = ()
    removes: tuple[Effect, ...] = ()
    bind: Mapping[str, Effect] = {}


Descriptions = Mapping[str, Description]


class Timeline:
    """When one thing changed: positions, growing, and the values from there on."""

    __slots__ = ("positions", "values")

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.values: list[Scalar | None] = []

    def set(self, position: int, value: Scalar | None) -> None:
        """Let `value` hold from `position` on."""
        if self.positions and self.positions[-1] == position:
            self.values[-1] = value
        elif not self.values or self.values[-1] != value:
            self.positions.append(position)
            self.values.append(value)

    def at(self, position: int) -> Scalar | None:
        """Return the value at a position, None before the first."""
        index = bisect_right(self.positions, position) - 1
        return self.values[index] if index >= 0 else None


class History:
    """What holds at each of `length` positions: 0 before the first step, k after step k.

    `known` relations are those that something says anything about. `strange` are actions that
    nothing describes, or not with so many arguments; `unsure`, shape (length,), tells where what
    holds is not known because such an action came before.
    """

    def __init__(
        self, plan: Plan, descriptions: Descriptions | None = None, declared: Collection[str] = ()
    ) -> None:
        self.plan = plan
        self.length = len(plan.steps) + 1
        self.types = {name: kind.casefold() for name, kind in plan.objects.items()}
        self.facts: dict[str, dict[tuple[str, ...], Timeline]] = defaultdict(dict)
        self.values: dict[tuple[str, str], Timeline] = {}
        self.known = {folded(name) for name in declared}
        self.strange: tuple[str, ...] = ()
        self.unsure = np.zeros(self.length, dtype=bool)
        self._changes = 0
        self._now: set[Fact] = set()
        self._become(plan.initial, 0)
        self._play(descriptions)
        self.named: dict[str, list[str]] = defaultdict(list)
        for name, kind in self.types.items():
            for key in {name.casefold(), kind, type_in(name).casefold()}:
                self.named[key].append(name)

    def _play(self, descriptions: Descriptions | None) -> None:
        strange: dict[str, None] = {}
        for description in (descriptions or {}).values():
            effects = (*description.adds, *description.removes)
            self.known.update(effect.relation for effect in effects)
        unsure = False
        for position, step in enumerate(self.plan.steps, 1):
            if step.state is not None:
                self._become(step.state, position)
                unsure = False
            elif not step.failed:
                known = self._description(descriptions or {}, step)
                if known is None:
                    strange[_call_of(descriptions or {}, step)] = None
                    unsure = True
                else:
                    self._apply(known, step, position)
            self.unsure[position] = unsure
        self.strange = tuple(strange)

    @staticmethod
    def _description(descriptions: Descriptions, step: Step) -> Description | None:
        name = step.action.casefold()
        found = descriptions.get(name)
        if found is not None and not (found.parameters or found.adds or found.removes):
            return found  # what does nothing does so with any arguments
        # No part of a step says what it does, and a variable stands for any object.
        if any(map(is_variable, step.arguments)):
            return None
        return descriptions.get(f"{name}/{len(step.arguments)}")

    def _become(self, state: State, position: int) -> None:
        self.known |= state.known
        for fact in self._now - state.facts:
            self._set(fact, position, False)
        for fact in state.facts - self._now:
            self._set(fact, position, True)
        for key in [key for key in self.values if key not in state.values]:
            self._value(key, position, None)
        for key, value in state.values.items():
            self._value(key, position, value)

    def _value(self, key: tuple[str, str], position: int, value: Scalar | None) -> None:
        self.known.add(key[0])
        timeline = self.values.get(key)
        if timeline is None:
            timeline = self.values[key] = Timeline()
        timeline.set(position, value)

    def _set(self, fact: Fact, position: int, holds: bool) -> None:
        self._changes += 1
        if self._changes > MOST_FACTS:
            raise PlanError(
                "facts change too often", key=self.plan.name, accepted=f"at most {MOST_FACTS} times"
            )
        (self._now.add if holds else self._now.discard)(fact)
        self.known.add(fact[0])
        timeline = self.facts[fact[0]].get(fact[1:])
        if timeline is None:
            timeline = self.facts[fact[0]][fact[1:]] = Timeline()
        timeline.set(position, holds)

    def _apply(self, description: Description, step: Step, position: int) -> None:
        given: dict[str, tuple[str, ...]] = {
            name: (step.arguments[at],) if at < len(step.arguments) else ()
            for at, name in enumerate(description.parameters)
        }
        for variable, effect in description.bind.items():
            place = effect.arguments.index(variable)
            bound = self._matching(effect, given, {variable})
            given[variable] = tuple(sorted(fact[place + 1] for fact in bound))
        removed = {
            fact for effect in description.removes for fact in self._matching(effect, given, set())
        }
        added = {fact for effect in description.adds for fact in _instances(effect, given)}
        for fact in removed - added:
            self._set(fact, position, False)
        for fact in added - self._now:
            self._set(fact, position, True)

    def _matching(
        self, effect: Effect, given: Mapping[str, tuple[str, ...]], free: set[str]
    ) -> list[Fact]:
        choices = [
            None if name == "*" or name in free else given.get(name, (name,))
            for name in effect.arguments
        ]
        timelines = self.facts.get(effect.relation, {})
        if None not in choices:
            return [fact for fact in _instances(effect, given) if fact in self._now]
        return [
            (effect.relation, *arguments)
            for arguments, timeline in timelines.items()
            if len(arguments) == len(choices)
            and timeline.values[-1] is True
            and all(c is None or a in c for a, c in zip(arguments, choices, strict=True))
        ]

    def objects(self, name: str) -> Sequence[str]:
        """Return the objects that a name stands for: its own, or those of a type."""
        return self.named.get(name.casefold(), ())

    def truth(self, timelines: Iterable[Timeline]) -> NDArray[np.bool_]:
        """Return where any of the timelines holds, shape (length,)."""
        found = np.zeros(self.length, dtype=bool)
        for timeline in timelines:
            ends = [*timeline.positions[1:], self.length]
            for begin, end, value in zip(timeline.positions, ends, timeline.values, strict=True):
                if value is not False and value is not None and value != 0:
                    found[begin:end] = True
        return found


def is_variable(name: str) -> bool:
    """Tell whether a name stands for an object that is not known: ``{goal}``, ``?x``, ``$x``."""
    return name[:1] in ("?", "$") or (name[:1] == "{" and name[-1:] == "}")


def _call_of(descriptions: Descriptions, step: Step) -> str:
    """Return what nothing describes: an action, or one with such or so many arguments."""
    if step.action.casefold() not in descriptions:
        return step.action
    if any(map(is_variable, step.arguments)):
        return str(step)
    return f"{step.action} with {plural(len(step.arguments), 'argument')}"


def _instances(effect: Effect, given: Mapping[str, tuple[str, ...]]) -> list[Fact]:
    found: list[Fact] = [(effect.relation,)]
    for name in effect.arguments:
        found = [(*fact, one) for fact in found for one in given.get(name, (name,))]
    return found
