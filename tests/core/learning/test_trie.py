"""Which numbers the runs of a trie have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forewarn.models.trie import ROOT, Trie

RUNS = st.lists(
    st.lists(st.tuples(st.sampled_from("ab"), st.tuples(st.integers(0, 1))), min_size=1, max_size=4)
)


@given(RUNS)
def test_each_run_has_a_number_of_its_own_among_those_of_each_endpoint_on_its_way(runs):
    trie, ways = Trie(), []
    for run in runs:
        way = [ROOT]
        for action, state in run:
            way.append(trie.enter(way[-1], action, state)[0])
        ways.append(way)
    first, numbers = trie.first_runs(), trie.numbers(runs)
    assert sorted(numbers) == list(range(len(runs)))
    for endpoint in trie.endpoints():
        through = {n for n, way in zip(numbers, ways, strict=True) if endpoint in way}
        assert through == {*range(first[endpoint], first[endpoint] + trie.runs[endpoint])}
