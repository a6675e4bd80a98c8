"""Executions merged into trees, and formulas on them."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import numpy as np
import pytest
from extent import WHOLE
from hypothesis import given
from hypothesis import strategies as st

from forewarn.checking.ctl import parse
from forewarn.errors import CheckingError
from forewarn.wings.plans.computation_tree import (
    Tree,
    TreeBuilder,
    branches,
    breaks_at,
    graph_of,
    holds_at_the_start,
    judge_branches,
)

#: States are numbers: bit 0 says p, bit 1 says q.
BITS = {"p": 1, "q": 2}


def names(name: str, states: np.ndarray) -> np.ndarray:
    return (states & BITS[name]) > 0


def merged(*runs: str | list[int]) -> tuple[TreeBuilder, Tree]:
    builder = TreeBuilder()
    for number, run in enumerate(runs):
        builder.add([int(state) for state in run], f"run {number}")
    return builder, builder.tree()


def test_shared_prefixes_are_shared() -> None:
    builder, tree = merged("0123", "0122", "0123", "01")
    assert len(tree.parent) == 5
    assert tree.visits.tolist() == [4, 4, 3, 2, 1]
    assert tree.executions == 4
    assert [builder.first(branch.end) for branch in branches(tree)] == ["run 3", "run 0", "run 1"]
    edges, states = graph_of(tree)
    # Ending after 01 is a way of its own: nobody waited there and went on.
    assert edges.shape == (6, 6)
    assert states[5] == 1
    assert edges[5, 5] == 1
    assert edges[1, 1] == 0


def test_what_one_branch_decides_and_what_all_do() -> None:
    _, tree = merged("001", "002", "00")
    for text, holds in (
        ("AF p", False),
        ("EF p", True),
        ("EF p & EF q", True),
        ("AG (!p => EF p)", False),
        ("EX EF[<=1] p", True),
        ("EX EF[<=0] p", False),
        ("EG (!p & !q)", True),
        ("AG[<=1] !p", True),
    ):
        assert holds_at_the_start(tree, parse(text), names) == holds, text
    # Of no single execution both can be said.
    assert not any(holds for _, holds in judge_branches(tree, parse("EF p & EF q"), names))
    told = {
        tuple(b.states.tolist()): holds for b, holds in judge_branches(tree, parse("AF p"), names)
    }
    assert told == {(0, 0, 1): True, (0, 0, 2): False, (0, 0): False}


def test_the_moment_that_breaks_a_rule() -> None:
    _, tree = merged("00103")
    (branch,) = branches(tree)
    assert breaks_at(branch, parse("AG !p"), names) == 2
    assert breaks_at(branch, parse("AG !q & AG !p"), names) == 2
    assert breaks_at(branch, parse("AG (p => AF[<=1] q)"), names) == 2
    assert breaks_at(branch, parse("AF q"), names) is None


runs = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=1, max_size=8)


@given(
    runs=runs, text=st.sampled_from(["AG !p", "AF q", "A [!p U q]", "AG (p => AF[<=2] q)", "AX p"])
)
def test_a_tree_satisfies_what_all_of_its_executions_do(runs: list[list[int]], text: str) -> None:
    _, tree = merged(*runs)
    formula = parse(text)
    told = list(judge_branches(tree, formula, names))
    assert Counter(
        tuple(b.states.tolist()) for b, _ in told for _ in range(b.executions)
    ) == Counter(map(tuple, runs))
    # These say the same of every path: the tree satisfies them if each execution does.
    assert holds_at_the_start(tree, formula, names) == all(holds for _, holds in told)


def test_many_executions_take_the_room_of_their_tree() -> None:
    number = 100_000 if WHOLE else 10_000
    rng = np.random.default_rng(1)
    builder = TreeBuilder()
    tracemalloc.start()
    for one in range(number):
        builder.add(((rng.random(12) < 0.2) * (1 + one % 2)).tolist())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    tree = builder.tree()
    assert tree.executions == number
    assert len(tree.parent) < 2 * 2**13
    assert peak < 20_000_000


def test_a_tree_that_grows_too_large_is_refused() -> None:
    builder = TreeBuilder(most_nodes=10)
    builder.add(range(10))
    builder.add(range(10))
    with pytest.raises(CheckingError, match="more than 10 nodes"):
        builder.add([5])
