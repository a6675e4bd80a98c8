"""The least risk over all ways to choose: against Storm, which builds the product itself."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.logic.automaton import Automaton
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.process import count_actions, process_of
from forewarn.states.interface import is_terminal
from forewarn.wings.decisions.action_risk import least_risk
from forewarn.wings.decisions.model_process import process_of_model

stormpy = pytest.importorskip("stormpy", reason="Storm is the oracle")

FORMULAS = {
    "invariant": "always(not q)",
    "response": "always(p implies eventually[0:0.3](q))",
    "label": "always(not over)",
    "until": "always(p implies (p until[0:0.4] q))",
}


def compiled(formula: str) -> CompiledSpec:
    text = f"""
rate: 10
signals: {{a: {{}}, b: {{}}, e: {{}}, d: {{}}}}
predicates: {{p: a > 0, q: b > 0, r: d > 0}}
terminal: {{over: e == 1, done: e == 2}}
properties: {{rule: {{formula: "{formula}", horizon: 2.0}}}}
"""
    return compile_spec(parse_spec(parse_document(text)))


def learned(spec: CompiledSpec, seed: int) -> CountModel:
    """Count a walk at random, of which some states are left by one action only or by none."""
    rng = np.random.default_rng(seed)
    counter = TransitionCounter(spec.abstraction.vocabulary)
    codes = [0, 1, 2, 3, 4, 5, 6, 7, -1, -2]
    tick = 0
    for _ in range(25):
        state = int(rng.integers(0, 8))
        for _ in range(int(rng.integers(2, 9))):
            action = "" if state == 7 else str(rng.choice(["go", "stay", "turn"]))
            counter.add(tick, state, action=action)
            tick += 1
            if is_terminal(state):
                break
            state = codes[int(rng.integers(0, 10))]
        counter.end_recording()
    return build_model(
        counter, rate=10.0, digest=spec.abstraction.digest, smoothing=Smoothing("none")
    )


def prism(model: CountModel, automaton: Automaton) -> str:
    """Return the process and the automaton beside each other as a PRISM programme."""
    counted = count_actions(model.steps, model.states)
    process = process_of(counted)
    n, m = process.size, automaton.n_states
    space = model.vocabulary

    def entered(q: int, state: int) -> int | None:
        if is_terminal(state) and space.name(state) not in automaton.atoms:
            return None
        letter = sum(1 << i for i, a in enumerate(automaton.atoms) if space.holds(a, state))
        return int(automaton.transitions[q, automaton.letter_class[letter]])

    lines = [
        "mdp", "module m", f"  s : [0..{n}] init 0;", f"  q : [0..{m - 1}] init 0;",
    ]  # fmt: skip
    dense = process.matrix.toarray()
    for choice in range(dense.shape[0]):
        owner = int(process.owner[choice])
        for q in range(m):
            if q == automaton.violated or is_terminal(counted.states[owner]):
                continue
            parts = []
            for j in np.flatnonzero(dense[choice]).tolist():
                after = entered(q, counted.states[j])
                place = f"(s'={n})" if after is None else f"(s'={j})&(q'={after})"
                parts.append(f"{dense[choice, j]:.17g}:{place}")
            lines.append(f"  [] s={owner} & q={q} -> {' + '.join(parts)};")
    bad = "false" if automaton.violated is None else f"q={automaton.violated} & s<{n}"
    return "\n".join([*lines, "endmodule", f'label "bad" = {bad};', "init true endinit"]).replace(
        " init 0", ""
    )


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("horizon", [0, 1, 7, None])
def test_storm_finds_the_same(formula: str, seed: int, horizon: int | None, tmp_path: Path) -> None:
    spec = compiled(FORMULAS[formula])
    model, (automaton,) = learned(spec, seed), spec.automata
    ours = least_risk(model, process_of_model(model), automaton, horizon)
    path = tmp_path / "product.prism"
    path.write_text(prism(model, automaton))
    programme = stormpy.parse_prism_program(str(path))
    within = "" if horizon is None else f"<={horizon}"
    (asked,) = stormpy.parse_properties(f'Pmin=? [ F{within} "bad" ]', programme)
    options = stormpy.BuilderOptions([asked.raw_formula])
    options.set_build_state_valuations()
    built = stormpy.build_sparse_model_with_options(programme, options)
    environment = stormpy.Environment()
    environment.solver_environment.set_force_sound()
    environment.solver_environment.minmax_solver_environment.precision = stormpy.Rational(1e-10)
    found = stormpy.model_checking(built, asked, environment=environment)
    compared = 0
    for state in range(built.nr_states):
        told = built.state_valuations.get_string(state)
        s, q = (int(re.search(rf"\b{name}=(\d+)", told)[1]) for name in "sq")
        if s >= model.size or is_terminal(model.states[s]) or np.isnan(ours.values[s, q]):
            continue
        assert ours.values[s, q] == pytest.approx(found.at(state), abs=1e-8), (s, q)
        assert ours.lower[s, q] <= ours.values[s, q] <= ours.upper[s, q]
        compared += 1
    assert compared >= 7 * automaton.n_states - 7


def test_where_nothing_was_seen_done_everything_is_possible() -> None:
    spec = compiled(FORMULAS["invariant"])
    model, (automaton,) = learned(spec, 1), spec.automata
    row, q = model.states.index(7), automaton.initial
    found = least_risk(model, process_of_model(model), automaton, 5)
    assert np.isnan(found.values[row, q])
    assert (found.lower[row, q], found.upper[row, q]) == (0.0, 1.0)
