"""Calls that remember become signals of their own, which everything else reads like any other."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from forewarn.errors import ExpressionError
from forewarn.expressions.comparisons import number
from forewarn.expressions.compiler import read_names
from forewarn.expressions.functions import FUNCTIONS
from forewarn.expressions.functions.memory import MOST_MOMENTS, Memory
from forewarn.expressions.syntax import Expression, bound_names, called, position, shown

if TYPE_CHECKING:
    from forewarn.signals.clock import Clock


class Remembered(NamedTuple):
    """A call that remembers."""

    memory: Memory  # what it remembers
    argument: Expression  # of what, with signals for the calls in it that remember
    key: str  # where the monitor file has it first


class Remembering:
    """Collects the calls that remember of one monitor file.

    `signals`: by the text of the call, which is the name of its signal. Those within the argument
    of another one come first.
    """

    def __init__(self, clock: Clock) -> None:
        self.signals: dict[str, Remembered] = {}
        self._clock = clock

    def replaced(
        self,
        expression: Expression,
        key: str,
        predicates: Mapping[str, Expression],
        signals: Collection[str],
    ) -> Expression:
        """Return an expression in which a name stands for each call that remembers.

        `expression`: what the monitor file says.
        `key`: where.
        `predicates`: predicates that the arguments may name, replaced already.
        `signals`: other names that they may read.
        Raises ExpressionError for a window that is not valid, and for arguments that cannot be
        followed over time.
        """
        if not expression.remembers:
            return expression
        tree = _Replacing(self, expression, key, predicates, signals).visit(
            copy.deepcopy(expression.tree)
        )
        return _expression(expression, tree, self.signals)

    def memory(self, source: str, node: ast.Call) -> Memory:
        """Return what a call remembers; raises ExpressionError if its window is wrong."""
        name, clock = called(node), self._clock
        if len(node.args) == 1:
            return Memory(name, 0, clock.rate)
        window = number(node.args[1])
        least, most = clock.duration(1), clock.duration(MOST_MOMENTS)
        fits = window is not None and least <= window + 1e-9 and window <= most
        if not fits or (not clock.timed and window != round(window or 0)):
            raise ExpressionError(
                f"{position(source, node)}: {ast.unparse(node.args[1])!r} is no window of {name}() "
                f"in {shown(source)}",
                accepted=f"{'a' if clock.timed else 'a whole'} number of {clock.unit} from "
                f"{least:g} to {most:g}",
            )
        assert window is not None
        return Memory(name, clock.ticks(window), clock.rate)


class _Replacing(ast.NodeTransformer):
    """Puts a name in place of each call that remembers, the innermost first."""

    def __init__(
        self,
        found: Remembering,
        expression: Expression,
        key: str,
        predicates: Mapping[str, Expression],
        signals: Collection[str],
    ) -> None:
        self._found, self._expression, self._key = found, expression, key
        self._predicates, self._signals = predicates, signals
        self._bound = {
            name
            for node in ast.walk(expression.tree)
            if isinstance(node, ast.comprehension)
            for name in bound_names(node.target)
        }

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Replace the call if it remembers; what is in its arguments, anyway."""
        name, source = ast.unparse(node), self._expression.source
        remembers = FUNCTIONS[called(node)].remembers
        self.generic_visit(node)
        if not remembers:
            return node
        for used in sorted(read_names(node.args[0])):
            known = used in self._signals or used in self._found.signals
            if used in self._bound or not (known or used in self._predicates):
                raise ExpressionError(
                    f"{position(source, node)}: {used!r} in {name} is no signal"
                    + (" but one element of many" if used in self._bound else ""),
                    accepted="signals, and predicates that were declared before: "
                    + ", ".join([*sorted(self._signals), *self._predicates]),
                )
        memory = self._found.memory(source, node)
        argument = _Meaning(self._predicates, self._signals).visit(node.args[0])
        read = _expression(self._expression, argument, self._found.signals, self._predicates)
        self._found.signals.setdefault(name, Remembered(memory, read, self._key))
        return ast.copy_location(ast.Name(name, ast.Load()), node)


class _Meaning(ast.NodeTransformer):
    """Puts the expression of a predicate in place of its name."""

    def __init__(self, predicates: Mapping[str, Expression], signals: Collection[str]) -> None:
        self._predicates, self._signals = predicates, signals

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace the name, unless a signal has it."""
        if node.id in self._predicates and node.id not in self._signals:
            inner = copy.deepcopy(self._predicates[node.id].tree)
            found: ast.expr = self.visit(inner)
            return found
        return node


def _expression(
    origin: Expression,
    tree: ast.expr,
    signals: Collection[str],
    predicates: Mapping[str, Expression] | None = None,
) -> Expression:
    """Return the expression of a changed tree; it reads what the tree still names."""
    names = {*origin.names, *signals}
    for predicate in (predicates or {}).values():
        names |= predicate.names
    return Expression(ast.unparse(tree), tree, frozenset(read_names(tree) & names))
