"""How violations come about, on chains small enough to see it."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.logic.specification import compile_spec
from forewarn.models.counts import CountModel
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.tables import CompiledProperty
from forewarn.reports.paths import likeliest_way
from forewarn.reports.tree import Tree, violation_tree
from forewarn.reports.treepicture import Change, changes, tree_picture
from forewarn.states.vocabulary import Vocabulary

TEXT = (
    "version: 1\nrate: 1\nsignals: {a: {}, b: {}, c: {}}\n"
    "predicates: {p: a > 0, q: b > 0, r: c > 0}\nbounds: {kind: none}\nproperties:\n"
    "  never: {formula: always(not (p and q)), horizon: 5}\n"
    "  answered: {formula: 'always(p implies eventually[0:2](q))', horizon: 5}\n"
)


COMPILED = compile_spec(parse_spec(parse_document(TEXT)))


def solved(counts: Any, states: tuple[int, ...]) -> tuple[CountModel, dict[str, CompiledProperty]]:
    """Return a model over states of three predicates (bit 0 is p), and its properties."""
    starts = np.zeros(len(states), dtype=np.int64)
    starts[0] = 1
    model = CountModel(
        vocabulary=COMPILED.abstraction.vocabulary,
        rate=1.0,
        digest=COMPILED.abstraction.digest,
        states=states,
        counts=sparse.csr_matrix(np.array(counts, dtype=np.int64)),
        starts=starts,
    )
    monitor = build_monitor(COMPILED, model)
    return model, {prop.name: prop for prop in monitor.properties}


def two_ways() -> tuple[CountModel, Tree]:
    # none -> p (10) -> p and q (4 of 5), none -> q (20) -> p and q (1 of 10); pq lasts, then none
    model, found = solved(
        [[70, 10, 20, 0], [1, 50, 0, 4], [9, 0, 7, 1], [5, 0, 0, 30]], (0b000, 0b001, 0b010, 0b011)
    )
    tree = violation_tree(found["never"], model)
    assert tree is not None
    return model, tree


def test_the_commonest_last_steps_come_first_with_their_numbers() -> None:
    _, tree = two_ways()
    assert [(step.parent, step.row) for step in tree.steps] == [(-1, 0), (0, 1), (0, 2)]
    assert [(ending.step, ending.number) for ending in tree.endings] == [(1, 4), (2, 1)]
    assert tree.total == 5, "a violation that lasts is no other one"
    assert tree.exact


def test_probabilities_leave_out_ticks_that_change_nothing() -> None:
    _, tree = two_ways()
    assert [step.probability for step in tree.steps] == pytest.approx([1, 10 / 30, 20 / 30])
    assert [ending.probability for ending in tree.endings] == pytest.approx([4 / 5, 1 / 10])


def test_a_countdown_in_one_state_is_one_box() -> None:
    model, found = solved(
        [[90, 10, 0, 0], [0, 6, 0, 4], [0, 0, 1, 0], [8, 0, 0, 1]], (0b000, 0b001, 0b010, 0b011)
    )
    tree = violation_tree(found["answered"], model)
    assert tree is not None
    assert [(step.row, step.ticks) for step in tree.steps] == [(0, 1), (1, 2)]
    # Two more ticks in p: one within the box, the last one violates.
    assert tree.steps[1].stay == pytest.approx(0.6)
    assert tree.endings[0].probability == pytest.approx(0.6 * 0.6)
    assert not tree.exact


@given(st.lists(st.integers(0, 4), min_size=36, max_size=36))
def test_its_ways_are_ways_of_the_chain_and_the_likeliest_is_among_them(numbers: list[int]) -> None:
    counts = np.array(numbers).reshape(6, 6)
    counts[0] *= 3
    model, found = solved(counts, (0, 1, 2, 3, 4, 6))
    compiled = found["never"]
    tree, way = violation_tree(compiled, model, ways=99), likeliest_way(compiled, model)
    start = int(np.argmax(model.visits))
    if start == 3:
        return  # the commonest state is the violation itself: there is no way to it
    if tree is None:
        assert way is None
        return
    moves = counts * (1 - np.eye(6, dtype=int))
    for step in tree.steps[1:]:
        before = tree.steps[step.parent].row
        assert step.probability == pytest.approx(moves[before, step.row] / moves[before].sum())
    assert sum(one_ending.number for one_ending in tree.endings) == tree.total
    lengths = []
    for ending in tree.endings:
        length, i = -math.log(ending.probability), ending.step
        while i >= 0:
            length -= math.log(tree.steps[i].probability)
            i = tree.steps[i].parent
        lengths.append(length)
    assert way is not None
    assert math.exp(-min(lengths)) == pytest.approx(way.probability)


VOCABULARY = Vocabulary(("red", "gap<1", "gap<2", "fast"), ("hit",))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, 0b0111, [("red", True), ("gap < 1", True)]),
        (None, 0, [("none of the predicates", True)]),
        (0b0100, 0b0110, [("gap < 1", True)]),
        (0b0110, 0b0100, [("gap \u2265 1", True)]),
        (0b0110, 0b1000, [("fast", True), ("gap \u2265 1", True)]),
        (0b1001, 0b0001, [("fast", False)]),
        (0b0001, -1, [("hit", True), ("red", False)]),
    ],
)
def test_a_box_says_what_changes(
    before: int | None, after: int, expected: list[tuple[str, bool]]
) -> None:
    assert changes(VOCABULARY, before, after) == [Change(*item) for item in expected]


def test_the_picture_is_well_formed_and_boxes_do_not_overlap() -> None:
    model, found = solved(
        [[70, 10, 20, 2], [1, 50, 0, 4], [9, 0, 7, 1], [5, 0, 0, 30]], (0b000, 0b001, 0b010, 0b011)
    )
    picture = tree_picture(found["never"], model)
    assert picture is not None
    svg = ElementTree.fromstring(picture)
    boxes = [
        tuple(float(item.attrib[k]) for k in ("x", "y", "width", "height"))
        for item in svg.iter("rect")
        if item.attrib.get("class") == "box"
    ]
    assert len(boxes) == 3
    for i, (x, y, w, h) in enumerate(boxes):
        for u, v, s, t in boxes[:i]:
            assert x + w <= u or u + s <= x or y + h <= v or v + t <= y
    texts = [item.text for item in svg.iter("text")]
    assert "+ p" in texts
    assert "57% of all" in texts, "4 of 7"


def test_names_in_the_picture_cannot_become_markup() -> None:
    model, found = solved(
        [[70, 10, 0, 0], [1, 5, 0, 4], [9, 0, 7, 1], [5, 0, 0, 3]], (0b000, 0b001, 0b010, 0b011)
    )
    evil = "<script>alert('1')</script>&"
    names = Vocabulary((evil, "q", "r"))
    object.__setattr__(model, "vocabulary", names)
    picture = tree_picture(found["never"], model)
    assert picture is not None
    assert "<script" not in picture
    assert any(evil in (e.text or "") for e in ElementTree.fromstring(picture).iter("title"))


def test_600_states_leave_a_readable_part() -> None:
    """Sixty ways through ten states each: five of them are shown, forty boxes at the most."""
    rng = np.random.default_rng(5)
    size = 602
    counts = np.zeros((size, size), dtype=np.int64)
    for way in range(60):
        rows = [0, *range(1 + way * 10, 11 + way * 10), 601]
        for a, b in itertools.pairwise(rows):
            counts[a, b] += rng.integers(1, 60)
            counts[a, 0] += 10
    counts[601, 0] = 30
    counts[0, 0] = 10_000
    states = (*(i << 2 for i in range(601)), 3)
    text = re.sub("r: c > 0", ", ".join(f"r{i}: c > {i}" for i in range(10)), TEXT)
    compiled = compile_spec(parse_spec(parse_document(text)))
    starts = np.zeros(size, dtype=np.int64)
    starts[0] = 1
    model = CountModel(
        vocabulary=compiled.abstraction.vocabulary, rate=1.0, digest=compiled.abstraction.digest,
        states=states, counts=sparse.csr_matrix(counts), starts=starts,
    )  # fmt: skip
    monitor = build_monitor(compiled, model)
    (never,) = [prop for prop in monitor.properties if prop.name == "never"]
    tree = violation_tree(never, model)
    assert tree is not None
    assert len(tree.steps) == 51
    into = sorted((int(counts[10 + way * 10, 601]) for way in range(60)), reverse=True)
    assert [ending.number for ending in tree.endings] == into[:5]
    assert tree.total == sum(into)
    picture = tree_picture(never, model)
    assert picture is not None
    width = float(ElementTree.fromstring(picture)[0].attrib["width"])
    assert width < 1180
