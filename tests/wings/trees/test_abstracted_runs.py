"""Tree, trie and process belong together, whatever is split."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from forewarn.models.trie import ROOT
from forewarn.wings.trees.abstracted_runs import AbstractedRuns
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
    names = linked.names
    return Counter(
        {(names[e.state], e.action, names[e.following]): n for e, n in linked.counts().items()}
    )


def _split_some(linked, splits):
    for number, (which, condition) in enumerate(splits):
        names = leaves(linked.tree)
        linked.split(names[which % len(names)], condition, f"a{number}", f"b{number}")
        assert {*linked.numbers} == {*leaves(linked.tree)}


@given(st.lists(_run, min_size=1, max_size=8), st.lists(_split, max_size=5))
def test_after_every_split_the_process_is_that_of_the_definition(runs, splits):
    linked = AbstractedRuns(X_HIGH, runs, _compile)
    assert _named(linked) == _counted(linked, runs)
    _split_some(linked, splits)
    assert _named(linked) == _counted(linked, runs)
    assert _named(AbstractedRuns(linked.tree, runs, _compile)) == _named(linked)
    for leaf in leaves(linked.tree):
        states = [linked.trie.state[endpoint] for endpoint in linked.endpoints(leaf)]
        assert all(linked.leaf_of(state) == leaf for state in states)


@given(st.lists(_run, min_size=1, max_size=8), st.data())
def test_a_path_is_real_exactly_if_one_run_takes_it(runs, data):
    linked = AbstractedRuns(X_HIGH, [[("", run[0][1]), *run[1:]] for run in runs], _compile)
    states = data.draw(st.lists(st.sampled_from(["high", "low"]), min_size=1, max_size=4))
    actions = data.draw(
        st.lists(
            st.sampled_from(["go", "stop"]), min_size=len(states) - 1, max_size=len(states) - 1
        )
    )
    found = linked.concretise([linked.numbers[name] for name in states], actions)

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
    linked = AbstractedRuns(X_HIGH, [run] * 1000, _compile)
    assert len(linked.trie) == 3
    assert sum(linked.counts().values()) == 2000
    assert linked.initial() == {linked.numbers["low"]: 1000}
    trie = linked.trie
    [first] = trie.following(ROOT)
    assert (trie.action[first], trie.state[first]) == ("", (0, 0))


def test_a_run_of_a_hundred_thousand_steps_is_no_problem():
    run = [("", (0, 0)), *(("go", (step % 6, 0)) for step in range(1, 100_000))]
    linked = AbstractedRuns(X_HIGH, [run], _compile)
    linked.split("high", "x > 4", "five", "some")
    vertices = [linked.numbers[linked.leaf_of(state)] for _, state in run]
    assert linked.concretise(vertices, ["go"] * 99_999).real
    assert sum(linked.counts().values()) == 99_999
