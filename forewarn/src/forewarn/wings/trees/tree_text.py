"""How a tree is written into a monitor file, with the comments that people put beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import yaml

from forewarn.states.interface import TREE
from forewarn.wings.trees.nodes import Leaf, Node

SECTION = "states"
MARKS_OF_A_LINE = 6

WHENCE = "The recordings that the tree is from: bounds from counts of these are not sound."
_OURS = re.compile(rf"# (?:(?:learned|refined) by `forewarn |{re.escape(WHENCE)})")


class Comments(NamedTuple):
    """Comments around an entry: on lines of their own above it, and behind it on its line."""

    above: tuple[str, ...] = ()
    behind: str = ""


NONE = Comments()
Commented = Mapping[str, Comments]
"""By key path, such as ``states.tree.then``."""


def comments_of(text: str) -> dict[str, Comments]:
    """Return the comments in the section `states` of a monitor file, without our own."""
    found: dict[str, Comments] = {}
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    waiting = [(SECTION, value) for key, value in root.value if key.value == SECTION]
    while waiting:
        path, node = waiting.pop()
        if not isinstance(node, yaml.MappingNode):
            continue
        for key, value in node.value:
            place = f"{path}.{key.value}"
            nested = isinstance(value, yaml.CollectionNode) and not value.flow_style
            here = Comments(_above(text, key), _behind(text, key if nested else value))
            if here != NONE:
                found[place] = here
            waiting.append((place, value))
    return found


def _above(text: str, key: yaml.Node) -> tuple[str, ...]:
    *lines, start = text[: key.start_mark.index].split("\n")
    found: list[str] = []
    while not start.strip() and lines and lines[-1].lstrip().startswith("#"):
        found.insert(0, lines.pop().strip())
    return tuple(comment for comment in found if not _OURS.match(comment))


def _behind(text: str, node: yaml.Node) -> str:
    end = node.end_mark.index
    rest = "" if text[end - 1 : end] == "\n" else text[end:].partition("\n")[0]
    found = re.match(r"[\s,:]*(?<=\s)(#.*)", rest)
    return found[1].strip() if found else ""


def section_text(
    tree: Node,
    variables: Sequence[str] | Mapping[str, str],
    remark: str,
    marks: Sequence[str],
    comments: Commented,
    notes: Mapping[str, str] | None,
) -> str:
    """Return the section `states`, with what people wrote beside it as it was (`comments`).

    `notes` stand behind the leaves of a new tree. None: the tree is the one that stood there, with
    leaves that are split, and the comments on its parts stay there.
    """
    if notes is not None:
        kept = {key: one for key, one in comments.items() if not key.startswith(f"{SECTION}.tree")}
    else:
        kept = dict(comments)
    lines = [
        f"{SECTION}:",
        *_entry("kind", TREE, 1, kept, f"{SECTION}.kind"),
        f"  # {remark}; edit it as you like",
        *_variables(variables, kept),
        *_lines("tree", tree, notes or {}, kept, SECTION, 1),
        *_marks(marks),
    ]
    return "\n".join([*lines, ""])


def _entry(key: str, value: str, depth: int, comments: Commented, path: str) -> Iterator[str]:
    """Yield the lines of an entry with its comments; the value may stand on the lines below."""
    indent, comment_lines = "  " * depth, comments.get(path, NONE)
    yield from (f"{indent}{comment}" for comment in comment_lines.above)
    text = f"{indent}{key}:" + (f" {value}" if value else "")
    yield f"{text}  {comment_lines.behind}" if comment_lines.behind else text


def _variables(variables: Sequence[str] | Mapping[str, str], comments: Commented) -> Iterator[str]:
    path = f"{SECTION}.variables"
    if not isinstance(variables, Mapping):
        yield from _entry("variables", f"[{', '.join(variables)}]", 1, comments, path)
        return
    yield from _entry("variables", "", 1, comments, path)
    for name, role in variables.items():
        yield from _entry(name, role, 2, comments, f"{path}.{name}")


def _lines(
    key: str, node: Node, notes: Mapping[str, str], comments: Commented, within: str, depth: int
) -> Iterator[str]:
    path = f"{within}.{key}"
    if isinstance(node, Leaf):
        note = " ".join(notes.get(node.name, "").split())
        yield from _entry(key, node.name + (f"  # {note}" if note else ""), depth, comments, path)
        return
    yield from _entry(key, "", depth, comments, path)
    condition = json.dumps(node.condition, ensure_ascii=False)
    yield from _entry("if", condition, depth + 1, comments, f"{path}.if")
    yield from _lines("then", node.then, notes, comments, path, depth + 1)
    yield from _lines("else", node.otherwise, notes, comments, path, depth + 1)


def _marks(marks: Sequence[str]) -> Iterator[str]:
    yield f"  # {WHENCE}"
    yield "  state_source_recordings: ["
    for first in range(0, len(marks), MARKS_OF_A_LINE):
        yield f"    {', '.join(map(json.dumps, marks[first : first + MARKS_OF_A_LINE]))},"
    yield "  ]"
