"""Refinement by counterexamples: what is real stays, what the tree made up goes."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.errors import CheckingError
from forewarn.wings.trees.growth import Growth
from forewarn.wings.trees.nodes import Leaf, Split, leaves
from forewarn.wings.trees.refined import Limits, RefinementQuery
from forewarn.wings.trees.refinement import GOAL, Refiner


def _compile(text):
    name, threshold = text.split(" > ")
    place = "vw".index(name)
    return lambda state: None if state[place] is None else state[place] > float(threshold)


ALL = Leaf("all")


def _refiner(runs, held_out=None, tree=ALL):
    return Refiner(tree, "vw", runs, runs if held_out is None else held_out, _compile)


def _mixed(n, share, seed=0):
    """A share of the runs may do 'risk' after 'go', and then fails; the others stop."""
    chance = random.Random(seed)
    runs = []
    for _ in range(n):
        risky = chance.random() < share
        noise = chance.randint(0, 3)
        middle = (5 if risky else 1, noise, False)
        last = (9, 9, True) if risky else (0, 0, False)
        runs.append([("", (2, noise, False)), ("go", middle), ("risk" if risky else "stop", last)])
    return runs


def test_a_danger_that_only_merged_states_have_goes():
    # One leaf for everything: from any state the agent might do what only some states allow.
    found = _refiner(_mixed(200, 0.1)).refine(RefinementQuery(True, 0.3), Limits())
    assert found.ending == "holds"
    assert found.rounds[0].before.estimate == pytest.approx(1.0)
    assert found.answer.estimate == pytest.approx(found.real, abs=1e-9)
    assert found.answer.estimate < 0.2
    assert len(leaves(found.tree)) == found.answer.leaves > 1
    assert found.answer.loss < found.rounds[0].before.loss


def test_no_split_loses_the_moments_at_which_its_variable_is_unknown():
    runs = [
        [(action, (None if state[0] == 5 else state[0], *state[1:])) for action, state in run]
        for run in _mixed(200, 0.1)
    ]
    found = _refiner(runs).refine(RefinementQuery(True, 0.3), Limits())
    assert sum(flow.times for flow in found.flows) == sum(len(run) - 1 for run in runs)
    assert found.ending == "no split" and found.answer.estimate > 0.3
    assert not any(one.condition.startswith("v") for one in found.rounds)


def test_a_danger_that_runs_really_have_stays():
    found = _refiner(_mixed(200, 0.6)).refine(RefinementQuery(True, 0.3), Limits())
    assert found.ending == "real"
    assert found.real > 0.3
    assert found.critical is not None and found.critical.probability > 0.3
    assert GOAL in found.critical.states
    assert found.critical.minimal == (found.critical.at_least == len(found.critical.states))
    assert any(way.runs for way in found.paths)


def test_a_way_says_how_far_runs_bear_it_out():
    found = _refiner(_mixed(200, 0.1)).refine(RefinementQuery(True, 0.01), Limits(rounds=1))
    for way in found.paths:
        states = len(way.path[::2])
        assert (way.seen == states) == (way.runs > 0) and 0 <= way.seen <= states
    assert any(not way.runs for way in found.paths)


def test_the_process_at_the_end_counts_every_step_of_the_runs():
    runs = _mixed(200, 0.6)
    found = _refiner(runs).refine(RefinementQuery(True, 0.3), Limits())
    # Known variables only: each step of each run is in it, but for what follows the goal.
    assert sum(flow.times for flow in found.flows) == sum(len(run) - 1 for run in runs)
    assert sum(one.starts for one in found.leaves.values()) == 200
    mean = sum(one.starts * one.value for one in found.leaves.values()) / 200
    assert mean == pytest.approx(found.answer.estimate)
    assert found.leaves[GOAL].value == 1.0
    for leaf, one in found.leaves.items():
        assert not one.action or any((leaf, one.action) == flow[:2] for flow in found.flows)


def test_a_bound_that_holds_is_left_alone():
    found = _refiner(_mixed(100, 0.1)).refine(RefinementQuery(False, 0.9), Limits())
    assert (found.ending, found.rounds) == ("holds", ())
    assert found.critical is None


def test_a_budget_ends_it():
    found = _refiner(_mixed(200, 0.1)).refine(RefinementQuery(True, 0.01), Limits(rounds=1))
    assert found.ending == "budget" and len(found.rounds) == 1


def test_a_split_that_held_out_runs_do_not_bear_out_is_none():
    # Which runs are risky does not follow from what is seen: v is noise here.
    chance = random.Random(3)

    def noisy(n):
        return [
            [
                ("", (2, 0, False)),
                ("go", (chance.random(), chance.random(), False)),
                ("risk", (9, 9, True)) if chance.random() < 0.2 else ("stop", (0, 0, False)),
            ]
            for _ in range(n)
        ]

    growth = Growth(leaf_size=3)
    tree = Split("v > 1", Leaf("start"), Leaf("middle"))
    found = _refiner(noisy(60), noisy(60), tree).refine(
        RefinementQuery(True, 0.4), Limits(rounds=50, growth=growth)
    )
    assert found.ending == "no split" and found.rejected
    assert len(found.rounds) < 5
    free = _refiner(noisy(60), None, tree).refine(
        RefinementQuery(True, 0.4), Limits(rounds=50, growth=growth)
    )
    assert len(free.rounds) > len(found.rounds)


def test_no_variable_is_asked_twice_where_that_is_wished():
    growth = Growth(reuse=False)
    found = _refiner(_mixed(200, 0.1), tree=Split("v > 1", Leaf("a"), Leaf("b"))).refine(
        RefinementQuery(True, 0.3), Limits(growth=growth)
    )
    assert all("w" in one.condition for one in found.rounds)


def test_runs_that_never_reach_the_goal_are_an_error():
    with pytest.raises(CheckingError, match="no run reaches the goal"):
        _refiner(_mixed(20, 0.0))


_step = st.tuples(
    st.sampled_from(["go", "stop"]),
    st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(0, 3)), st.just(False)),
)
_runs = st.lists(st.lists(_step, min_size=1, max_size=6), min_size=2, max_size=12)


@given(_runs, st.booleans(), st.floats(0.0, 0.9))
def test_evidence_and_what_is_lost_are_what_the_process_promises(runs, maximise, bound):
    runs = [
        [(("" if i == 0 else action), state) for i, (action, state) in enumerate(run)]
        for run in runs
    ]
    runs[0].append(("go", (9, 9, True)))
    refiner = _refiner(runs, tree=Split("v > 1", Leaf("a"), Leaf("b")))
    question = RefinementQuery(maximise, bound)
    made = refiner._made(question)
    real, lost = refiner._evidence(made)
    assert real + sum(lost.values()) == pytest.approx(made.answer.estimate, abs=1e-9)
    assert made.answer.lower <= made.answer.estimate + 1e-9 <= made.answer.upper + 2e-9
    found = refiner.refine(question, Limits(rounds=6))
    assert found.ending in ("holds", "real", "no split", "budget")
    assert (found.ending == "holds") == (found.answer.estimate <= bound)
    assert found.ending != "real" or found.real > bound
    assert len(set(leaves(found.tree))) == found.answer.leaves
    counted = Counter(round_.leaf for round_ in found.rounds)
    assert max(counted.values(), default=1) == 1  # a leaf that was split is gone


def test_names_that_are_taken_are_not_given_again():
    tree = Split("v > 1", Leaf("all_y"), Leaf("all"))
    found = _refiner(_mixed(200, 0.1), tree=tree).refine(
        RefinementQuery(True, 0.0), Limits(rounds=9)
    )
    assert len(set(leaves(found.tree))) == len(leaves(found.tree))
