"""The abstraction of a monitor file: from a snapshot of signals to a state.

`build_abstraction` resolves the names of a monitor file once; `Abstraction.observe` then turns the
snapshot of one tick into what is known of the state, without clock or input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from forewarn.config import MonitorSpec
from forewarn.expressions import Expression, Unknown, normal_form, parse_expression
from forewarn.expressions.syntax import shown
from forewarn.signals.feed import Failure, Snapshot
from forewarn.signals.sources import SourceSignal, plain
from forewarn.states.interface import terminal_code
from forewarn.states.predicates.comparisons import Comparison, as_comparison
from forewarn.states.predicates.validity import Validity, build_validity
from forewarn.states.vocabulary import Observation, Vocabulary


class Seen(NamedTuple):
    """What a snapshot shows.

    Attributes
    ----------
    observation : Observation
        What is known of the state.
    alone : Observation
        The same from this tick only, for the one that follows; without ``history: 2`` the same.
    values : list
        Values of all signals in slot order; None where unknown.
    failures : tuple of Failure
        Derived signals and conditions that have no value although all they need is known.
    """

    observation: Observation
    alone: Observation
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
    """Signals, predicates and terminal labels of one monitor file, compiled.

    Attributes
    ----------
    vocabulary : Vocabulary
        Predicates (declared, from `bins`, from inline comparisons) and terminal labels.
    sources, derived : tuple
        Signals in the order of their slots: sources first, derived ones in order of evaluation.
    predicates : tuple of Expression
        One for each predicate of the vocabulary.
    comparisons : dict
        Predicate index of every comparison of a signal with a number.
    rate : float
        Ticks per second.
    digest : str
        SHA-256 over everything a learned model depends on.
    evaluate : callable
        From the values of all signals to the observation of the tick alone.
    remembers : bool
        ``history: 2``: a state also holds the predicates of the tick before, whose names in the
        vocabulary end in ``@-1``.
    terminals : tuple of Expression
        One for each terminal label.
    phases : dict
        The expressions of ``active_when`` and ``intervened_when``, as far as there are any.
    action : DerivedSignal or None
        What names the action.
    """

    vocabulary: Vocabulary
    sources: tuple[SourceSignal, ...]
    derived: tuple[DerivedSignal, ...]
    predicates: tuple[Expression, ...]
    comparisons: Mapping[Comparison, int]
    rate: float
    digest: str
    evaluate: Callable[[Sequence[Any]], Observation]
    remembers: bool = False
    terminals: tuple[Expression, ...] = ()
    phases: Mapping[str, Expression] = field(default_factory=dict)
    action: DerivedSignal | None = None

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
        conditions = {
            **{
                f"predicates.{name}": expression
                for name, expression in zip(
                    self.vocabulary.predicates, self.predicates, strict=False
                )
            },
            **{
                f"terminal.{name}": expression
                for name, expression in zip(self.vocabulary.terminals, self.terminals, strict=True)
            },
            **self.phases,
        }
        found = set[str]()
        for key, expression in conditions.items():
            if expression.by_platform or expression.names & marked:
                found.add(key)
                marked.add(key.removeprefix("predicates."))
        return frozenset(found)

    @property
    def signals(self) -> tuple[str, ...]:
        """Return the names of all signals in slot order."""
        return (*(s.name for s in self.sources), *(d.name for d in self.derived))

    def observe(self, snapshot: Snapshot, previous: Observation | None) -> Seen:
        """Return what the snapshot of one tick shows.

        Parameters
        ----------
        snapshot : Snapshot
            The source signals.
        previous : Observation or None
            What the tick before gave `alone`; None at the start of a run.
        """
        values, failed = self.complete(snapshot.values)
        alone = self.evaluate(values)
        if alone.state is None or alone.active is None or alone.intervened is None:
            failed += self.undecided(values, alone)
        observation = self._with_past(previous, alone) if self.remembers else alone
        return Seen(observation, alone, values, tuple(map(Failure._make, failed)) if failed else ())

    def _with_past(self, previous: Observation | None, current: Observation) -> Observation:
        """Return `current` with the predicate values of the tick before in its upper bits.

        At the start of a run, and after a terminal label or an inactive phase, there is no tick
        before: the present values stand in.
        """
        if current.ended:
            return current
        if previous is None or previous.active is False or previous.ended:
            previous = current
        width = len(self.predicates)
        # Where a terminal label may have held, the predicates of that tick say nothing.
        before = 0 if previous.open_terminals and previous is not current else previous.known
        known = current.known | before << width
        mask = (current.mask & current.known) | (previous.mask & before) << width
        complete = known == (1 << 2 * width) - 1 and not current.open_terminals
        return current._replace(state=mask if complete else None, known=known, mask=mask)

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
                value = plain(raw)
                if value is None:
                    reason = raw.reason if isinstance(raw, Unknown) else "the result is NaN"
                    failures.append((signal.name, reason))
            values.append(value)
        return values, failures

    def undecided(self, values: Sequence[Any], observation: Observation) -> list[tuple[str, str]]:
        """Return the conditions that are unknown although all their signals have a value.

        Parameters
        ----------
        values : sequence
            Values of all signals in slot order.
        observation : Observation
            What `evaluate` made of them.

        Returns
        -------
        list of (str, str)
            Key paths in the monitor file, with the reason: text against a number, say, an array
            where one number is wanted, or NaN.
        """
        signals = dict(zip(self.signals, values, strict=True))
        unknown = dict(self._unknown(observation))
        found = []
        for key, expression in unknown.items():
            inputs = {n: signals[n] for n in sorted(expression.names) if n in signals}
            inherited = any(f"predicates.{n}" in unknown for n in expression.names - inputs.keys())
            if not inherited and not any(value is None for value in inputs.values()):
                where = ", ".join(f"{name} is {_what(value)}" for name, value in inputs.items())
                reason = f"{shown(expression.source)} is neither true nor false where {where}"
                found.append((key, f"{reason}: a number compares with a number, text with text"))
        return found

    def _unknown(self, observation: Observation) -> Iterator[tuple[str, Expression]]:
        for index, expression in enumerate(self.predicates):
            if not observation.known >> index & 1:
                yield f"predicates.{self.vocabulary.predicates[index]}", expression
        for index, expression in enumerate(self.terminals):
            if observation.open_terminals >> index & 1:
                yield f"terminal.{self.vocabulary.terminals[index]}", expression
        for key, expression in self.phases.items():
            if getattr(observation, key.removesuffix("_when")) is None:
                yield key, expression

    def validity(self, spec: MonitorSpec) -> Validity:
        """Return which states and transitions are valid; raises ConfigError."""
        return build_validity(spec, self)

    def differing(self, one: Observation, other: Observation) -> Iterator[set[str]]:
        """Yield the key paths of each condition that differs; all terminal labels are one."""
        vocabulary = self.vocabulary
        unlike = (one.known ^ other.known) | ((one.mask ^ other.mask) & one.known & other.known)
        for i in range(len(self.predicates)):
            if unlike >> i & 1:
                yield {f"predicates.{vocabulary.predicates[i]}"}
        labels = one.open_terminals ^ other.open_terminals
        found = {
            i
            for i in range(len(vocabulary.terminals))
            if labels >> i & 1
            or (one.state == terminal_code(i)) != (other.state == terminal_code(i))
        }
        if found:
            yield {f"terminal.{vocabulary.terminals[i]}" for i in found}
        for key in ("active", "intervened"):
            if getattr(one, key) != getattr(other, key):
                yield {f"{key}_when"}

    def resolve(self, atom: str) -> tuple[str, bool] | None:
        """Return the vocabulary name that `atom` stands for, and whether it is negated."""
        if atom in self.vocabulary.predicates or atom in self.vocabulary.terminals:
            return atom, False
        expression = parse_expression(atom)
        comparison = as_comparison(expression.tree)
        if comparison is not None:
            for candidate, negated in ((comparison, False), (comparison.negated(), True)):
                index = self.comparisons.get(candidate)
                if index is not None:
                    return self.vocabulary.predicates[index], negated
        form = normal_form(expression)
        # With history the vocabulary goes on with the names of the tick before.
        for name, predicate in zip(self.vocabulary.predicates, self.predicates, strict=False):
            if normal_form(predicate) == form:
                return name, False
        return None


def _what(value: object) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | int | float):
        return "infinite" if math.isinf(value) else "a number"
    return "an array"
