"""The rivals: models and detectors by others, fitted on traces, that score every prefix of others.

A process of its own, for its packages (requirements.txt beside it) are no part of Forewarn's:

    python fitted.py < traces.json > scores.json

The input is ``{"learned": [TRACE...], "judged": [TRACE...], "seed": 1, "only": []}``, a trace being
``{"actions": [...], "outputs": [...], "rows": [[...], ...], "label": 0, 1 or null}`` with an entry
a step. The output names rivals and gives for each judged trace a score after each step, the greater
the more dangerous. Where learned traces have both labels, likelihoods are ratios of two models.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Trace = dict[str, Any]
Surprises = Callable[[Trace], np.ndarray]
"""Returns how surprising each step of a trace is, in nats."""

FLOOR = 0.02
"""Share of a prediction that goes to what is frequent at large, so that nothing is impossible."""

MOST_ROWS = 20_000


Scores = dict[str, list[list[float]]]


def scores(
    learned: Sequence[Trace], judged: Sequence[Trace], seed: int, only: Sequence[str] = ()
) -> Scores:
    """Fit every rival, or those of some names, and score every prefix."""
    positive = [trace for trace in learned if trace["label"] == 1]
    negative = [trace for trace in learned if trace["label"] != 1]
    found: Scores = {}
    for name, fit in LIKELIHOODS.items():
        if only and name not in only:
            continue
        models = [fit(part, seed) for part in (negative, positive) if part]
        steps = [_difference([model(trace) for model in models]) for trace in judged]
        found[f"{name}, likelihood"] = [np.cumsum(one).tolist() for one in steps]
        found[f"{name}, greatest surprise"] = [np.maximum.accumulate(one).tolist() for one in steps]
    if not only or "pyod" in only:
        found |= _detectors(negative, judged, seed)
    if positive and negative and (not only or "gradient boosting" in only):
        found |= _boosted(learned, judged, seed)
    return found


def _difference(surprises: Sequence[np.ndarray]) -> np.ndarray:
    """Return the surprise of the only model, or how much less a model of positives is surprised."""
    return surprises[0] if len(surprises) == 1 else surprises[0] - surprises[1]


def alergia(traces: Sequence[Trace], seed: int) -> Surprises:
    """Return Alergia's Markov chain of the actions (Carrasco and Oncina, 1994; AALpy)."""
    from aalpy.learning_algs import run_Alergia

    del seed
    data = [["start", *trace["actions"]] for trace in traces]
    model = run_Alergia(data, automaton_type="mc", eps=0.05, print_info=False)
    at_large = _shares(action for trace in traces for action in trace["actions"])

    def surprises(trace: Trace) -> np.ndarray:
        state, found = model.initial_state, []
        for action in trace["actions"]:
            options = {after.output: (after, chance) for after, chance in state.transitions}
            state, chance = options.get(action, (_like(model, action, state), 0.0))
            found.append(_surprise(chance, action, at_large))
        return np.array(found)

    return surprises


def io_alergia(traces: Sequence[Trace], seed: int) -> Surprises:
    """Return IOAlergia's decision process: actions are inputs, outputs what followed (AALpy)."""
    from aalpy.learning_algs import run_Alergia

    del seed

    def pairs(trace: Trace) -> list[tuple[str, str]]:
        return list(zip(["begin", *trace["actions"]], trace["outputs"], strict=False))

    data = [["start", *pairs(trace)] for trace in traces]
    model = run_Alergia(data, automaton_type="mdp", eps=0.05, print_info=False)
    at_large = _shares(output for trace in traces for output in trace["outputs"])

    def surprises(trace: Trace) -> np.ndarray:
        state, found = model.initial_state, []
        for action, output in pairs(trace):
            after = state.transitions.get(action, [])
            options = {one.output: (one, chance) for one, chance in after}
            state, chance = options.get(output, (_like(model, output, state), 0.0))
            found.append(_surprise(chance, output, at_large))
        return np.array(found)

    return surprises


def _like(model: Any, output: str, otherwise: Any) -> Any:
    """Return a state with an output, from where to go on after what was never seen."""
    return next((state for state in model.states if state.output == output), otherwise)


def _shares(items: Any) -> dict[str, float]:
    counts = Counter(items)
    total = sum(counts.values()) + 1
    return {**{item: count / total for item, count in counts.items()}, "": 1 / total}


def _surprise(chance: float, item: str, at_large: dict[str, float]) -> float:
    return -math.log((1 - FLOOR) * chance + FLOOR * at_large.get(item, at_large[""]))


