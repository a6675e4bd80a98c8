"""The message definitions: all built, every field explained and with a unit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "ros2_ws" / "src" / "forewarn_msgs"
DEFINITIONS = sorted(FOLDER.glob("msg/*.msg")) + sorted(FOLDER.glob("srv/*.srv"))
UNIT = re.compile(r"\b(seconds|m/s|dimensionless|unit|probability|probabilities)\b", re.IGNORECASE)


def fields(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield type, name and comment of each field; fields of one block share its comment."""
    comment = ""
    for line in path.read_text().splitlines():
        text, _, trailing = line.partition("#")
        if not line.strip() or line == "---":
            comment = ""
        elif not text.strip():
            comment += trailing
        else:
            kind, name = text.split()[:2]
            yield kind, name, comment + trailing


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.name)
def test_every_field_and_constant_is_explained(path: Path) -> None:
    bare = [name for _, name, comment in fields(path) if len(comment.split()) < 3]
    # A constant's own remark may be short where a sentence stands above the group.
    assert not bare, f"{path.name}: {bare} have no comment"


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.name)
def test_every_real_number_has_a_unit(path: Path) -> None:
    bare = [n for kind, n, text in fields(path) if "float" in kind and not UNIT.search(text)]
    assert not bare, f"{path.name}: {bare} have no unit"


def test_all_definitions_are_built() -> None:
    listed = re.findall(r"(?:msg|srv)/\w+\.(?:msg|srv)", (FOLDER / "CMakeLists.txt").read_text())
    assert sorted(listed) == sorted(str(p.relative_to(FOLDER)) for p in DEFINITIONS)
