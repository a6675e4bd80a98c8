"""The lagged chain against deeptime: counts, implied time scales, and the risk that follows.

An implied time scale is ``-lag / log |eigenvalue|`` of the transition matrix at that lag. It is the
same at all lags if the process is Markov, and grows with the lag as long as the lag hides what the
states do not show (Prinz et al., J. Chem. Phys. 134, 174105, 2011). So deeptime also says whether
longer steps are worth taking, which our choice by cross-validation finds out on its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from forewarn.assessment.outcome_counts import LAGS, watch_for
from forewarn.checking.credible import RiskQuery
from forewarn.checking.interface import label_states
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.estimates.crossing import cross
from forewarn.learning.estimates.multi_step import MultiStep
from forewarn.learning.estimates.problem import Problem, Sample
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.estimated import judged_property

markov: Any = pytest.importorskip(
    "deeptime.markov", reason="deeptime is not installed (pip install -r requirements/oracles.txt)"
)
msm: Any = pytest.importorskip("deeptime.markov.msm")

HORIZON = 30
RUNS, TICKS = 40, 120
SPEC = compile_spec(
    parse_spec(
        parse_document(
            f"""
rate: 1
startup_grace: 0
signals: {{x: {{timeout: never}}}}
predicates: {{near: x > 0, nearer: x > 1}}
terminal: {{crash: x > 2}}
properties: {{p: {{formula: always(not crash), horizon: {HORIZON}, estimator: multi_step}}}}
bounds: {{kind: none}}
"""
        )
    )
)

# From far, near and nearer to these and to a crash.
SEEN = np.array(
    [[0.95, 0.05, 0.00, 0.00], [0.06, 0.89, 0.05, 0.00], [0.01, 0.08, 0.90, 0.01], [0, 0, 0, 1]]
)
# There are two ways to be near, one of which leads nowhere, and no predicate tells them apart.
HIDDEN = np.array(
    [
        [0.80, 0.15, 0.05, 0.00, 0.00],
        [0.10, 0.90, 0.00, 0.00, 0.00],
        [0.02, 0.00, 0.68, 0.30, 0.00],
        [0.02, 0.00, 0.40, 0.48, 0.10],
        [0, 0, 0, 0, 1],
    ]
)
SHOWN = {4: np.array([0, 1, 2, 3]), 5: np.array([0, 1, 1, 2, 3])}


class Learned(NamedTuple):
    """A problem, all its recordings together, and their states with the crash held for ever."""

    problem: Problem
    sample: Sample
    paths: list[NDArray[np.int64]]


def learned(folder: Path, chain: NDArray[np.float64]) -> Learned:
    shown, crash = SHOWN[len(chain)], len(chain) - 1
    rng = np.random.default_rng(7)
    files, paths = [], []
    for run in range(RUNS):
        state, path = 0, []
        for _ in range(TICKS):
            path.append(state)
            if state == crash:
                break
            state = int(rng.choice(len(chain), p=chain[state]))
        files.append(folder / f"{run}.jsonl")
        rows = [{"t": float(t), "x": float(shown[s]) - 0.5} for t, s in enumerate(path)]
        files[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
        paths.append(shown[path])
    model = learn(files, SPEC.spec, SPEC.abstraction, watch=watch_for(SPEC)).model
    automaton = SPEC.automata[0]
    classes = label_states(automaton, model.vocabulary, model.states)
    question = RiskQuery(automaton, classes, HORIZON)
    problem = Problem(model, question, judged_property(SPEC.spec, "p", automaton))
    codes = (0, 1, 3, -1)  # neither; near; near and nearer; crash
    rows_of = np.array([model.index[code] for code in codes])
    ever = np.full(max(LAGS), rows_of[3])
    held = [np.append(rows_of[p], ever[: max(LAGS) * int(p[-1] == 3)]) for p in paths]
    return Learned(problem, problem.sample(np.ones(RUNS, dtype=np.int64)), held)


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Learned]:
    chains = {"Markov": SEEN, "hidden": HIDDEN}
    return {name: learned(tmp_path_factory.mktemp(name), one) for name, one in chains.items()}


@pytest.fixture(params=["Markov", "hidden"])
def both(request: pytest.FixtureRequest, worlds: dict[str, Learned]) -> Learned:
    return worlds[request.param]


def ours(found: Learned, lag: int) -> NDArray[np.float64]:
    """Return steps between model states; those into a violation lead to the crash."""
    model, initial = found.problem.model, found.problem.question.automaton.initial
    width = found.problem.shape[1]
    steps = found.sample.steps(lag).toarray()
    rows = np.arange(model.size) * width + initial
    counts = steps[np.ix_(rows, rows)]
    counts[:, model.index[-1]] += steps[rows, -1]
    return np.asarray(counts)


def theirs(found: Learned, lag: int) -> NDArray[np.float64]:
    estimator = markov.TransitionCountEstimator(lag, count_mode="sliding")
    counts = estimator.fit_fetch(found.paths).count_matrix
    return np.asarray(counts.toarray() if hasattr(counts, "toarray") else counts)


def matrix(counts: NDArray[np.float64], crash: int) -> NDArray[np.float64]:
    """Return shares of steps; who has crashed has crashed."""
    counts = counts.copy()
    counts[crash] = np.eye(len(counts))[crash]
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("lag", LAGS)
def test_steps_of_several_ticks_are_deeptimes(both: Learned, lag: int) -> None:
    crash = both.problem.model.index[-1]
    plain = np.arange(both.problem.model.size) != crash
    assert np.array_equal(ours(both, lag)[plain], theirs(both, lag)[plain])


def time_scales(found: Learned) -> list[float]:
    """Return deeptime's second implied time scale at each lag.

    The first one is the time to a crash, which always comes in the end.
    """
    crash = found.problem.model.index[-1]
    told = []
    for lag in LAGS:
        model = msm.MarkovStateModel(matrix(theirs(found, lag), crash), lagtime=lag)
        values = np.sort(np.abs(np.linalg.eigvals(matrix(ours(found, lag), crash))))[::-1]
        assert -lag / np.log(values[1:3]) == pytest.approx(model.timescales()[:2], rel=1e-6)
        told.append(float(model.timescales()[1]))
    return told


def test_implied_time_scales_are_level_where_states_tell_all(worlds: dict[str, Learned]) -> None:
    scales = time_scales(worlds["Markov"])
    assert max(scales) / min(scales) < 1.25


def test_implied_time_scales_grow_where_something_is_hidden(worlds: dict[str, Learned]) -> None:
    scales = time_scales(worlds["hidden"])
    assert scales[-1] > 1.3 * scales[0]


def test_longer_steps_are_chosen_where_time_scales_grow(worlds: dict[str, Learned]) -> None:
    """The chain counts as steps, too, so what longer ones take off the log loss is what tells."""
    gained = {}
    for name, found in worlds.items():
        crossed = cross(found.problem, ("chain", "multi_step"), found.sample.risk)
        assert crossed is not None
        lost = {base: crossed.loss(base, risk).log_loss for base, risk in crossed.risks.items()}
        gained[name] = lost["chain"] - lost["multi_step"]
    assert gained["hidden"] > 2 * max(gained["Markov"], 0.0)
    assert crossed.chosen["multi_step"][0] > 1


@pytest.mark.parametrize("lag", [lag for lag in LAGS if HORIZON % lag == 0])
def test_the_risk_is_that_of_deeptimes_steps(both: Learned, lag: int) -> None:
    crash = both.problem.model.index[-1]
    shares = matrix(theirs(both, lag), crash)
    risk = np.linalg.matrix_power(shares, HORIZON // lag)[:, crash]
    initial = both.problem.question.automaton.initial
    table = MultiStep().table(both.sample, (float(lag), 1e-12))[:, initial]
    plain = np.arange(len(risk)) != crash
    assert table[plain] == pytest.approx(risk[plain], abs=1e-9)
