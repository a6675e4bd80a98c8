"""Tree, trie and process stay linked, whatever is added or split."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.errors import CheckingError
from forewarn.models.trie import ROOT
from forewarn.wings.trees.linked_abstraction import LinkedAbstraction, link
from forewarn.wings.trees.nodes import Leaf, Split, leaves

X_HIGH = Split("x > 2", Leaf("high"), Leaf("low"))


def _compile(text):
    name, threshold = text.split(" > ")
    place = "xy".index(name)

    def condition(state):
        return None if state[place] is None else state[place] > int(threshold)

    return condition


_state = st.tuples(*[st.one_of(st.none(), st.integers(0, 5))] * 2)
_run = st.lists(st.tuples(st.sampled_from(["go", "stop"]), _state), min_size=1, max_size=8)
_split = st.tuples(
    st.integers(0, 20), st.sampled_from(["x > 1", "x > 3", "y > 0", "y > 2", "y > 4"])
)


def _counted(linked, runs):
    """The process by its definition, without trie or handles."""
    counts = Counter()
    for run in runs:
        names = [linked.leaf_of(state) for _, state in run]
        for before, (action, _), after in zip(names, run[1:], names[1:], strict=False):
            if before is not None and after is not None:
                counts[before, action, after] += 1
    return counts


def _named(linked):
    return Counter(
        {
            (linked.by_vertex[e.state].leaf, e.action, linked.by_vertex[e.following].leaf): n
            for e, n in linked.counts.items()
        }
    )


def _split_some(linked, splits):
    for number, (which, condition) in enumerate(splits):
        names = leaves(linked.tree)
        linked.split(names[which % len(names)], condition, f"a{number}", f"b{number}")
        linked.check()


@given(st.lists(_run, min_size=1, max_size=8), st.lists(_split, max_size=5))
def test_every_update_and_every_split_keeps_the_invariants(runs, splits):
    linked = LinkedAbstraction(X_HIGH, _compile)
    linked.check()
    for run in runs:
        endpoint = ROOT
        for step, (action, state) in enumerate(run):
            endpoint = linked.step(endpoint, action if step else "", state)
            linked.check()
    _split_some(linked, splits)
    assert _named(linked) == _counted(linked, runs)


@given(st.lists(_run, min_size=1, max_size=6), st.lists(_split, max_size=4))
def test_splitting_before_or_after_the_runs_gives_one_process(runs, splits):
    after = link(X_HIGH, runs, _compile)
    _split_some(after, splits)
    before = LinkedAbstraction(X_HIGH, _compile)
    _split_some(before, splits)
    fresh = link(before.tree, runs, _compile)
    assert before.tree == after.tree
    assert _named(fresh) == _named(after)


@given(st.lists(_run, min_size=1, max_size=8), st.data())
def test_a_path_is_real_exactly_if_one_run_takes_it(runs, data):
    linked = link(X_HIGH, [[("", run[0][1]), *run[1:]] for run in runs], _compile)
    states = data.draw(st.lists(st.sampled_from(["high", "low"]), min_size=1, max_size=4))
    actions = data.draw(
        st.lists(
            st.sampled_from(["go", "stop"]), min_size=len(states) - 1, max_size=len(states) - 1
        )
    )
    found = linked.concretise([linked.by_leaf[name].vertex for name in states], actions)

    def agreed(run):
        steps = 0
        for place, name in enumerate(states):
            if place >= len(run) or linked.leaf_of(run[place][1]) != name:
                break
            if place and run[place][0] != actions[place - 1]:
                break
            steps += 1
        return steps

    longest = max(map(agreed, runs))
    assert (found.step, found.real) == (longest, longest == len(states))
    assert bool(found.endpoints) == bool(longest)


def test_equal_runs_share_their_endpoints():
    run = [("", (0, 0)), ("go", (3, 0)), ("go", (3, 1))]
    linked = link(X_HIGH, [run] * 1000, _compile)
    assert len(linked.trie) == 3
    assert sum(linked.counts.values()) == 2000
    assert linked.initial() == {linked.by_leaf["low"].vertex: 1000}
    trie = linked.trie
    [first] = trie.following(ROOT)
    assert (trie.action[first], trie.state[first]) == ("", (0, 0))


def test_only_what_a_split_concerns_changes():
    linked = link(X_HIGH, [[("", (0, 0)), ("go", (3, 0)), ("go", (3, 1))]], _compile)
    low = linked.by_leaf["low"]
    linked.split("high", "y > 0", "late", "early")
    assert linked.by_leaf["low"] is low
    assert leaves(linked.tree) == ("late", "early", "low")


def test_a_leaf_that_is_not_there_is_named():
    with pytest.raises(CheckingError, match=r"no leaf 'middle' \(accepted: high, low\)"):
        LinkedAbstraction(X_HIGH, _compile).split("middle", "y > 0", "a", "b")


def test_a_run_of_a_hundred_thousand_steps_is_no_problem():
    run = [("", (0, 0)), *(("go", (step % 6, 0)) for step in range(1, 100_000))]
    linked = link(X_HIGH, [run], _compile)
    linked.split("high", "x > 4", "five", "some")
    vertices = [linked.by_leaf[linked.leaf_of(state)].vertex for _, state in run]
    assert linked.concretise(vertices, ["go"] * 99_999).real
    assert sum(linked.counts.values()) == 99_999
