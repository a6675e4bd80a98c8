"""Building syntax trees of calls, for the code that expressions compile to."""

from __future__ import annotations

import ast
from collections.abc import Sequence

NOTES = "_n"


def name(identifier: str) -> ast.Name:
    """Return the tree of a name."""
    return ast.Name(identifier, ast.Load())


def call(function: str, *arguments: ast.expr) -> ast.Call:
    """Return the tree of a call."""
    return ast.Call(name(function), list(arguments), [])


def noted(function: str, *arguments: ast.expr) -> ast.Call:
    """Return the tree of a call whose first argument is the notes of the evaluation."""
    return call(function, name(NOTES), *arguments)


def function(parameters: Sequence[str], body: ast.expr) -> ast.Lambda:
    """Return the tree of a function."""
    arguments = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(parameter) for parameter in parameters],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[],
    )
    return ast.Lambda(arguments, body)
