"""The signals of an agent's steps: their names and types.

A text compared with a number never says anything.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import Literal

RUN = "run"
"""Signal that names the run, or numbers those of a file from 0."""

PROPOSED = "proposed"
"""Signal that names the call that is about to be made; the key `action` says the same."""

OF_CALL = (PROPOSED, "args", "arguments", "argument_names", "inputs")
"""Signals that tell of this call."""

Type = Literal["text", "texts", "number"]

KNOWN: Mapping[str, Type] = {
    "task": "text",
    "proposed": "text",
    "action": "text",
    "last_action": "text",
    "observation": "text",
    "calls": "texts",
    "outputs": "texts",
    "args": "text",
    "past_args": "texts",
    "arguments": "texts",
    "argument_names": "texts",
    "step": "number",
    "errors": "number",
}
"""Signals of an agent's steps whose type is certain."""

NUMBERS = frozenset({"len", "float", "int", "abs", "sum", "min", "max", "count", "round"})


def mismatches(text: str, own: Collection[str]) -> Iterator[str]:
    """Yield the comparisons of a text with a number in an expression, as they are written.

    Parameters
    ----------
    own : collection of str
        Signals that are those of an agent's steps.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # compiling says what is wrong
    names = {name: kind for name, kind in KNOWN.items() if name in own}
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension) and isinstance(node.target, ast.Name):
            names.pop(node.target.id, None)
            if _type(node.iter, names) == "texts":
                names[node.target.id] = "text"
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for operator, pair in zip(node.ops, pairwise(sides), strict=True):
                kinds = {_type(side, names) for side in pair}
                if not isinstance(operator, ast.In | ast.NotIn) and (
                    kinds == {"text", "number"} or kinds == {"texts", "number"}
                ):
                    yield ast.unparse(node)


def _type(node: ast.expr, names: Mapping[str, Type]) -> Type | None:
    """Return the type of an expression, None where it is not certain."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        return _type(node.operand, names)
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return "text"
        return "number" if isinstance(node.value, int | float) else None
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
        return "text" if _type(node.value, names) == "texts" else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NUMBERS:
        return "number"
    return None
