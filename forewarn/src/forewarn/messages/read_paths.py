"""Which parts of a message an expression reads when it is computed element by element."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from forewarn.expressions.syntax import bound_names, called
from forewarn.messages.inference import ROOT, Typed
from forewarn.messages.kinds import NUMBER, TEXT, Group, Many
from forewarn.messages.plan import ALL, Path, Wants

Paths = frozenset[Path]
NOWHERE: Paths = frozenset()


def touch(typed: Typed, wants: Wants) -> None:
    """Ask for all that evaluating `typed` can read."""
    _Toucher(typed, wants).visit(typed.tree, {})


class _Toucher:
    """Finds where in the message a node's value may lie; for an array, where its elements lie."""

    def __init__(self, typed: Typed, wants: Wants) -> None:
        self.kinds = typed.kinds
        self.wants = wants

    def visit(self, node: ast.expr, scope: Mapping[str, Paths]) -> Paths:
        if isinstance(node, ast.Name):
            return frozenset({()}) if node.id == ROOT else scope.get(node.id, NOWHERE)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, scope)
        if isinstance(node, ast.ListComp):
            return self._comprehension(node, scope)
        places = [self.visit(child, scope) for child in _children(node)]
        if isinstance(node, ast.Subscript):
            return places[0]
        if isinstance(node, (ast.IfExp, ast.List)):
            return frozenset().union(*places)
        return NOWHERE

    def _attribute(self, node: ast.Attribute, scope: Mapping[str, Paths]) -> Paths:
        kind = self.kinds[node]
        found = set()
        for place in self.visit(node.value, scope):
            path = (*place, node.attr)
            if isinstance(kind, Many):
                self.wants.add(path, True)
                path = (*path, ALL)
            if kind in (NUMBER, TEXT, Many(NUMBER), Many(TEXT)):
                self.wants.add(path, False)
            found.add(path)
        return frozenset(found)

    def _comprehension(self, node: ast.ListComp, scope: Mapping[str, Paths]) -> Paths:
        for generator in node.generators:
            scope = {**scope, **self._bind(generator, scope)}
            for condition in generator.ifs:
                self.visit(condition, scope)
        return self.visit(node.elt, scope)

    def _bind(self, generator: ast.comprehension, scope: Mapping[str, Paths]) -> dict[str, Paths]:
        names = bound_names(generator.target)
        kind = self.kinds[generator.iter]
        if isinstance(kind, Many) and isinstance(kind.element, Group):
            assert isinstance(generator.iter, ast.Call)
            places = [self.visit(argument, scope) for argument in generator.iter.args]
            first = [NOWHERE] if called(generator.iter) == "enumerate" else []
            return dict(zip(names, [*first, *places], strict=True))
        return {names[0]: self.visit(generator.iter, scope)}


def _children(node: ast.AST) -> list[ast.expr]:
    """Return the expressions right below a node."""
    found: list[ast.expr] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and not isinstance(child, ast.Slice):
            found.append(child)
        elif isinstance(child, (ast.keyword, ast.Slice)):
            found += _children(child)
    return found
