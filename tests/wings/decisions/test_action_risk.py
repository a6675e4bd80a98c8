"""The risk of what is being done, against sums over all ways by hand."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.counts import CountModel, Smoothing
from forewarn.wings.decisions.action_risk import risk_of_actions
from forewarn.wings.decisions.model_process import process_of_model

TEXT = """
rate: 10
signals: {a: {}, b: {}, e: {}}
predicates: {p: a > 0, q: b > 0}
terminal: {over: e == 1}
properties: {rule: {formula: "FORMULA", horizon: 2.0}}
"""
FORMULAS = ("always(not q)", "always(p implies eventually[0:0.2](q))", "always(not over)")
OVER = -1


def compiled(formula: str) -> CompiledSpec:
    return compile_spec(parse_spec(parse_document(TEXT.replace("FORMULA", formula))))


def learned(spec: CompiledSpec, seed: int) -> CountModel:
    rng, tick = np.random.default_rng(seed), 0
    counter = TransitionCounter(spec.abstraction.vocabulary)
    for _ in range(30):
        state = int(rng.integers(4))
        for _ in range(int(rng.integers(2, 7))):
            # In state 3 nothing is ever seen done.
            action = "" if state == 3 else str(rng.choice(["go", "stay"]))
            counter.add(tick, state, action=action)
            tick += 1
            if state == OVER:
                break
            state = int(rng.choice([0, 1, 2, 3, OVER]))
        counter.end_recording()
    digest = spec.abstraction.digest
    return build_model(counter, rate=10.0, digest=digest, smoothing=Smoothing("none"))


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("horizon", [0, 1, 2, 5])
def test_the_action_comes_first_and_the_recorded_mix_follows(formula: str, horizon: int) -> None:
    spec = compiled(formula)
    model, (automaton,) = learned(spec, 3), spec.automata
    shares: dict[tuple[int, str], dict[int, int]] = {}
    for step, count in model.steps:
        row = shares.setdefault((step.state, step.action), {})
        row[step.following] = row.get(step.following, 0) + count
    named = "over" in automaton.atoms

    def entered(q: int, state: int) -> int | None:
        """Return the automaton's state once it has read a state; None at the end of a run."""
        if state == OVER and not named:
            return None
        holds = model.vocabulary.holds
        letter = sum(1 << i for i, atom in enumerate(automaton.atoms) if holds(atom, state))
        return int(automaton.transitions[q, automaton.letter_class[letter]])

    def after(state: int, action: str, q: int, left: int) -> float:
        followed = shares[state, action]
        chances = {s: n / sum(followed.values()) for s, n in followed.items()}
        return sum(c * of_state(s, entered(q, s), left - 1) for s, c in chances.items())

    @cache
    def of_state(state: int, q: int | None, left: int) -> float:
        if q == automaton.violated:
            return 1.0
        done = [key for key in shares if key[0] == state]
        if q is None or state == OVER or left == 0 or not done:
            return 0.0
        visits = {key[1]: sum(shares[key].values()) for key in done}
        total = sum(visits.values())
        return sum(n / total * after(state, a, q, left) for a, n in visits.items())

    found = risk_of_actions(model, process_of_model(model), automaton, horizon)
    assert set(found.done) == {(model.index[s], a) for s, a in shares}
    for (row, action), place in found.done.items():
        state = model.states[row]
        assert found.visits[place] == sum(shares[state, action].values())
        for q in range(automaton.n_states):
            value = found.done_values[place, q]
            violated = q == automaton.violated
            expected = 1.0 if violated else after(state, action, q, horizon) if horizon else 0.0
            assert value == pytest.approx(expected, abs=1e-12), (state, action, q)
            assert found.done_lower[place, q] <= value <= found.done_upper[place, q]


@pytest.mark.parametrize("horizon", [3, None])
def test_the_mix_of_all_actions_is_the_risk_of_the_state(horizon: int | None) -> None:
    spec = compiled(FORMULAS[1])
    model, (automaton,) = learned(spec, 4), spec.automata
    found = risk_of_actions(model, process_of_model(model), automaton, horizon)
    for row in {row for row, _ in found.done}:
        places = [place for (state, _), place in found.done.items() if state == row]
        weights = np.array([found.visits[place] for place in places], dtype=float)
        mixed = weights @ found.done_values[places] / weights.sum()
        assert mixed == pytest.approx(found.values[row], abs=1e-9)
    idle = model.index[3]
    assert np.isnan(np.delete(found.values[idle], automaton.violated)).all()
