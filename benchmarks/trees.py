"""A million steps of runs into the linked structure of tree, trie and process, in bounded memory.

The tree has 32 leaves over two numbers; a state has six values, of which one counts the steps, so
that hardly two steps are alike and the trie shares nothing. `runs` are of 50 steps each; `endless`
is one run. Time is processor time of a step, memory the resident size after a fifth of the steps
and after all; at most 100,000 steps stay. Python's dictionaries double at times as keys come
and go, by 5 or 10 MB here, which is why some growth is allowed.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator

from benchmarks._harness import Cell, Table, Target, resident
from benchmarks._harness import run as serve
from forewarn.models.trie import ROOT, Concrete
from forewarn.wings.trees.concrete import condition_of
from forewarn.wings.trees.linked_abstraction import LinkedAbstraction
from forewarn.wings.trees.nodes import Leaf, Node, Split

VARIABLES = ("speed", "gap", "count", "flag", "tool", "errors")
ACTIONS = ("read", "write", "search", "send")
MOST = 100_000


def _tree(depth: int, path: str = "s") -> Node:
    if not depth:
        return Leaf(path)
    variable = VARIABLES[depth % 2]
    threshold = random.Random(path).randint(1, 98)
    ways = (_tree(depth - 1, f"{path}{bit}") for bit in "yn")
    return Split(f"{variable} > {threshold}", *ways)


def _states(steps: int) -> Iterator[tuple[str, Concrete]]:
    draw = random.Random(1)
    for number in range(steps):
        action = ACTIONS[draw.randrange(4)]
        state = (draw.randrange(100), draw.randrange(100), number, draw.random() < 0.5, action, 0)
        yield action, state


def _measure(name: str, steps: int, length: int | None) -> list[tuple[Cell, ...]]:
    linked = LinkedAbstraction(_tree(5), lambda text: condition_of(text, VARIABLES), MOST)
    endpoint, early, spent = ROOT, 0.0, 0
    for number, (action, state) in enumerate(_states(steps)):
        begin = time.thread_time_ns()
        if length is not None and number % length == 0:
            linked.end(endpoint)
            endpoint = ROOT
        endpoint = linked.step(endpoint, action if endpoint != ROOT else "", state)
        spent += time.thread_time_ns() - begin
        if number == steps // 5:
            early = resident()
    growth = resident() - early
    linked.check()
    return [
        (f"{name}: a step", "us", spent / 1e3 / steps, Target(20.0)),
        (f"{name}: endpoints at the end", "", len(linked.trie), Target(MOST)),
        (f"{name}: memory after a fifth of the steps", "MB", early, None),
        (f"{name}: growth over the others", "MB", growth, Target(25.0)),
    ]


def measure(steps: int = 1_000_000) -> list[Table]:
    """Take so many steps twice: as runs of fifty steps, and as one run without end."""
    rows = [*_measure("runs", steps, 50), *_measure("endless", steps, None)]
    return [Table(("What", "Unit", "Figure", "Target"), rows)]


if __name__ == "__main__":
    sys.exit(serve(measure))
