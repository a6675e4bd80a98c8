"""The text of a monitor file that goes to another folder: its relative paths still lead there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import yaml

from forewarn.config.includes import SHIPPED

ANY = "*"
PLACES = (
    ("model",),
    ("include", ANY),
    ("include", ANY, "file"),
    ("signals", ANY, "rules"),
    ("shapes", ANY, "file"),
    ("learning", "group_source"),
    ("anomaly", "file"),
    ("black_box", "folder"),
)
"""Keys of a monitor file whose values are paths that start at the file."""


def moved(text: str, source: Path, target: Path) -> str:
    """Return the text of a monitor file with its paths written for another folder.

    Parameters
    ----------
    text : str
        A valid monitor file.
    source, target : Path
        Where it is, and where it goes.
    """
    before, after = source.resolve().parent, target.resolve().parent
    if before == after:
        return text
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    spots = [spot for place in PLACES for spot in _found(root, place) if _is_relative(spot.value)]
    # From the end, so that places before stay where they are; an alias comes twice.
    for spot in sorted({s.start_mark.index: s for s in spots}.values(), key=_begin, reverse=True):
        path = json.dumps(os.path.relpath(before / spot.value, after), ensure_ascii=False)
        text = text[: _begin(spot)] + path + text[spot.end_mark.index :]
    return text


def _begin(node: yaml.ScalarNode) -> int:
    return int(node.start_mark.index)


def _is_relative(name: str) -> bool:
    # A pattern of recordings does not start at the file. A variable is a whole path as a rule.
    return not ("{" in name or name.startswith(("~", "$", SHIPPED)) or Path(name).is_absolute())


def _found(node: yaml.Node | None, place: tuple[str, ...]) -> Iterator[yaml.ScalarNode]:
    if not place:
        if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":str"):
            yield node
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if place[0] in (ANY, key.value):
                yield from _found(value, place[1:])
    elif isinstance(node, yaml.SequenceNode) and place[0] == ANY:
        for value in node.value:
            yield from _found(value, place[1:])
