"""The abstraction into predicates: from a snapshot of signals to the vector of their values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forewarn.expressions.comparisons import Comparison, as_comparison
from forewarn.expressions.syntax import Expression, normal_form, parse_expression, shown
from forewarn.states.abstraction import Abstraction
from forewarn.states.interface import terminal_code
from forewarn.states.predicates.validity import Validity, build_validity

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.states.vocabulary import Observation, Vocabulary


@dataclass(frozen=True)
class PredicateAbstraction(Abstraction):
    """Signals, predicates and terminal labels of one monitor file, compiled.

    ``history: 2``: a state also holds the predicates of the tick before, whose names in the
    vocabulary end in ``@-1``.

    `vocabulary`: predicates (declared, from `bins`, from inline comparisons) and terminal labels.
    `comparisons`: predicate index of every comparison of a signal with a number.
    """

    vocabulary: Vocabulary
    predicates: tuple[Expression, ...] = ()  # one for each predicate of the vocabulary
    terminals: tuple[Expression, ...] = ()  # one for each terminal label
    comparisons: Mapping[Comparison, int] = field(default_factory=dict)

    def joined(self, previous: Observation | None, current: Observation) -> Observation:
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

    def undecided(self, values: Sequence[Any], observation: Observation) -> list[tuple[str, str]]:
        """Return the conditions that are unknown although all their signals have a value.

        The reason may be text against a number, an array where one number is wanted, or NaN.
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
