"""From a checked expression to a Python function over values.

The tree is rewritten so that every operator becomes a call of :mod:`forewarn.expressions.operators`
and every function one of :mod:`forewarn.expressions.functions`; the result is compiled
once. The compiled code sees these functions and its arguments, and no builtins.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from forewarn.errors import ExpressionError, suggestion
from forewarn.expressions import call_trees as trees
from forewarn.expressions import comprehensions, operators
from forewarn.expressions import ragged as segments
from forewarn.expressions.comparisons import COMPARATORS
from forewarn.expressions.functions import CONSTANTS, FUNCTIONS
from forewarn.expressions.functions.effects import set_of
from forewarn.expressions.syntax import Expression, bound_names, called, position
from forewarn.expressions.values import Notes, Unknown, Value, is_unknown, to_value, vector

_BINARY = {
    ast.Add: "_add",
    ast.Sub: "_subtract",
    ast.Mult: "_multiply",
    ast.Div: "_divide",
    ast.FloorDiv: "_floor_divide",
    ast.Mod: "_modulo",
    ast.Pow: "_raise_to",
}
_COMPARISONS = {
    **{entry.node: f"_{entry.name}" for entry in COMPARATORS},
    ast.In: "_contained",
    ast.NotIn: "_not_contained",
}
_UNARY = {ast.USub: "_negative", ast.UAdd: "_positive", ast.Not: "_negate"}


_GLOBALS: dict[str, Any] = {
    "__builtins__": {},
    "_gather": comprehensions.gather,
    "_each": comprehensions.each,
    "_keep": comprehensions.keep,
    "_elements": comprehensions.elements,
    "_vector": lambda *items: vector(items),
    "_chain": operators.chain,
    "_both": operators.both,
    "_either": operators.either,
    "_select": operators.select,
    "_index": operators.index,
    "_cut": operators.cut,
    "_attribute": operators.attribute,
    "_spread": segments.spread,
    "_merge_counts": segments.merge_counts,
    "_one_zero": segments.one_zero,
    "_collect": segments.collect,
    "_reduce_segments": segments.reduce_segments,
    **{
        name: getattr(operators, name[1:])
        for name in (*_BINARY.values(), *_UNARY.values(), "_contained", "_not_contained")
    },
    **{f"_{name}": compare for name, compare in operators.COMPARISONS.items()},
    **{f"_c_{name}": value for name, value in CONSTANTS.items()},
}


def _scope() -> dict[str, Any]:
    """Return all that compiled expressions can name."""
    return _GLOBALS | {f"_f_{name}": function.call for name, function in FUNCTIONS.items()}


def works_elementwise(node: ast.expr) -> bool:
    """Tell whether a tree gives the same for a vector as for its elements one by one."""
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, str)
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.BinOp):
        return works_elementwise(node.left) and works_elementwise(node.right)
    if isinstance(node, ast.UnaryOp):
        return works_elementwise(node.operand)
    if isinstance(node, ast.BoolOp):
        return all(map(works_elementwise, node.values))
    if isinstance(node, ast.IfExp):
        return all(map(works_elementwise, (node.test, node.body, node.orelse)))
    if isinstance(node, ast.Compare):
        return _elementwise_comparison(node)
    if isinstance(node, ast.Call):
        least = FUNCTIONS[called(node)].maps
        enough = least is not None and len(node.args) >= least and not node.keywords
        return enough and all(map(works_elementwise, node.args))
    return False


def _elementwise_comparison(node: ast.Compare) -> bool:
    for operator, value in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, (ast.In, ast.NotIn)):
            if not isinstance(value, (ast.Tuple, ast.List)) or not all(
                isinstance(element, ast.Constant) for element in value.elts
            ):
                return False
        elif not works_elementwise(value):
            return False
    return works_elementwise(node.left)


def read_names(node: ast.expr) -> set[str]:
    """Return the names whose values a tree reads: all but functions and constants."""
    called = {id(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
    return {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and id(part) not in called and part.id not in CONSTANTS
    }


class Rewriter:
    """Rewrites a checked tree into calls of our operators and functions.

    `given`: nodes for which the tree that computes them is already there.
    """

    def __init__(self, given: Mapping[ast.expr, ast.expr] | None = None) -> None:
        self.given = given or {}

    def rewrite(self, node: ast.expr, bound: frozenset[str] = frozenset()) -> ast.expr:
        """Return the tree that computes `node`; `bound` are variables of comprehensions."""
        if node in self.given:
            return self.given[node]
        result: ast.expr = getattr(self, f"_{type(node).__name__}")(node, bound)
        return result

    def _each(self, nodes: Sequence[ast.expr], bound: frozenset[str]) -> list[ast.expr]:
        return [self.rewrite(node, bound) for node in nodes]

    def _Constant(self, node: ast.Constant, bound: frozenset[str]) -> ast.expr:
        return ast.Constant(node.value)

    def _Name(self, node: ast.Name, bound: frozenset[str]) -> ast.expr:
        if node.id in CONSTANTS and node.id not in bound:
            return trees.name(f"_c_{node.id}")
        return trees.name(node.id)

    def _Attribute(self, node: ast.Attribute, bound: frozenset[str]) -> ast.expr:
        return trees.noted("_attribute", self.rewrite(node.value, bound), ast.Constant(node.attr))

    def _Subscript(self, node: ast.Subscript, bound: frozenset[str]) -> ast.expr:
        items = self.rewrite(node.value, bound)
        if not isinstance(node.slice, ast.Slice):
            return trees.noted("_index", items, self.rewrite(node.slice, bound))
        parts = (node.slice.lower, node.slice.upper, node.slice.step)
        bounds = [ast.Constant(None) if p is None else self.rewrite(p, bound) for p in parts]
        return trees.noted("_cut", items, *bounds)

    def _UnaryOp(self, node: ast.UnaryOp, bound: frozenset[str]) -> ast.expr:
        return trees.noted(_UNARY[type(node.op)], self.rewrite(node.operand, bound))

    def _BinOp(self, node: ast.BinOp, bound: frozenset[str]) -> ast.expr:
        sides = self._each((node.left, node.right), bound)
        return trees.noted(_BINARY[type(node.op)], *sides)

    def _BoolOp(self, node: ast.BoolOp, bound: frozenset[str]) -> ast.expr:
        name = "_both" if isinstance(node.op, ast.And) else "_either"
        return trees.noted(name, *self._each(node.values, bound))

    def _Compare(self, node: ast.Compare, bound: frozenset[str]) -> ast.expr:
        values = self._each((node.left, *node.comparators), bound)
        names = [_COMPARISONS[type(operator)] for operator in node.ops]
        if len(names) == 1:
            return trees.noted(names[0], *values)
        steps = ast.Tuple([trees.name(name) for name in names], ast.Load())
        return trees.noted("_chain", steps, *values)

    def _IfExp(self, node: ast.IfExp, bound: frozenset[str]) -> ast.expr:
        parts = self._each((node.test, node.body, node.orelse), bound)
        return trees.noted("_select", *parts)

    def _List(self, node: ast.List | ast.Tuple, bound: frozenset[str]) -> ast.expr:
        return trees.call("_vector", *self._each(node.elts, bound))

    _Tuple = _List

    def _Call(self, node: ast.Call, bound: frozenset[str]) -> ast.expr:
        call = trees.noted(f"_f_{called(node)}", *self._each(node.args, bound))
        call.keywords = [
            ast.keyword(keyword.arg, self.rewrite(keyword.value, bound))
            for keyword in node.keywords
        ]
        return call

    def _ListComp(self, node: ast.ListComp | ast.GeneratorExp, bound: frozenset[str]) -> ast.expr:
        if self._at_once(node):
            return self._run_at_once(node, bound)
        generators = []
        for generator in node.generators:
            items = trees.noted("_elements", self.rewrite(generator.iter, bound))
            bound = bound | set(bound_names(generator.target))
            conditions: list[ast.expr] = []
            if generator.ifs:
                every = trees.noted("_both", *self._each(generator.ifs, bound))
                conditions = [trees.noted("_keep", every)]
            generators.append(ast.comprehension(generator.target, items, conditions, 0))
        body = ast.ListComp(self.rewrite(node.elt, bound), generators)
        return trees.noted("_gather", trees.function((), body))

    _GeneratorExp = _ListComp

    @staticmethod
    def _at_once(node: ast.ListComp | ast.GeneratorExp) -> bool:
        first = node.generators[0]
        return (
            len(node.generators) == 1
            and (isinstance(first.target, ast.Name) or isinstance(first.iter, ast.Call))
            and all(works_elementwise(part) for part in (node.elt, *first.ifs))
        )

    def _run_at_once(
        self, node: ast.ListComp | ast.GeneratorExp, bound: frozenset[str]
    ) -> ast.expr:
        first = node.generators[0]
        variables = bound_names(first.target)
        inner = bound | set(variables)
        parts = (node.elt, *first.ifs)
        outer = sorted(set().union(*map(read_names, parts)) - set(variables))
        condition: ast.expr = ast.Constant(None)
        if first.ifs:
            every = trees.noted("_both", *self._each(first.ifs, inner))
            condition = trees.function(variables, every)
        sources, counted = [first.iter], False
        if isinstance(first.target, ast.Tuple) and isinstance(first.iter, ast.Call):
            sources, counted = first.iter.args, called(first.iter) == "enumerate"
        return trees.noted(
            "_each",
            ast.Constant(counted),
            ast.Tuple(self._each(sources, bound), ast.Load()),
            trees.function(variables, self.rewrite(node.elt, inner)),
            condition,
            ast.Tuple([trees.name(name) for name in outer], ast.Load()),
        )


def compile_tree(tree: ast.expr, parameters: Sequence[str], label: str) -> Callable[..., Any]:
    """Compile a checked tree to a function of the notes and the `parameters`."""
    return compile_rewritten(Rewriter().rewrite(tree), parameters, label)


def compile_rewritten(body: ast.expr, parameters: Sequence[str], label: str) -> Callable[..., Any]:
    """Compile a rewritten tree to a function of the notes and the `parameters`."""
    module = ast.Expression(trees.function((trees.NOTES, *parameters), body))
    try:
        code = compile(ast.fix_missing_locations(module), f"<{label[:60]}>", "eval")
    except (RecursionError, MemoryError) as error:
        raise ExpressionError(f"{label[:60]!r}... is nested too deep") from error
    function: Callable[..., Any] = eval(code, _scope())
    return function


def settle(result: Any, notes: Notes) -> Value | Unknown:
    """Turn the result of an evaluation into a plain value, or say why there is none."""
    if type(result) is bool:
        return result
    value = to_value(result)
    if notes and is_unknown(value):
        return Unknown(notes[0])
    known: Value = value
    return known


def compile_expression(
    expression: Expression, names: Sequence[str]
) -> Callable[[Sequence[Value | Unknown]], Value | Unknown]:
    """Compile an expression over signals.

    `names`: the signals, in the order in which their values will be given. More than the expression
    reads are fine.
    Takes the values in that order. NaN or :class:`Unknown` stand for a value that is not
    there; the result is NaN or :class:`Unknown` only if it depends on such a value. Comparisons and
    logic give True, False or NaN; vectors are treated element by element, and two vectors must have
    the same length.
    Raises ExpressionError if the expression reads a name that is not in `names`, or a field of one
    (signals are numbers, vectors and text).
    """
    known = list(dict.fromkeys(names))
    _check_signals(expression, known)
    used = [name for name in known if name in expression.names]
    places = [list(names).index(name) for name in used]
    function = compile_tree(expression.tree, used, expression.source)
    silent, of_texts = _is_silent(expression.tree), _is_of_texts(expression.tree)

    def evaluate(values: Sequence[Value | Unknown]) -> Value | Unknown:
        notes = Notes()
        arguments = [values[place] for place in places]
        quiet = silent or of_texts
        for at, value in enumerate(arguments):
            kind = type(value)
            if kind not in _SCALARS:
                quiet = of_texts
                if kind is not list:
                    arguments[at] = _argument(value, notes)
        if quiet:
            return settle(function(notes, *arguments), notes)
        with np.errstate(all="ignore"):
            return settle(function(notes, *arguments), notes)

    return evaluate


def _argument(value: Any, notes: Notes) -> Any:
    """Turn the value of a signal into what functions of the language take."""
    if isinstance(value, Unknown):
        return notes.unknown(value.reason)
    return to_value(value)


_SILENT_NODES = (ast.Constant, ast.Name, ast.BoolOp, ast.UnaryOp, ast.IfExp, ast.Compare)


def _is_silent(node: ast.expr) -> bool:
    """Tell whether no operation on scalars goes through numpy, which warns of NaN and overflow."""
    if isinstance(node, ast.BinOp):
        silent = isinstance(node.op, (ast.Add, ast.Sub, ast.Mult))
    else:
        silent = isinstance(node, _SILENT_NODES)
    children = (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
    return silent and all(map(_is_silent, children))


_OF_TEXTS = set_of(
    "any effects identifiers len like lower matches range taken texts_of unsolicited without words "
    "zip"
)
_NODES_OF_TEXTS = (
    ast.Constant, ast.Name, ast.BoolOp, ast.Not, ast.IfExp, ast.ListComp, ast.comprehension,
    ast.Subscript, ast.UnaryOp, ast.cmpop, ast.boolop, ast.expr_context,
)  # fmt: skip


def _is_of_texts(tree: ast.expr) -> bool:
    """Tell whether texts are looked at, and nothing is computed that numpy could warn of."""
    return all(map(_looks_at_texts, ast.walk(tree)))


def _looks_at_texts(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return called(node) in _OF_TEXTS
    if isinstance(node, ast.Compare):  # of lengths
        sides = (node.left, *node.comparators)
        return all(isinstance(side, (ast.Call, ast.Constant)) for side in sides)
    return isinstance(node, _NODES_OF_TEXTS)


def _check_signals(expression: Expression, known: list[str]) -> None:
    """Refuse what only messages have, and names that no signal bears."""
    for node in ast.walk(expression.tree):
        problem = accepted = ""
        if isinstance(node, ast.Attribute) and expression.names.isdisjoint(JSON_TEXTS):
            problem = f".{node.attr} reads a field, but signals are numbers, arrays and text"
            accepted = "fields only in the value of a signal that has a topic"
        elif isinstance(node, ast.Name) and node.id in expression.names - set(known):
            problem = f"there is no signal {node.id!r}{suggestion(node.id, known)}"
            accepted = ", ".join(sorted(known)) or "no signals are defined"
        elif isinstance(node, ast.Call) and called(node) == "has":
            problem = "has() asks about a field, but signals are numbers, arrays and text"
            accepted = "has() only in the value of a signal that has a topic or a channel"
        elif isinstance(node, ast.Call) and FUNCTIONS[called(node)].remembers:
            problem = f"{called(node)}() remembers, and nothing goes on here from moment to moment"
            accepted = REMEMBERING
        elif isinstance(node, ast.Call) and len(node.args) < FUNCTIONS[called(node)].low:
            problem = f"{called(node)}() of one value needs a message"
            accepted = f"{called(node)}({', '.join(FUNCTIONS[called(node)].fields)})"
        if problem:
            raise ExpressionError(
                f"{position(expression.source, node)}: {problem}, in {expression.source!r}",
                accepted=accepted,
            )


JSON_TEXTS = frozenset({"args", "past_args", "outputs", "observation"})
"""Signals of an agent's steps that are JSON, of which expressions read members by name."""

REMEMBERING = "in a signal without topic, a predicate, a terminal label or a phase"

_SCALARS = frozenset({float, int, bool, str})
