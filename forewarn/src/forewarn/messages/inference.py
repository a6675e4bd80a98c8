"""What an expression reads from a message: types checked, names resolved, before any data.

The tree that comes out has one free name, ``msg``: fields at the top became attributes of it,
constants became numbers, and calls such as ``yaw(orientation)`` read the fields that they need.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from forewarn.errors import FieldError, suggestion
from forewarn.expressions.functions import CONSTANTS, FUNCTIONS
from forewarn.expressions.syntax import Expression, called, position, shown
from forewarn.messages.schema import (
    NUMBER,
    OF_TEXTS,
    TEXT,
    Group,
    Kind,
    Many,
    Primitive,
    Struct,
    actual_field,
    describe,
    fields_of,
    innermost,
    innermost_type,
    kind_of,
    presence,
)

ROOT = "msg"


@dataclass(frozen=True)
class Typed:
    """An expression fitted to a message type.

    `tree`: the same with all names resolved; only ``msg`` and variables of comprehensions remain.
    """

    expression: Expression  # as the user wrote it
    tree: ast.expr
    kind: Kind  # what it yields: a number, text, or an array
    kinds: Mapping[ast.expr, Kind]  # the kind of every node of `tree` that is a value


def infer(expression: Expression, struct: Struct) -> Typed:
    """Fit an expression to a message type.

    Raises FieldError if it reads a field that does not exist, or uses one in a way that its type
    does not allow. The message names expression, field and type, and the fields that exist.
    """
    inference = _Inference(expression.source, struct)
    tree, kind = inference.visit(expression.tree, {})
    if isinstance(innermost(kind), Struct):
        raise inference.whole_message(expression.tree, kind)
    return Typed(expression, tree, kind, inference.kinds)


Scope: TypeAlias = "Mapping[str, Kind]"
Result: TypeAlias = "tuple[ast.expr, Kind]"

_REDUCERS = {"sum", "mean", "any", "all", "count", "argmin", "argmax", "nearest_beam"}


class _Inference:
    def __init__(self, source: str, struct: Struct) -> None:
        self.source = source
        self.struct = struct
        self.kinds: dict[ast.expr, Kind] = {}

    def fail(self, node: ast.AST, problem: str, accepted: str = "") -> FieldError:
        where = position(self.source, node)
        return FieldError(f"{where}: {problem}, in {shown(self.source)}", accepted=accepted)

    def whole_message(self, node: ast.AST, kind: Kind) -> FieldError:
        inner = innermost(kind)
        assert isinstance(inner, Struct)
        return self.fail(
            node,
            f"{describe(kind)} is no value of its own",
            f"one of its fields: {', '.join(fields_of(inner))}",
        )

    def visit(self, node: ast.expr, scope: Scope) -> Result:
        """Return the resolved tree of `node` and its kind."""
        result: Result = getattr(self, f"_{type(node).__name__}")(node, scope)
        self.kinds[result[0]] = result[1]
        return result

    def scalar_or_vector(self, node: ast.expr, kind: Kind, use: str) -> bool:
        """Check that a value is made of numbers; return whether it is a vector."""
        if kind == NUMBER:
            return False
        if kind == Many(NUMBER):
            return True
        hint = "numbers and arrays of numbers"
        if isinstance(innermost(kind), Struct):
            inner = innermost(kind)
            assert isinstance(inner, Struct)
            hint = f"one of its fields: {', '.join(fields_of(inner))}"
            if isinstance(kind, Many):
                hint += " (write [each.field for each in ...])"
        raise self.fail(node, f"{use} of {describe(kind)}", hint)

    def numeric(self, nodes: list[ast.expr], scope: Scope, use: str) -> tuple[list[ast.expr], Kind]:
        """Visit operands that must be numbers; the kind is a vector if one of them is."""
        results = [self.visit(node, scope) for node in nodes]
        wide = [self.scalar_or_vector(n, r[1], use) for n, r in zip(nodes, results, strict=True)]
        return [result[0] for result in results], Many(NUMBER) if any(wide) else NUMBER

    def _Constant(self, node: ast.Constant, scope: Scope) -> Result:
        return ast.Constant(node.value), TEXT if isinstance(node.value, str) else NUMBER

    def _Name(self, node: ast.Name, scope: Scope) -> Result:
        name = node.id
        if name in scope:
            return ast.Name(name, ast.Load()), scope[name]
        if name in CONSTANTS:
            return ast.Name(name, ast.Load()), NUMBER
        if actual_field(self.struct, name) is not None or name in self.struct.constants:
            root = ast.Name(ROOT, ast.Load())
            self.kinds[root] = self.struct
            return self._read(node, root, self.struct, name)
        if name == ROOT:
            return ast.Name(ROOT, ast.Load()), self.struct
        raise self._no_field(node, self.struct, name)

    def _Attribute(self, node: ast.Attribute, scope: Scope) -> Result:
        value, kind = self.visit(node.value, scope)
        if not isinstance(kind, Struct):
            inner = innermost(kind)
            hint = "a message has fields"
            if isinstance(inner, Struct):
                text = ast.unparse(node.value)
                hint = f"[each.{node.attr} for each in {text}], or {text}[0].{node.attr}"
            raise self.fail(node, f"{describe(kind)} has no field {node.attr!r}", hint)
        return self._read(node, value, kind, node.attr)

    def _read(self, node: ast.expr, value: ast.expr, struct: Struct, name: str) -> Result:
        field = actual_field(struct, name)
        if field is not None:
            if innermost_type(struct.fields[field]) == Primitive("float128"):
                raise self.fail(node, f"{name!r} is a float128", "numbers of at most 64 bits")
            return ast.Attribute(value, field, ast.Load()), kind_of(struct.fields[field])
        if name in struct.constants:
            constant = struct.constants[name]
            return ast.Constant(constant), TEXT if isinstance(constant, str) else NUMBER
        raise self._no_field(node, struct, name)

    def _no_field(self, node: ast.expr, struct: Struct, name: str) -> FieldError:
        known = [*fields_of(struct), *struct.constants]
        return self.fail(
            node,
            f"{struct.name} has no field {name!r}{suggestion(name, known)}",
            ", ".join(known) or "it has no fields",
        )

    def _Subscript(self, node: ast.Subscript, scope: Scope) -> Result:
        value, kind = self.visit(node.value, scope)
        if not isinstance(kind, Many) and kind != TEXT:
            raise self.fail(node, f"{describe(kind)} cannot be indexed", "arrays and text")
        parts: list[ast.expr | None]
        if isinstance(node.slice, ast.Slice):
            parts = [node.slice.lower, node.slice.upper, node.slice.step]
            bounds = [None if p is None else self._whole(p, scope) for p in parts]
            return ast.Subscript(value, ast.Slice(*bounds), ast.Load()), kind
        at = self._whole(node.slice, scope)
        return ast.Subscript(value, at, ast.Load()), kind.element if isinstance(
            kind, Many
        ) else TEXT

    def _whole(self, node: ast.expr, scope: Scope) -> ast.expr:
        tree, kind = self.visit(node, scope)
        if kind != NUMBER:
            raise self.fail(node, f"an index that is {describe(kind)}", "a whole number")
        return tree

    def _UnaryOp(self, node: ast.UnaryOp, scope: Scope) -> Result:
        (operand,), kind = self.numeric([node.operand], scope, "negation")
        return ast.UnaryOp(node.op, operand), kind

    def _BinOp(self, node: ast.BinOp, scope: Scope) -> Result:
        (left, right), kind = self.numeric([node.left, node.right], scope, "arithmetic")
        return ast.BinOp(left, node.op, right), kind

    def _BoolOp(self, node: ast.BoolOp, scope: Scope) -> Result:
        values, kind = self.numeric(node.values, scope, "'and' or 'or'")
        return ast.BoolOp(node.op, values), kind

    def _IfExp(self, node: ast.IfExp, scope: Scope) -> Result:
        (test,), condition = self.numeric([node.test], scope, "a condition")
        (body, then), (orelse, otherwise) = (
            self.visit(branch, scope) for branch in (node.body, node.orelse)
        )
        return ast.IfExp(test, body, orelse), self._choice(node, condition, then, otherwise)

    def _choice(self, node: ast.expr, condition: Kind, then: Kind, otherwise: Kind) -> Kind:
        if condition == NUMBER and then == otherwise:
            return then
        leaves = {
            branch.element if isinstance(branch, Many) else branch for branch in (then, otherwise)
        }
        if len(leaves) != 1 or not leaves <= {NUMBER, TEXT}:
            raise self.fail(
                node,
                f"a choice between {describe(then)} and {describe(otherwise)}",
                "two values of one kind, numbers or text",
            )
        wide = any(isinstance(part, Many) for part in (condition, then, otherwise))
        return Many(leaves.pop()) if wide else leaves.pop()

    def _Compare(self, node: ast.Compare, scope: Scope) -> Result:
        nodes = [node.left, *node.comparators]
        results = [self.visit(operand, scope) for operand in nodes]
        wide = False
        for i, operator in enumerate(node.ops):
            left, right = results[i][1], results[i + 1][1]
            if isinstance(operator, (ast.In, ast.NotIn)):
                wide |= self._membership(node, left, right)
            else:
                wide |= self._comparable(node, left, right)
        trees = [result[0] for result in results]
        compare = ast.Compare(trees[0], node.ops, trees[1:])
        return compare, Many(NUMBER) if wide else NUMBER

    def _comparable(self, node: ast.expr, left: Kind, right: Kind) -> bool:
        leaves = {side.element if isinstance(side, Many) else side for side in (left, right)}
        if len(leaves) != 1 or not leaves <= {NUMBER, TEXT}:
            raise self.fail(
                node,
                f"{describe(left)} compared with {describe(right)}",
                "numbers with numbers, text with text",
            )
        return isinstance(left, Many) or isinstance(right, Many)

    def _membership(self, node: ast.expr, left: Kind, right: Kind) -> bool:
        wide = isinstance(left, Many)
        item = left.element if isinstance(left, Many) else left
        if item in (NUMBER, TEXT) and right in (Many(item), Many(NUMBER) if wide else None):
            return wide
        if left == TEXT and right == TEXT:
            return False
        raise self.fail(
            node,
            f"'in' between {describe(left)} and {describe(right)}",
            "a number in (1, 2, 3) or in an array of numbers, text in ('a', 'b') or within text",
        )

    def _List(self, node: ast.List | ast.Tuple, scope: Scope) -> Result:
        results = [self.visit(element, scope) for element in node.elts]
        kinds = [result[1] for result in results]
        if any(kind != kinds[0] for kind in kinds):
            raise self.fail(node, "a list of different kinds", "all numbers or all text")
        tree = ast.List([result[0] for result in results], ast.Load())
        return tree, Many(kinds[0] if kinds else NUMBER)

    _Tuple = _List

    def _ListComp(self, node: ast.ListComp | ast.GeneratorExp, scope: Scope) -> Result:
        generators = []
        for generator in node.generators:
            items, kind = self.visit(generator.iter, scope)
            if not isinstance(kind, Many):
                raise self.fail(generator.iter, f"'for' over {describe(kind)}", "an array")
            scope = {**scope, **self._bind(generator.target, kind.element)}
            conditions = []
            for condition in generator.ifs:
                (tree,), wide = self.numeric([condition], scope, "a filter")
                if wide != NUMBER:
                    raise self.fail(condition, "a filter that is an array", "any(...) or all(...)")
                conditions.append(tree)
            generators.append(
                ast.comprehension(copy.deepcopy(generator.target), items, conditions, 0)
            )
        element, kind = self.visit(node.elt, scope)
        return ast.ListComp(element, generators), Many(kind)

    _GeneratorExp = _ListComp

    def _bind(self, target: ast.expr, kind: Kind) -> dict[str, Kind]:
        if isinstance(target, ast.Name):
            if isinstance(kind, Group):
                raise self.fail(
                    target, f"one variable for {len(kind.elements)} values", "for a, b in ..."
                )
            return {target.id: kind}
        assert isinstance(target, ast.Tuple)
        parts = kind.elements if isinstance(kind, Group) else ()
        if len(parts) != len(target.elts):
            raise self.fail(
                target,
                f"{len(target.elts)} variables for {len(parts) or 'one'} value",
                "as many variables as zip() or enumerate() give",
            )
        names = [element.id for element in target.elts if isinstance(element, ast.Name)]
        return dict(zip(names, parts, strict=True))

    def _Call(self, node: ast.Call, scope: Scope) -> Result:
        name = called(node)
        if name in ("zip", "enumerate"):
            return self._iteration(node, name, scope)
        if name == "has":
            return self._presence(node, scope)
        function = FUNCTIONS[name]
        if function.remembers:
            raise self.fail(
                node,
                f"{name}() in the value of a topic: some messages are never decoded",
                "in a derived signal, which has no topic, or in a predicate",
            )
        if function.needs:
            raise self.fail(
                node,
                f"{name}() in the value of a topic: {function.needs} are not part of its messages",
                "in a derived signal, which has no topic",
            )
        results = [self.visit(argument, scope) for argument in node.args]
        kinds = [result[1] for result in results]
        trees = [result[0] for result in results]
        if function.fields and isinstance(kinds[0], Struct):
            trees, kinds = self._expand(node, name, trees[0], kinds[0])
        if len(trees) < function.low:
            fields = ", ".join(function.fields)
            raise self.fail(node, f"{name}() of {describe(kinds[0])}", f"a message with {fields}")
        keywords = [
            ast.keyword(keyword.arg, self.numeric([keyword.value], scope, f"{keyword.arg}=")[0][0])
            for keyword in node.keywords
        ]
        call = ast.Call(ast.Name(name, ast.Load()), trees, keywords)
        return call, self._result(node, name, kinds)

    def _presence(self, node: ast.Call, scope: Scope) -> Result:
        """Turn ``has(a.b)`` into a field of ``a`` that tells whether ``b`` is set."""
        tree, _ = self.visit(node.args[0], scope)
        if not isinstance(tree, ast.Attribute):
            raise self.fail(node, "has() of a value that is no field", "has(field)")
        owner = self.kinds[tree.value]
        if not isinstance(owner, Struct) or not owner.optional:
            raise self.fail(node, f"has(): all fields of {describe(owner)} are always set")
        return ast.Attribute(tree.value, presence(tree.attr), ast.Load()), NUMBER

    def _expand(
        self, node: ast.expr, name: str, tree: ast.expr, kind: Struct
    ) -> tuple[list[ast.expr], list[Kind]]:
        results = [self._read(node, tree, kind, field) for field in FUNCTIONS[name].fields]
        for part, part_kind in results:
            self.kinds[part] = part_kind
        return [result[0] for result in results], [result[1] for result in results]

    def _iteration(self, node: ast.Call, name: str, scope: Scope) -> Result:
        results = [self.visit(argument, scope) for argument in node.args]
        elements: list[Kind] = [] if name == "zip" else [NUMBER]
        for argument, (_, kind) in zip(node.args, results, strict=True):
            if not isinstance(kind, Many):
                raise self.fail(argument, f"{name}() over {describe(kind)}", "arrays")
            elements.append(kind.element)
        call = ast.Call(ast.Name(name, ast.Load()), [result[0] for result in results], [])
        return call, Many(Group(tuple(elements)))

    def _result(self, node: ast.Call, name: str, kinds: list[Kind]) -> Kind:
        if name == "len":
            if not isinstance(kinds[0], Many) and kinds[0] != TEXT:
                raise self.fail(node, f"len() of {describe(kinds[0])}", "arrays and text")
            return NUMBER
        if name in OF_TEXTS:
            accepted, result = OF_TEXTS[name]
            for at, kind in enumerate(kinds):
                texts = accepted[min(at, len(accepted) - 1)]
                if kind not in texts:
                    expected = " or ".join(map(describe, texts))
                    raise self.fail(node, f"{name}() of {describe(kind)}", expected)
            return kinds[0] if result is None else result
        if name == "where":
            self.scalar_or_vector(node.args[0], kinds[0], "a condition")
            return self._choice(node, *kinds)
        arguments = node.args if len(node.args) == len(kinds) else [node] * len(kinds)
        wide = [
            self.scalar_or_vector(argument, kind, f"{name}()")
            for argument, kind in zip(arguments, kinds, strict=True)
        ]
        if name == "range":
            return Many(NUMBER)
        if name in _REDUCERS or (name in ("min", "max", "norm") and len(kinds) == 1):
            if not wide[0]:
                raise self.fail(node, f"{name}() of one number", "an array of numbers")
            return NUMBER
        if name == "dot":
            return NUMBER
        return Many(NUMBER) if any(wide) else NUMBER