def hmm_of_actions(traces: Sequence[Trace], seed: int) -> Surprises:
    """Return a hidden Markov model of the actions, as large as its BIC is best (hmmlearn)."""
    from hmmlearn.hmm import CategoricalHMM

    names = sorted({action for trace in traces for action in trace["actions"]})
    code = {name: i for i, name in enumerate(names)}
    data = np.array([[code[a]] for trace in traces for a in trace["actions"]])
    lengths = [len(trace["actions"]) for trace in traces]
    models = [
        CategoricalHMM(n, n_iter=10, random_state=seed, n_features=len(names)).fit(data, lengths)
        for n in (1, 2, 4)
    ]
    model = min(models, key=lambda one: one.bic(data, lengths))
    emission = np.column_stack([model.emissionprob_, np.zeros(model.n_components)])
    emission = (1 - FLOOR) * emission + FLOOR / emission.shape[1]

    def logs(trace: Trace) -> np.ndarray:
        return np.log(emission[:, [code.get(a, len(names)) for a in trace["actions"]]].T)

    return lambda trace: _filtered(model.startprob_, model.transmat_, logs(trace))


def hmm_of_variables(traces: Sequence[Trace], seed: int) -> Surprises:
    """Return a hidden Markov model of the typed variables with Gaussian emissions (hmmlearn)."""
    from hmmlearn.hmm import GaussianHMM

    rows = np.array([row for trace in traces for row in trace["rows"]], dtype=float)
    middle, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    lengths = [len(trace["rows"]) for trace in traces]
    model = GaussianHMM(min(6, len(rows)), "diag", n_iter=10, random_state=seed, min_covar=1e-2)
    model.fit((rows - middle) / spread, lengths)

    def surprises(trace: Trace) -> np.ndarray:
        scaled = (np.array(trace["rows"], dtype=float) - middle) / spread
        logs = model._compute_log_likelihood(scaled)
        return _filtered(model.startprob_, model.transmat_, logs)

    return surprises


def _filtered(start: np.ndarray, matrix: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Return the surprise of each step given those before it: the forward algorithm."""
    belief, found = start, []
    for row in logs:
        top = row.max()
        joint = belief * np.exp(row - top)
        total = joint.sum() or 1e-300
        found.append(-(math.log(total) + top))
        belief = joint / total @ matrix
        belief = belief / belief.sum() if belief.sum() > 0 else start
    return np.array(found)


LIKELIHOODS: dict[str, Callable[[Sequence[Trace], int], Surprises]] = {
    "Alergia": alergia,
    "IOAlergia": io_alergia,
    "hmmlearn, actions": hmm_of_actions,
    "hmmlearn, variables": hmm_of_variables,
}


def _detectors(normal: Sequence[Trace], judged: Sequence[Trace], seed: int) -> Scores:
    """Return the outlier scores of pyod's detectors: of each step, and the greatest so far."""
    from pyod.models.ecod import ECOD
    from pyod.models.hbos import HBOS
    from pyod.models.iforest import IForest
    from pyod.models.knn import KNN
    from pyod.models.lof import LOF
    from pyod.models.pca import PCA

    rows = np.array([row for trace in normal for row in trace["rows"]], dtype=float)
    rows = np.random.default_rng(seed).permutation(rows)[:MOST_ROWS]
    rows = np.column_stack([rows, np.zeros(len(rows))])[:, : max(rows.shape[1], 2)]
    middle, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    width, found = rows.shape[1], {}
    asked = np.array([row for trace in judged for row in trace["rows"]], dtype=float)
    asked = (np.column_stack([asked, np.zeros(len(asked))])[:, :width] - middle) / spread
    ends = np.cumsum([len(trace["rows"]) for trace in judged])[:-1]
    seeded = (IForest(random_state=seed), PCA(random_state=seed))
    for detector in (*seeded, ECOD(), HBOS(), KNN(), LOF()):
        few = rows if type(detector) in (IForest, HBOS, PCA) else rows[:3000]
        detector.fit((few - middle) / spread)
        values = np.split(np.nan_to_num(detector.decision_function(asked), posinf=1e9), ends)
        name = f"pyod {type(detector).__name__}"
        found[f"{name}, last step"] = [part.tolist() for part in values]
        found[f"{name}, greatest"] = [np.maximum.accumulate(part).tolist() for part in values]
    return found


def _boosted(
    learned: Sequence[Trace], judged: Sequence[Trace], seed: int, rounds: int = 150
) -> Scores:
    """Return the probability by gradient-boosted trees after each step.

    Each run weighs the same.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows = np.array([row for trace in learned for row in trace["rows"]], dtype=float)
    labels = np.repeat([trace["label"] for trace in learned], [len(t["rows"]) for t in learned])
    weights = np.repeat([1 / len(t["rows"]) for t in learned], [len(t["rows"]) for t in learned])
    model = HistGradientBoostingClassifier(max_iter=rounds, learning_rate=0.06, random_state=seed)
    model.fit(rows, labels, weights)
    values = [model.predict_proba(np.array(t["rows"], dtype=float))[:, 1] for t in judged]
    return {
        "gradient boosting, last step": [part.tolist() for part in values],
        "gradient boosting, greatest": [np.maximum.accumulate(p).tolist() for p in values],
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)  # hmmlearn says of each fit to few runs what it lacks
    asked = json.load(sys.stdin)
    told, sys.stdout = sys.stdout, sys.stderr
    only = asked.get("only", ())
    json.dump(scores(asked["learned"], asked["judged"], asked["seed"], only), told)
