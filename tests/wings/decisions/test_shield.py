"""The safest action that still succeeds, against all policies and their mixtures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from decision_processes import policies, random_process, value_of
from scipy import sparse

from forewarn.errors import CheckingError
from forewarn.models.process import ActionCounts, DecisionProcess, process_of
from forewarn.wings.decisions.process_bounds import counted_process
from forewarn.wings.decisions.shield import constrained_failure, shield_table
from forewarn.wings.decisions.storm_api import Storm

N = 6
FAILURE, SUCCESS = np.arange(N) == N - 1, np.arange(N) == N - 2


def counted(rng: np.random.Generator) -> ActionCounts:
    """Return counts; the last two states are terminal."""
    truth = random_process(rng, N, stay=0.25)
    dense = truth.matrix.toarray()
    rows, groups, actions = [], [0], []
    for s in range(N):
        if s < N - 2:
            part = dense[truth.groups[s] : truth.groups[s + 1]]
            rows += [np.maximum(rng.multinomial(40, row / row.sum()), 0) for row in part]
            actions += [f"a{k}" for k in range(len(part))]
        else:
            rows.append(np.zeros(N, dtype=int))
            actions.append("")
        groups.append(len(rows))
    counts = sparse.csr_matrix(np.array(rows))
    total = np.asarray(counts.sum(axis=1)).ravel()
    return ActionCounts((0, 1, 2, 3, -1, -2), tuple(actions), np.array(groups), counts, total)


def hull(points: np.ndarray, minimum: float) -> float:
    """Return the least failure of a mixture of (success, failure) points with enough success."""
    best = min((f for s, f in points if s >= minimum - 1e-12), default=np.inf)
    for s, f in points:
        for t, g in points:
            if s < minimum < t:
                share = (minimum - s) / (t - s)
                best = min(best, (1 - share) * f + share * g)
    return float(best)


def outcomes(process: DecisionProcess) -> np.ndarray:
    """Return success and failure of every policy after each choice, shape (c, policies, 2)."""
    values = [
        (value_of(process, policy, SUCCESS, ~FAILURE), value_of(process, policy, FAILURE, ~SUCCESS))
        for policy in policies(process)
    ]
    return np.einsum("cn,pkn->cpk", process.matrix.toarray(), np.array(values))


@pytest.mark.parametrize("seed", range(12))
def test_decisions_by_all_policies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bounds = counted_process(counted(rng), N)
    process, minimum = bounds.process, float(rng.choice([0.2, 0.5, 0.8]))
    table = shield_table(bounds, FAILURE, SUCCESS, minimum)
    points_of = outcomes(process)
    for s in range(N - 2):
        decision = table.decisions.get(bounds.counted.states[s])
        assert decision is not None
        choices = range(process.groups[s], process.groups[s + 1])
        exact = {bounds.counted.actions[c]: hull(points_of[c], minimum) for c in choices}
        assert decision.feasible == np.isfinite(min(exact.values()))
        if decision.feasible:
            assert decision.exact
            assert decision.failure == pytest.approx(min(exact.values()), abs=1e-6)
            assert exact[decision.action] == pytest.approx(min(exact.values()), abs=1e-6)
        named = [risk.action for risk in decision.alternatives]
        assert named[0] == decision.action and sorted(named) == sorted(exact)
        for risk in decision.alternatives:
            points = points_of[process.groups[s] + int(risk.action[1:])]
            assert risk.failure.estimate == pytest.approx(points[:, 1].min(), abs=1e-9)
            assert risk.failure_worst.estimate == pytest.approx(points[:, 1].max(), abs=1e-9)
            assert risk.success.estimate == pytest.approx(points[:, 0].max(), abs=1e-9)
            for figure in risk[2:]:
                assert 0 <= figure.lower <= figure.estimate <= figure.upper <= 1
    assert table.decisions.get(-1) is None


@pytest.mark.parametrize("idle", ["a", "z"])
def test_what_changes_nothing_is_no_better_than_what_makes_it_safe(idle: str) -> None:
    """Waiting keeps all that is possible, and so is as safe as what may follow it, for ever."""
    rows = {
        0: {idle: (20, 0, 0, 0), "m": (0, 20, 0, 0), "start": (0, 0, 0, 60)},
        1: {"start": (0, 0, 20, 0)},
    }
    names = [name for of in rows.values() for name in of]
    matrix = [of[name] for of in rows.values() for name in of] + [(0, 0, 0, 0)] * 2
    counts = sparse.csr_matrix(np.array(matrix))
    groups = np.array([0, 3, 4, 5, 6])
    total = np.asarray(counts.sum(axis=1)).ravel()
    given = ActionCounts((0, 1, -1, -2), (*names, "", ""), groups, counts, total)
    done, bad = np.arange(4) == 2, np.arange(4) == 3
    bounds = counted_process(given, 4)
    decision = shield_table(bounds, bad, done, 0.5).decisions.get(0)
    assert decision is not None
    assert decision.action == "m"
    wait = next(risk for risk in decision.alternatives if risk.action == idle)
    assert wait.failure.estimate == decision.alternatives[0].failure.estimate
    assert wait.success.estimate == decision.alternatives[0].success.estimate


@pytest.mark.parametrize("seed", range(6))
def test_the_linear_programme_against_storm(seed: int) -> None:
    pytest.importorskip("stormpy", reason="Storm is the oracle")
    storm: Any = Storm()
    rng = np.random.default_rng(seed)
    process = process_of(counted(rng))
    model = storm.mdp(process, {"fail": FAILURE, "done": SUCCESS})
    start = np.eye(N)[0]
    parsed = storm.parse('multi(Pmin=? [ F "fail" ], P>=0.4 [ F "done" ])')
    arguments = {"only_initial_states": True}
    found = constrained_failure(process, FAILURE, SUCCESS, start, 0.4)
    result = storm.module.model_checking(model, parsed, **arguments)
    theirs = result.at(0)
    if np.isinf(found):
        # Storm answers with a truth value if no policy meets the bound.
        assert theirs is False
    else:
        # Its default precision for several objectives is 1e-4.
        assert found == pytest.approx(theirs, abs=3e-4)


def test_within_a_horizon_only_the_filter_decides() -> None:
    bounds = counted_process(counted(np.random.default_rng(0)), N)
    table = shield_table(bounds, FAILURE, SUCCESS, 0.3, horizon=4)
    for decision in table.decisions.values():
        assert decision.alternatives[0].action == decision.action
        safest = min(risk.failure.estimate for risk in decision.alternatives)
        assert decision.failure >= safest - 1e-9


def test_what_is_refused() -> None:
    bounds = counted_process(counted(np.random.default_rng(0)), N)
    with pytest.raises(CheckingError, match="failure and success"):
        shield_table(bounds, FAILURE, FAILURE, 0.5)
    with pytest.raises(CheckingError, match=r"success of 1\.5"):
        shield_table(bounds, FAILURE, SUCCESS, 1.5)
