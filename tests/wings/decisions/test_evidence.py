"""Why a probability is as great as it is: policy, paths and part, against trying all paths."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from extent import examples
from scipy import sparse

from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.process import Step, ordered
from forewarn.states.vocabulary import Vocabulary
from forewarn.wings.decisions.evidence import WAYS, find_evidence
from forewarn.wings.decisions.process_query import answer_process_query, parse_process_query

SPACE = Vocabulary(("near", "fast"), ("collision", "arrived"))
STATES = (0, 1, 2, 3, -1, -2)
LONGEST = 7


def random_model(seed: int, alpha: object = "none") -> CountModel:
    chance = np.random.default_rng(seed)
    steps: Counter[Step] = Counter()
    chain = np.zeros((6, 6), dtype=np.int64)
    for state, action in itertools.product(range(4), ("go", "wait")):
        for following in chance.choice(6, size=2, replace=False).tolist():
            number = int(chance.integers(1, 30))
            steps[Step(action, False, state, STATES[following])] += number
            chain[state, following] += number
    starts = np.array([5, 3, 0, 0, 0, 0])
    return CountModel(
        SPACE, 10.0, "d", STATES, sparse.csr_matrix(chain), starts, Smoothing(alpha),  # type: ignore[arg-type]
        steps=ordered(steps),
    )  # fmt: skip


def answered(model: CountModel, text: str):
    query = parse_process_query(text)
    assert query is not None
    answer = answer_process_query(model, query)
    starts = model.starts / model.starts.sum()
    return answer, find_evidence(answer, starts), starts


def given_chain(answer, policy) -> np.ndarray:
    """Return the chain of a policy, by the names of its actions."""
    process = answer.counted.process
    rows = [
        next(c for c in range(*process.groups[i : i + 2]) if process.actions[c] == action)
        for i, action in enumerate(policy)
    ]
    return process.matrix[rows].toarray()


@pytest.mark.parametrize("word", ["max", "min"])
@pytest.mark.parametrize("seed", range(examples(12)))
def test_policy_and_paths_are_those_of_the_probability(seed: int, word: str) -> None:
    answer, evidence, starts = answered(random_model(seed), f"P{word}(collision)")
    chain = given_chain(answer, evidence.policy)
    goal = answer.goal
    # The policy attains the estimate.
    reached = goal.astype(float)
    for _ in range(5_000):
        reached = np.where(goal, 1.0, chain @ reached)
    assert reached == pytest.approx(answer.values.estimate, abs=1e-6)
    # All paths of up to so many steps, the most probable first.
    found = []
    waiting = [((i,), float(starts[i])) for i in range(6) if starts[i]]
    while waiting:
        path, probability = waiting.pop()
        if goal[path[-1]]:
            found.append(probability)
        elif len(path) <= LONGEST:
            waiting += [
                ((*path, j), probability * chain[path[-1], j]) for j in chain[path[-1]].nonzero()[0]
            ]
    found.sort(reverse=True)
    told = [way.probability for way in evidence.ways]
    assert told == sorted(told, reverse=True)
    short = [way.probability for way in evidence.ways if len(way.states) <= LONGEST + 1]
    assert short == pytest.approx(found[: len(short)])
    assert len(told) == WAYS or len(told) >= len(found)
    for way in evidence.ways:
        steps = itertools.pairwise(way.states)
        product = np.prod([chain[i, j] for i, j in steps])
        assert way.probability == pytest.approx(starts[way.states[0]] * product)
        assert way.actions == tuple(evidence.policy[i] for i in way.states[:-1])
        assert way.seen == len(way.states)  # nothing is smoothed: every step was counted


@pytest.mark.parametrize("seed", range(examples(6)))
def test_a_part_breaks_the_bound_by_itself(seed: int) -> None:
    answer, evidence, starts = answered(random_model(seed), "Pmax(collision) <= 0.1")
    mean = float(starts @ answer.values.estimate)
    if mean <= 0.1:
        assert evidence.critical is None
        return
    part = evidence.critical
    inside = np.isin(np.arange(6), part.states)
    chain = given_chain(answer, evidence.policy) * inside * inside[:, np.newaxis]
    reached = (answer.goal & inside).astype(float)
    for _ in range(5_000):
        reached = np.where(answer.goal & inside, 1.0, chain @ reached)
    assert starts @ (reached * inside) == pytest.approx(part.probability, abs=1e-6)
    assert part.probability > 0.1
    assert part.minimal == (part.at_least == len(part.states))


def test_a_step_that_smoothing_alone_promises_is_named() -> None:
    steps = {Step("go", False, 0, -2): 5, Step("go", False, 1, -1): 5}
    chain = np.zeros((6, 6), dtype=np.int64)
    chain[0, 5] = chain[1, 4] = 5
    model = CountModel(
        SPACE, 10.0, "d", STATES, sparse.csr_matrix(chain), np.array([5, 0, 0, 0, 0, 0]),
        Smoothing("sparse"), steps=ordered(steps),
    )  # fmt: skip
    _, evidence, _ = answered(model, "Pmax(collision)")
    (direct,) = [way for way in evidence.ways if len(way.states) == 2]
    assert (direct.named(STATES), direct.seen) == ((0, "go", -1), 1)


def test_what_leaves_the_way_of_an_until_is_no_way() -> None:
    _, evidence, _ = answered(random_model(1), 'Pmax=? [ !"near" U "collision" ]')
    for way in evidence.ways:
        assert not any(SPACE.holds("near", STATES[i]) for i in way.states[:-1])


def test_with_a_horizon_no_one_policy_attains_it() -> None:
    assert answered(random_model(1), "Pmax(collision, 3)")[1] is None
