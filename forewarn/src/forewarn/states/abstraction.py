"""From a snapshot of signals to what is known of the state, whatever a state is.

A kind of state gives its `StateSpace`, and a function from the values of all signals to what one
tick shows. All else is the same for every kind: derived signals, phases, the action, which
conditions the type of processor may decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from forewarn.config import MonitorSpec
from forewarn.expressions import Expression, Unknown
from forewarn.signals.clock import Clock
from forewarn.signals.feed import Failure, Snapshot
from forewarn.signals.sources import SourceSignal, stored_value
from forewarn.states.interface import Admission, Observed, StateSpace

STATES = "states"
PHASES = ("active_when", "intervened_when")


class Seen(NamedTuple):
    """What a snapshot shows.

    Attributes
    ----------
    observation : Observed
        What is known of the state.
    alone : Observed
        The same from this tick only, for the one that follows; the same where nothing is
        remembered.
    values : list
        Values of all signals in slot order; None where unknown.
    failures : tuple of Failure
        Derived signals and conditions that have no value although all they need is known.
    """

    observation: Observed
    alone: Observed
    values: list[Any]
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class DerivedSignal:
    """A signal computed from others, whose slots in the value list are `arguments`."""

    name: str
    expression: Expression
    arguments: tuple[int, ...]
    function: Callable[[Sequence[Any]], Any]


@dataclass(frozen=True)
class Abstraction:
    """The signals and states of one monitor file, compiled.

    Attributes
    ----------
    vocabulary : StateSpace
        The states.
    sources, derived : tuple
        Signals in the order of their slots: sources first, derived ones in order of evaluation.
    clock : Clock
        What a moment is.
    digest : str
        SHA-256 over everything a learned model depends on: what was fitted, if anything was, and
        the declared atoms too.
    evaluate : callable
        From the values of all signals to what the tick shows by itself, an `Observed`.
    remembers : bool
        A state also tells of the tick before; see `joined`.
    conditions : dict
        Key path and expression of all that tells states apart.
    phases : dict
        The expressions of ``active_when`` and ``intervened_when``, as far as there are any.
    action : DerivedSignal or None
        What names the action.
    grown : tuple of str
        Beginnings of the digests of recordings that the states were learned from, as far as known.
    rebuild : callable or None
        Makes the same abstraction in another process, where compiled functions cannot go.
    """

    vocabulary: StateSpace
    sources: tuple[SourceSignal, ...]
    derived: tuple[DerivedSignal, ...]
    clock: Clock
    digest: str
    evaluate: Callable[[Sequence[Any]], Any]
    remembers: bool = False
    conditions: Mapping[str, Expression] = field(default_factory=dict)
    phases: Mapping[str, Expression] = field(default_factory=dict)
    action: DerivedSignal | None = None
    grown: tuple[str, ...] = ()
    rebuild: Callable[[], Abstraction] | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Let the abstraction be built again where it arrives."""
        if self.rebuild is None:
            raise TypeError("an abstraction travels only as `forewarn.states.kinds` built it")
        return self.rebuild, ()

    def validity(self, spec: MonitorSpec) -> Admission:
        """Return which states and transitions are valid; raises ConfigError."""
        raise NotImplementedError

    def joined(self, previous: Any, current: Any) -> Any:
        """Return what is observed where a state `remembers`.

        Parameters
        ----------
        previous : Observed or None
            What the tick before showed by itself; None at the start of a run.
        current : Observed
            What this tick shows by itself.
        """
        raise NotImplementedError

    def undecided(self, values: Sequence[Any], observation: Any) -> list[tuple[str, str]]:
        """Return the conditions that are unknown although all their signals have a value.

        Parameters
        ----------
        values : sequence
            Values of all signals in slot order.
        observation : Observed
            What `evaluate` made of them.

        Returns
        -------
        list of (str, str)
            Key paths in the monitor file, with the reason.
        """
        return []

    def differing(self, one: Any, other: Any) -> Iterator[set[str]]:
        """Yield sets of key paths, one of which differs in two observations."""
        if one != other:
            yield {*self.conditions, *self.phases}

    def resolve(self, atom: str) -> tuple[str, bool] | None:
        """Return the name that `atom` of a formula stands for, and whether it is negated."""
        return (atom, False) if atom in self.vocabulary.atoms else None

    @property
    def signals(self) -> tuple[str, ...]:
        """Return the names of all signals in slot order."""
        return (*(s.name for s in self.sources), *(d.name for d in self.derived))

    @cached_property
    def deciding(self) -> frozenset[str]:
        """Signals that tell states apart, without those that they are derived from."""
        names = {name for condition in self.conditions.values() for name in condition.names}
        return frozenset(names & {*self.signals})

    @cached_property
    def by_platform(self) -> frozenset[str]:
        """Key paths of the conditions that the type of processor may decide, by a last bit."""
        marked = {
            source.name
            for source in self.sources
            if source.expression is not None and source.expression.by_platform
        }
        for signal in self.derived:
            if signal.expression.by_platform or signal.expression.names & marked:
                marked.add(signal.name)
        found = set[str]()
        for key, expression in {**self.conditions, **self.phases}.items():
            if expression.by_platform or expression.names & marked:
                found.add(key)
                marked.add(key.removeprefix("predicates."))
        return frozenset(found)

    def observe(self, snapshot: Snapshot, previous: Observed | None) -> Seen:
        """Return what the snapshot of one tick shows.

        Parameters
        ----------
        snapshot : Snapshot
            The source signals.
        previous : Observed or None
            What the tick before gave `alone`; None at the start of a run.
        """
        values, failed = self.complete(snapshot.values)
        alone = self.evaluate(values)
        if alone.state is None or alone.active is None or alone.intervened is None:
            failed += self.undecided(values, alone)
        observation = self.joined(previous, alone) if self.remembers else alone
        return Seen(observation, alone, values, tuple(map(Failure._make, failed)) if failed else ())

    def done(self, values: Sequence[Any]) -> tuple[str | None, str]:
        """Return the name of what is done, None if unknown, and why it could not be had."""
        if self.action is None:
            return None, ""
        arguments = [values[slot] for slot in self.action.arguments]
        if any(argument is None for argument in arguments):
            return None, ""
        raw = self.action.function(arguments)
        if isinstance(raw, str):
            return raw, ""
        return None, raw.reason if isinstance(raw, Unknown) else f"{raw!r} is no text"

    def complete(self, sources: Sequence[Any]) -> tuple[list[Any], list[tuple[str, str]]]:
        """Append the derived signals to the values of the sources.

        Returns
        -------
        values : list
            Values of all signals in slot order; None where unknown.
        failures : list of (str, str)
            Derived signals whose inputs are known and which still have no value, with the reason.
        """
        values, failures = list(sources), []
        for signal in self.derived:
            arguments = [values[slot] for slot in signal.arguments]
            value: Any = None
            if not any(a is None for a in arguments):
                raw = signal.function(arguments)
                value = stored_value(raw)
                if value is None:
                    reason = raw.reason if isinstance(raw, Unknown) else "the result is NaN"
                    failures.append((signal.name, reason))
            values.append(value)
        return values, failures
