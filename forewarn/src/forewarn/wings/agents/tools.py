"""Check rules about an agent's calls against the JSON schemas of its tools."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from forewarn.cli.findings import Finding
from forewarn.config.file import MonitorSpec
from forewarn.errors import InputError, suggestion
from forewarn.expressions.syntax import parse_expression
from forewarn.files.inputs import open_plain

Schemas = Mapping[str, Mapping[str, Any]]
ACCEPTED = 'a list of tools such as [{"name": "pay", "inputSchema": {"properties": {...}}}]'
NAMES = frozenset({"proposed", "last_action"})
OF_TYPES = {"number": "a number", "integer": "a number", "string": "a text"}


def read_tools(path: Path) -> Schemas:
    """Return the schema of the arguments of each tool of a file.

    The file is a list of tools, or an object with a list ``tools``, as MCP, OpenAI and Anthropic
    write them.

    Raises InputError if it is something else.
    """
    try:
        with open_plain(path) as file:
            data = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}", accepted=ACCEPTED, file=path) from error
    tools = data.get("tools") if isinstance(data, dict) else data
    found: dict[str, Mapping[str, Any]] = {}
    for at, tool in enumerate(tools if isinstance(tools, list) else [data]):
        inner = tool.get("function", tool) if isinstance(tool, dict) else None
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
            raise InputError("names no tool", accepted=ACCEPTED, file=path, key=f"[{at}]")
        keys = ("inputSchema", "input_schema", "parameters")
        schemas = [inner[key] for key in keys if isinstance(inner.get(key), dict)]
        found[inner["name"]] = schemas[0] if schemas else {}
    return found


def against_tools(spec: MonitorSpec, tools: Schemas) -> Iterator[Finding]:
    """Yield what rules say of tools and arguments that the schemas do not have."""
    texts = {f"signals.{n}.value": s.value for n, s in spec.signals.items() if s.is_derived}
    texts |= {f"predicates.{name}": text for name, text in spec.predicates.items()}
    texts |= {f"terminal.{name}": text for name, text in spec.terminal.items()}
    for key, text in texts.items():
        for problem, accepted in dict.fromkeys(_wrong(parse_expression(str(text)).tree, tools)):
            error = InputError(problem, file=spec.file, key=key, accepted=accepted)
            yield Finding("error", str(error))


def _wrong(tree: ast.expr, tools: Schemas) -> Iterator[tuple[str, str]]:
    named = dict.fromkeys(_named(tree))
    for name in named:
        if name and name not in tools:
            hint = suggestion(name, list(tools))
            yield f"there is no tool {name!r}{hint}", ", ".join(sorted(tools))
    meant = [tools[name] for name in named if name in tools] or list(tools.values())
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from _unlike(node, meant)
    inner = {id(_within(node)) for node in ast.walk(tree)}
    for node in ast.walk(tree):
        steps = None if id(node) in inner else _steps(node)
        if steps and meant and not any(_types(schema, steps) for schema in meant):
            known = sorted({name for schema in meant for name in schema.get("properties", {})})
            yield f"no such tool has the argument {ast.unparse(node)}", ", ".join(known) or "none"


def _named(tree: ast.expr) -> Iterator[str]:
    """Yield the tools that an expression names."""
    names = {*NAMES, *_bound_to_calls(tree)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        if any(isinstance(side, ast.Name) and side.id in {*names, "calls"} for side in sides):
            for side in sides:
                items = side.elts if isinstance(side, (ast.List, ast.Tuple)) else [side]
                for item in items:
                    if isinstance(item, ast.Constant) and isinstance(item.value, str):
                        yield item.value


def _bound_to_calls(tree: ast.expr) -> Iterator[str]:
    """Yield the variables that go through the names of earlier calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension):
            over = node.iter.args if isinstance(node.iter, ast.Call) else [node.iter]
            into = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
            for source, variable in zip(over, into, strict=False):
                if isinstance(source, ast.Name) and source.id == "calls":
                    yield ast.unparse(variable)


def _within(node: ast.AST) -> ast.expr | None:
    """Return that of which a node reads a member or an element whose place is written."""
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
        return None
    return node.value if isinstance(node, (ast.Attribute, ast.Subscript)) else None


def _steps(node: ast.AST) -> list[str | int] | None:
    """Return the way from the arguments to a part of them: ``args.to[0].email``."""
    steps: list[str | int] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            steps.insert(0, node.attr)
        elif isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, (str, int)):
            steps.insert(0, node.slice.value)
        else:
            return None
        node = node.value
    return steps if isinstance(node, ast.Name) and node.id == "args" else None


def _types(schema: Any, steps: list[str | int]) -> set[str]:
    """Return the types that a part may have; ``any`` if that is open, none if it cannot be."""
    if not isinstance(schema, dict):
        return {"any"}
    options = [o for key in ("anyOf", "oneOf", "allOf") for o in schema.get(key, ())]
    if options:
        return set().union(*(_types(option, steps) for option in options))
    if not steps:
        kinds = schema.get("type", "any")
        return set(kinds) if isinstance(kinds, list) else {kinds}
    first, *rest = steps
    if "$ref" in schema or (isinstance(first, int) and "items" not in schema):
        return {"any"}
    if isinstance(first, int):
        return _types(schema["items"], rest)
    members = schema.get("properties")
    if members is None or (first not in members and schema.get("additionalProperties")):
        return {"any"} if schema.get("type", "object") == "object" else set()
    return _types(members[first], rest) if first in members else set()


def _unlike(node: ast.Compare, meant: list[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield a comparison of an argument with what is of another type."""
    sides = [node.left, *node.comparators]
    for part, other in (sides, sides[::-1]):
        steps = _steps(part)
        if not steps or isinstance(node.ops[0], (ast.In, ast.NotIn)):
            continue
        if not isinstance(other, ast.Constant) or isinstance(other.value, bool):
            continue
        wanted = "a text" if isinstance(other.value, str) else "a number"
        types = set().union(*(_types(schema, steps) for schema in meant))
        if types and "any" not in types and wanted not in {OF_TYPES.get(t) for t in types}:
            types_text = " or ".join(sorted(types))
            hint = "number(...) of a text" if wanted == "a number" else "a number"
            yield (
                f"{ast.unparse(node)} compares {types_text} with {wanted}, and is never known",
                hint,
            )
