"""A hazard that no recording has may still come: bounds say so, and the less there is to see."""

from __future__ import annotations

import numpy as np
import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.checking.credible import PosteriorSampler
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import missing_weights
from forewarn.monitoring.build import build_monitor, compile_spec
from forewarn.monitoring.step import Monitor
from forewarn.states.vocabulary import Vocabulary

TEXT = """
rate: 10
signals: {{a: {{timeout: 1}}, b: {{timeout: 1}}}}
predicates: {{moving: a, bad: b}}
constraints: {constraints}
properties: {{p: {{formula: "{formula}", horizon: {horizon}}}}}
"""
NEVER = "always(not bad)"
ANSWER = "always(bad implies eventually[0:0.5](moving and not bad))"
OTHER = "always(rise(bad) implies next(not moving))"
CALM = [0, 1] * 20


def learned(
    states: list[int], formula: str = NEVER, horizon: float = 2.0, constraints: str = "[]"
) -> Monitor:
    text = TEXT.format(formula=formula, horizon=horizon, constraints=constraints)
    compiled = compile_spec(parse_spec(parse_document(text)))
    counter = TransitionCounter(compiled.abstraction.vocabulary)
    for tick, state in enumerate(states):
        counter.add(tick, state)
    return build_monitor(
        compiled, build_model(counter, rate=10.0, digest=compiled.abstraction.digest)
    )


def bounds(monitor: Monitor) -> tuple[float, float, float]:
    table = monitor.properties[0].table
    assert table is not None and table.lower is not None and table.upper is not None
    at = 0, monitor.properties[0].automaton.initial
    return float(table.lower[at]), float(table.values[at]), float(table.upper[at])


@pytest.mark.parametrize("formula", [NEVER, ANSWER, OTHER])
def test_four_seconds_without_a_hazard_do_not_rule_it_out(formula: str) -> None:
    monitor = learned(CALM, formula)
    lower, estimate, upper = bounds(monitor)
    assert (lower, estimate) == (0.0, 0.0)
    assert 0.1 < upper < 1.0
    assert any("never seen" in note for note in monitor.notes)


def test_the_more_is_seen_the_less_is_left() -> None:
    uppers = [bounds(learned(CALM * k))[2] for k in (1, 10, 100, 1000)]
    assert uppers == sorted(uppers, reverse=True)
    assert uppers[-1] < 0.01


def test_what_cannot_be_is_not_expected() -> None:
    impossible = learned(
        CALM, "always(not (moving and bad))", constraints="[{exclusive: [moving, bad]}]"
    )
    three = learned(
        [0, 1, 2] * 14, "always(not (moving and bad))", constraints="[{exclusive: [moving, bad]}]"
    )
    assert bounds(impossible)[2] > 0.1, "another state may come"
    assert bounds(three) == (0.0, 0.0, 0.0), "all admissible states are known"


def test_a_hazard_that_was_seen_needs_no_note() -> None:
    monitor = learned([0, 1] * 19 + [0, 2, 0, 1])
    assert not any("never seen" in note for note in monitor.notes)
    lower, estimate, upper = bounds(monitor)
    assert lower <= estimate <= upper


@pytest.mark.parametrize("formula", [NEVER, ANSWER, OTHER])
def test_without_a_horizon_what_was_never_seen_may_come(formula: str) -> None:
    assert bounds(learned(CALM, formula, horizon=float("inf")))[2] == pytest.approx(1.0, abs=1e-3)


def walk(rng: np.random.Generator, number: int, length: int) -> np.ndarray:
    """Return a walk among states of which most are rare, and to which each step may lead."""
    popular = 1.0 / np.arange(1, number + 1) ** 1.5
    stays = rng.random(number) * 0.9
    order = rng.permutation(number)
    state, states = 0, []
    jumps = rng.choice(number, size=length, p=popular / popular.sum())
    moves = rng.random(length)
    for k in range(length):
        if moves[k] >= stays[state]:
            state = int(order[jumps[k]])
        states.append(state)
    return np.array(states)


def counted(states: np.ndarray, width: int) -> CountModel:
    counter = TransitionCounter(Vocabulary(tuple(f"p{i}" for i in range(width))))
    for tick, state in enumerate(states.tolist()):
        counter.add(tick, state)
    return build_model(counter, rate=10.0, digest="")


def test_the_weights_are_the_rate_at_which_new_states_come() -> None:
    expected, found = 0.0, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        states = walk(rng, 500, 2400)
        model = counted(states[:2000], 9)
        weights = missing_weights(model)
        known = {code: weights[i] / (model.visits[i] + 1.0) for i, code in enumerate(model.states)}
        for before, after in zip(states[1999:-1].tolist(), states[2000:].tolist(), strict=True):
            if before not in known:
                continue
            expected += known[before]
            found += after not in known
    assert found > 100
    assert 0.7 < expected / found < 2.0


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 50))
def test_sampled_chains_lose_that_share_of_each_row(seed: int) -> None:
    model = counted(walk(np.random.default_rng(seed), 12, 60), 9)
    weights = missing_weights(model)
    sampler = PosteriorSampler(model, Smoothing(), weights)
    n, draws = model.size, 3000
    matrix = sampler.draw(draws).sparse.tocoo()
    lost = np.zeros((draws, n + 1))
    away = matrix.col % (n + 1) == n
    np.add.at(lost, (matrix.row[away] // (n + 1), matrix.row[away] % (n + 1)), matrix.data[away])
    share = weights / (weights + model.visits + 1.0)
    assert lost[:, :n].mean(axis=0) == pytest.approx(share, abs=0.03)
    assert (lost[:, n] == 1.0).all()
