"""A predicate tree as a list that folds: conditions, and what ended in each leaf."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from forewarn.cli.editing import shortened
from forewarn.reports.figures import percent
from forewarn.reports.page import escape
from forewarn.reports.palette import SERIES
from forewarn.wings.trees.nodes import Leaf, Node, leaves

UNFOLDED = 60
SHOWN_CLASSES = 4


class LeafNote(NamedTuple):
    """How many moments ended in a leaf, of which classes (most frequent first), and a remark."""

    number: int
    classes: tuple[tuple[str, int], ...] = ()
    remark: str = ""


def tree_list(tree: Node, notes: Mapping[str, LeafNote]) -> str:
    """Return the tree as HTML; of a large one the rarest parts are folded."""
    numbers: dict[int, int] = {}
    _count(tree, notes, numbers)
    colours = _colours(notes)
    key = "".join(
        f'<span><i style="background:var(--c-series{i})"></i>{escape(name)}</span>'
        for name, i in colours.items()
    )
    body = _node("", tree, notes, numbers, _unfolded(tree, numbers), colours)
    key += "<span><i></i>others</span>" if len(colours) == len(SERIES) else ""
    return (f'<p class="key">{key}</p>' if key else "") + f'<div class="nodes">{body}</div>'


def _colours(notes: Mapping[str, LeafNote]) -> dict[str, int]:
    """Return the classes that have a colour of their own: the most frequent ones."""
    total: Counter[str] = Counter()
    for note in notes.values():
        total.update(dict(note.classes))
    return {name: i for i, (name, _) in enumerate(total.most_common(len(SERIES)))}


def _count(node: Node, notes: Mapping[str, LeafNote], numbers: dict[int, int]) -> int:
    if isinstance(node, Leaf):
        found = notes[node.name].number if node.name in notes else 0
    else:
        found = _count(node.then, notes, numbers) + _count(node.otherwise, notes, numbers)
    numbers[id(node)] = found
    return found


def _unfolded(tree: Node, numbers: Mapping[int, int]) -> set[int]:
    """Return the nodes to begin with unfolded: those with most moments, so that all can be read."""
    found: set[int] = set()
    waiting: list[tuple[int, int, Node]] = [(0, 0, tree)]
    lines = 1
    while waiting and lines < UNFOLDED:
        _, _, node = heapq.heappop(waiting)
        if isinstance(node, Leaf):
            continue
        found.add(id(node))
        lines += 1
        for child in (node.then, node.otherwise):
            heapq.heappush(waiting, (-numbers[id(child)], len(found) * 2 + len(waiting), child))
    return found


def _node(
    way: str,
    node: Node,
    notes: Mapping[str, LeafNote],
    numbers: Mapping[int, int],
    unfolded: set[int],
    colours: Mapping[str, int],
) -> str:
    if isinstance(node, Leaf):
        return _leaf(way, node.name, notes.get(node.name), colours)
    parts = "".join(
        f"<li>{_node(_way(word), child, notes, numbers, unfolded, colours)}</li>"
        for word, child in (("yes", node.then), ("no", node.otherwise))
    )
    size = f"{len(leaves(node))} leaves, {numbers[id(node)]:,} moments"
    return (
        f"<details{' open' if id(node) in unfolded else ''}>"
        f"<summary>{way}<code>{escape(shortened(node.condition))}</code><small>{size}</small></summary>"
        f"<ul>{parts}</ul></details>"
    )


def _way(word: str) -> str:
    return f"<span class=way>{word}</span>"


def _leaf(way: str, name: str, note: LeafNote | None, colours: Mapping[str, int]) -> str:
    if note is None:
        return f"<div class=leaf><span>{way}<b>{escape(name)}</b></span></div>"
    notes = [f"{note.number:,} moments", note.remark, _shares(note) if note.classes else ""]
    return (
        f"<div class=leaf><span>{way}<b>{escape(name)}</b></span>{_bar(note, colours)}"
        f"<span class=remark>{escape('; '.join(filter(None, notes)))}</span></div>"
    )


def _bar(note: LeafNote, colours: Mapping[str, int]) -> str:
    if not note.classes or not note.number:
        return ""
    named = [(name, count) for name, count in note.classes if name in colours]
    parts = "".join(
        f'<i style="width:{100 * count / note.number:.1f}%;'
        f'background:var(--c-series{colours[name]})"></i>'
        for name, count in named
    )
    return f'<span class="bar" aria-hidden="true">{parts}</span>'


def _shares(note: LeafNote) -> str:
    shown: Sequence[tuple[str, int]] = note.classes[:SHOWN_CLASSES]
    text = ", ".join(f"{name} {percent(count / note.number)}" for name, count in shown)
    rest = len(note.classes) - len(shown)
    return text + (f" and {rest} more" if rest else "")
