"""The nodes of a predicate tree, and how they are written.

In a monitor file a node is the name of a leaf, or a condition with two ways on::

    tree:
      if: "files_written > 3"
      then: busy
      else:
        if: "'report' in last_file"
        then: reporting
        else: idle
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from forewarn.errors import ConfigError

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
MAX_LEAVES = 1024
MAX_DEPTH = 32
"""A monitor file has up to 40 levels."""
PARTS = ("if", "then", "else")


class Leaf(NamedTuple):
    """The end of a path: an abstract state."""

    name: str


class Split(NamedTuple):
    """A condition over signals, and where to go on if it is true or false."""

    condition: str
    then: Node
    otherwise: Node


Node = Leaf | Split
Path = tuple[tuple[str, bool], ...]


def paths(node: Node) -> Iterator[tuple[Leaf, Path]]:
    """Yield each leaf, from left to right, with the conditions on its path and their outcomes."""
    waiting: list[tuple[Node, Path]] = [(node, ())]
    while waiting:
        here, path = waiting.pop()
        if isinstance(here, Leaf):
            yield here, path
        else:
            waiting.append((here.otherwise, (*path, (here.condition, False))))
            waiting.append((here.then, (*path, (here.condition, True))))


def leaves(node: Node) -> tuple[str, ...]:
    """Return the names of the leaves, from left to right."""
    return tuple(leaf.name for leaf, _ in paths(node))


def dump_tree(node: Node) -> Any:
    """Return a tree as a monitor file or a model file writes it."""
    if isinstance(node, Leaf):
        return node.name
    return dict(
        zip(PARTS, (node.condition, dump_tree(node.then), dump_tree(node.otherwise)), strict=True)
    )


def parse_tree(value: Any, key: str = "tree") -> Node:
    """Return the tree that `dump_tree` or a person wrote; raises ConfigError with the key path."""
    names: dict[str, str] = {}
    tree = _parse(value, key, names, 0)
    if len(names) > MAX_LEAVES:
        raise ConfigError(f"{len(names)} leaves", key=key, accepted=f"at most {MAX_LEAVES}")
    return tree


def _parse(value: Any, key: str, names: dict[str, str], depth: int) -> Node:
    if isinstance(value, str):
        if not NAME.match(value):
            raise ConfigError(
                f"{value!r} is no name of a leaf",
                key=key,
                accepted="a letter, then letters, digits and _; or if, then and else",
            )
        if value in names:
            raise ConfigError(
                f"the leaf {value!r} stands at {names[value]} already",
                key=key,
                accepted="a name of its own for each leaf",
            )
        names[value] = key
        return Leaf(value)
    if depth >= MAX_DEPTH:
        raise ConfigError("is nested too deeply", key=key, accepted=f"up to {MAX_DEPTH} conditions")
    if not isinstance(value, Mapping) or set(value) != set(PARTS):
        raise ConfigError(
            f"{_short(value)} is no node", key=key, accepted="the name of a leaf, or if, then, else"
        )
    condition = value["if"]
    if not isinstance(condition, str):
        raise ConfigError(
            f"{_short(condition)} is no expression", key=f"{key}.if", accepted="a text in quotes"
        )
    then, otherwise = (_parse(value[part], f"{key}.{part}", names, depth + 1) for part in PARTS[1:])
    return Split(condition, then, otherwise)


def conditions(node: Node, key: str = "tree") -> Iterator[tuple[str, str]]:
    """Yield the key path and the text of each condition, from the root on."""
    waiting: list[tuple[Node, str]] = [(node, key)]
    while waiting:
        here, path = waiting.pop()
        if isinstance(here, Split):
            yield f"{path}.if", here.condition
            waiting += [(here.otherwise, f"{path}.else"), (here.then, f"{path}.then")]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
