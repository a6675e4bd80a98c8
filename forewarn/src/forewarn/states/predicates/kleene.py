"""Three-valued evaluation of Boolean expressions, compiled to one Python function.

Strong Kleene logic: ``and`` is false as soon as one side is false, whatever the other is. A
comparison is unknown where a signal in it is unknown or one of its sides has no number (NaN).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forewarn.errors import ExpressionError
from forewarn.expressions.comparisons import BY_NODE, as_comparison
from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.syntax import Expression
from forewarn.expressions.values import Unknown
from forewarn.states.interface import terminal_code

Truth = bool | None
Values = Sequence[Any]


def truth(value: object) -> Truth:
    """Return the truth of a scalar; None for NaN, `Unknown` and what is no scalar."""
    if value is True or value is False or value is None:
        return value
    if isinstance(value, Unknown):
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, np.ndarray):
        return bool(value) if value.ndim == 0 else None
    return None if isinstance(value, list | tuple | str) else bool(value)


@dataclass
class KleeneCompiler:
    """Collects expressions and emits the source of one function over a list of values ``v``.

    `predicates`: local variable that holds each predicate defined so far.
    `atom`: makes the function that evaluates what is no ``and``, ``or`` or ``not``; the language of
    expressions by default.
    """

    slots: Mapping[str, int]  # index in ``v`` of every signal
    predicates: dict[str, str] = field(default_factory=dict)
    atom: Callable[[ast.expr], Callable[[Any], Truth]] | None = None
    leaves: list[Callable[[Any], Truth]] = field(default_factory=list)
    temporaries: int = 0

    def emit(self, tree: ast.expr) -> str:
        """Return Python source that evaluates to True, False or None."""
        if isinstance(tree, ast.BoolOp):
            return self._junction(tree)
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
            name = self._temporary()
            return f"(None if ({name} := {self.emit(tree.operand)}) is None else not {name})"
        if self.atom is not None:
            return self._called(self.atom(tree))
        if isinstance(tree, ast.Name) and tree.id in self.predicates:
            return self.predicates[tree.id]
        if isinstance(tree, ast.Name) and tree.id in self.slots:  # else a constant: nan, say
            return f"_truth(v[{self.slots[tree.id]}])"
        comparison = as_comparison(tree)
        if comparison and comparison.signal in self.slots:
            value, name = f"v[{self.slots[comparison.signal]}]", self._temporary()
            return (
                f"(None if type({name} := {value}) not in _numbers "
                f"else {name} {comparison.operator} {comparison.threshold!r})"
            )
        return self._leaf(tree)

    def _junction(self, tree: ast.BoolOp) -> str:
        decisive = "False" if isinstance(tree.op, ast.And) else "True"
        other = "True" if decisive == "False" else "False"
        names = [self._temporary() for _ in tree.values]
        parts = [self.emit(value) for value in tree.values]
        decided = " or ".join(
            f"({n} := {p}) is {decisive}" for n, p in zip(names, parts, strict=True)
        )
        unknown = " or ".join(f"{n} is None" for n in names)
        return f"({decisive} if {decided} else None if {unknown} else {other})"

    def _leaf(self, tree: ast.expr) -> str:
        if isinstance(tree, ast.Compare):
            leaf = self._of_text(tree, self._comparison(tree))
        else:
            operand = self._operand(tree)

            def leaf(values: Values) -> Truth:
                return truth(operand(values))

        return self._called(leaf)

    def _called(self, leaf: Callable[[Any], Truth]) -> str:
        self.leaves.append(leaf)
        return f"leaf{len(self.leaves) - 1}(v)"

    def _of_text(
        self, tree: ast.Compare, otherwise: Callable[[Values], Truth]
    ) -> Callable[[Values], Truth]:
        """Return the short way for a signal against a text, and `otherwise` for all else.

        That is ``tool == 'send'`` where the signal is text, and ``'check' in calls`` where it is a
        list of texts.
        """
        sides, operator = (tree.left, tree.comparators[0]), type(tree.ops[0])
        inside = operator is ast.In
        constant, name = sides if inside else sides[::-1]
        if len(tree.ops) > 1 or not (inside or operator in (ast.Eq, ast.NotEq)):
            return otherwise
        if not (isinstance(constant, ast.Constant) and isinstance(name, ast.Name)):
            return otherwise
        text, slot = constant.value, self.slots.get(name.id)
        if not isinstance(text, str) or slot is None:
            return otherwise

        def among(values: Values) -> Truth:
            value = values[slot]
            if type(value) is list and {*map(type, value)} <= {str}:
                return text in value
            return None if value is None else otherwise(values)

        def equals(values: Values) -> Truth:
            value = values[slot]
            if type(value) is str:
                return (value == text) is (operator is ast.Eq)
            return None if value is None else otherwise(values)

        return among if inside else equals

    def _comparison(self, tree: ast.Compare) -> Callable[[Values], Truth]:
        """Compare the sides one by one, so that a NaN inside a side makes it unknown."""
        if any(type(op) not in BY_NODE for op in tree.ops):
            operand = self._operand(tree)
            return lambda values: truth(operand(values))
        sides = [self._operand(side) for side in (tree.left, *tree.comparators)]
        operators = [BY_NODE[type(op)].holds for op in tree.ops]

        def compare(values: Values) -> Truth:
            numbers = [side(values) for side in sides]
            if any(n is None or isinstance(n, Unknown) or n != n for n in numbers):
                return None
            if len({isinstance(n, str) for n in numbers}) > 1:
                return None  # text is neither equal nor unequal to a number
            for operator, left, right in zip(operators, numbers, numbers[1:], strict=False):
                if not operator(left, right):
                    return False
            return True

        def checked(values: Values) -> Truth:
            try:
                return compare(values)
            except (TypeError, ValueError):
                return None  # a vector, or text against a number: there is no truth value

        return checked

    def _operand(self, tree: ast.expr) -> Callable[[Values], Any]:
        found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        for name in sorted(found & self.predicates.keys() - self.slots.keys()):
            raise ExpressionError(
                f"the predicate {name!r} stands where a number is wanted",
                accepted="predicates joined by and, or, not; signals anywhere",
            )
        names = sorted(found & self.slots.keys())
        expression = Expression(ast.unparse(tree), tree, frozenset(names))
        function = compile_expression(expression, names)
        slots = [self.slots[name] for name in names]

        def operand(values: Values) -> Any:
            arguments = []
            for slot in slots:
                value = values[slot]
                if value is None:
                    return None
                arguments.append(value)
            return function(arguments)

        return operand

    def _temporary(self) -> str:
        self.temporaries += 1
        return f"t{self.temporaries}"

    def compile(self, source: str, name: str) -> Callable[..., Any]:
        """Compile the finished source, which consists of the pieces emitted here only."""
        scope: dict[str, Any] = {"_truth": truth, "_numbers": frozenset({float, int, bool})}
        scope |= {f"leaf{i}": leaf for i, leaf in enumerate(self.leaves)}
        scope["__builtins__"] = {"type": type}
        exec(compile(source, f"<{name}>", "exec"), scope)
        function: Callable[..., Any] = scope[name]
        return function


def compile_test(
    tree: ast.expr, atom: Callable[[ast.expr], Callable[[Any], bool]]
) -> Callable[[Any], bool]:
    """Compile a Boolean expression to a function of whatever the functions of its atoms read."""
    compiler = KleeneCompiler({}, atom=atom)
    source = compiler.emit(tree)
    function: Callable[[Any], bool] = compiler.compile(
        f"def test(v):\n    return {source}\n", "test"
    )
    return function


def observation_source(predicates: int, terminals: int) -> list[str]:
    """Return the lines of a function that turn truth values into the items of an `Observation`.

    The truth values of predicates are in p0, p1, ..., those of terminal labels in e0, e1, ...

    The first terminal label that holds is the state. While an earlier one is unknown, it may be
    either of them.
    """
    everything = (1 << predicates) - 1
    bits = [f"({1 << i} if p{i} else 0)" for i in range(predicates)]
    known = [f"(0 if p{i} is None else {1 << i})" for i in range(predicates)]
    lines = [f"    mask = {' | '.join(bits) or '0'}"]
    values = ", ".join(f"p{i}" for i in range(predicates))
    lines += [
        f"    if None in ({values},):" if predicates else "    if False:",
        f"        known = {' | '.join(known) or '0'}",
        "    else:",
        f"        known = {everything}",
    ]
    unclear = [f"({1 << i} if e{i} is None else 0)" for i in range(terminals)]
    for i in range(terminals):
        lines += [
            f"    {'el' if i else ''}if e{i}:",
            f"        open = {' | '.join(unclear[:i]) or '0'}",
            "        if open:",
            f"            open |= {1 << i}",
            "            return None, known, mask, open, active, intervened, True",
            f"        return {terminal_code(i)}, known, mask, 0, active, intervened, True",
        ]
    lines += [
        f"    open = {' | '.join(unclear) or '0'}",
        f"    state = mask if known == {everything} and not open else None",
        "    return state, known, mask, open, active, intervened, False",
    ]
    return lines
