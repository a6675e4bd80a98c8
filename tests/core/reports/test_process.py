"""Large trees and processes: what is drawn can be read, and what is not is said."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

from forewarn.models.process import Flow
from forewarn.reports.page import assembled, section
from forewarn.reports.process import MOST_ROWS, ProcessView, process_body
from forewarn.wings.trees.nodes import Leaf, Node, Split
from forewarn.wings.trees.predicate_tree import LeafNote, tree_list

Look = Callable[..., Any]


def grown(number: int, first: int = 0, depth: int = 0) -> Node:
    if number == 1:
        return Leaf(f"s{first}")
    half = number // 2
    return Split(f"x > {first + half}", grown(half, first), grown(number - half, first + half))


def process(states: int, actions: int, seed: int = 0) -> ProcessView:
    chance = random.Random(seed)
    flows = [
        Flow(f"s{state}", f"a{action}", f"s{chance.randrange(states)}", chance.randint(1, 50))
        for state in range(states)
        for action in range(actions)
        for _ in range(3)
    ]
    values = {f"s{state}": chance.random() for state in range(states)}
    policy = {f"s{state}": "a0" for state in range(states)}
    return ProcessView(flows, values, policy, {"s0": 7}, ("s499", "s3"))


def test_five_hundred_states_are_read_from_a_few_and_a_table(look: Look) -> None:
    view = process(500, 3)
    body = process_body(view, "map")
    shown = look(assembled("t", "", [("process", "Process", section("process", "P", "", body))]))
    names = shown.evaluate(
        "[...document.querySelectorAll('svg text.strong')].map(e => e.textContent)"
    )
    assert len(names) == 14 and {"s499", "s3"} <= set(names)
    assert "14 of 500 states" in body
    rows = shown.evaluate("document.querySelector('table').tBodies[0].rows.length")
    assert rows == MOST_ROWS and f"{1500 - MOST_ROWS:,} more" in body
    shown.evaluate("document.querySelector('details').open = true")
    shown.wait("document.getElementById('map').data")
    assert shown.evaluate("document.getElementById('map').data[0].x.length") == 500
    # No box covers another one.
    boxes = shown.evaluate(
        "[...document.querySelectorAll('svg rect.box')].map(e => e.getBBox())"
        ".map(b => [b.x, b.y, b.width, b.height])"
    )
    for i, (x, y, width, height) in enumerate(boxes):
        for left, top, wide, high in boxes[:i]:
            assert x + width <= left or left + wide <= x or y + height <= top or top + high <= y


def test_arrows_are_the_shares_of_the_counts() -> None:
    flows = [Flow("a", "go", "b", 30), Flow("a", "stay", "a", 50), Flow("a", "go", "c", 20)]
    body = process_body(ProcessView(flows, {}, {"a": "go"}, {"a": 4}), "map")
    assert "a to b: 30 % (go 30 times)" in body and "a to c: 20 % (go 20 times)" in body
    assert "stays 50 %" in body and "4 runs begin here" in body
    assert body.count('<g class="arrow chosen">') == 2


def test_of_a_large_tree_the_rarest_parts_are_folded() -> None:
    chance = random.Random(1)
    notes = {f"s{i}": LeafNote(chance.randint(1, 1000), (("go", 1),)) for i in range(400)}
    body = tree_list(grown(400), notes)
    assert body.count("<details") == 399
    unfolded = body.count("<details open")
    assert 30 <= unfolded <= 60
    # Fifty leaves are all shown.
    assert tree_list(grown(50), notes).count("<details open") == 49
    total = sum(note.number for note in notes.values())
    assert f"400 leaves, {total:,} moments" in re.sub(r"<[^>]*>", "", body)
