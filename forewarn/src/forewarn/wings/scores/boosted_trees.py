"""The boosted trees of a learned score: fitted by scikit-learn, kept as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import InputError
from forewarn.wings.scores.fit import Ensemble

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

EXTRA = "pip install './forewarn[learn]'"
MOST_TREES = 200
STEP = 5
"""Numbers of trees that are tried: each multiple of it."""

PARAMETERS: dict[str, Any] = {
    "l2_regularization": 1.0,
    "early_stopping": False,  # its own would judge by ticks, of which neighbours are alike
    "random_state": 0,
}
LARGE: Mapping[str, Any] = {
    "max_leaf_nodes": 15,
    "max_features": 0.2,
    "min_samples_leaf": 40,
    "learning_rate": 0.05,
}
SMALL: Mapping[str, Any] = {
    "max_leaf_nodes": 6,
    "max_features": 0.3,
    "min_samples_leaf": 20,
    "learning_rate": 0.1,
}
"""Sizes of trees. Small ones foresee more with few recordings; sampled features help both, and so
do larger leaves and smaller steps where trees are large (evaluation/RESULTS.md)."""

ALWAYS_LEFT = 1e308
"""Above every value: only what is unknown goes right."""


def need_sklearn() -> ModuleType:
    """Return scikit-learn; raises InputError, which names the extra, if it is not installed."""
    try:
        import sklearn
        import sklearn.ensemble
    except ImportError as error:
        raise InputError(
            "a learned score is fitted by scikit-learn, the optional extra 'learn', which is not "
            "installed (to use one that is fitted, it is not needed)",
            key="learned_score",
            accepted=EXTRA,
        ) from error
    found: ModuleType = sklearn
    return found


def boosted(
    x: Floats, y: Bools, constraints: Sequence[int], trees: int, size: Mapping[str, Any]
) -> Any:
    """Fit trees, in so many rounds.

    `size`: `LARGE` or `SMALL`.
    `constraints`: for each feature 1 if the risk may only rise with it, -1 if it may only fall,
        else 0.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=trees, monotonic_cst=[*constraints], **PARAMETERS, **size
    )
    return model.fit(x, y)


def stages(model: Any, x: Floats) -> NDArray[np.float32]:
    """Return the log-odds of rows after each `STEP` trees, shape (stages, n)."""
    if not len(x):
        return np.zeros((model.n_iter_ // STEP, 0), np.float32)
    found = islice(model.staged_decision_function(x), STEP - 1, None, STEP)
    return np.array([np.ravel(one) for one in found], dtype=np.float32)


def lost(logits: NDArray[Any], y: Bools) -> Floats:
    """Return the log loss of each row, shape (n,)."""
    return np.asarray(np.logaddexp(0.0, np.where(y, -logits, logits)))


def joined(models: Sequence[tuple[Any, NDArray[np.int64], int, float]], known: Bools) -> Ensemble:
    """Return the weighted sum of the first trees of models of scikit-learn as plain data.

    `models` (sequence of (model, ndarray of int64, int, float)): each with the numbers of the
        features that it was fitted to, how many of its trees count, and its weight.
    `known` (shape (features,)): which features were known in all rows.
    """
    columns: dict[str, list[Any]] = {key: [] for key in _COLUMNS}
    roots: list[int] = []
    for model, features, count, weight in models:
        for (predictor,) in model._predictors[:count]:
            roots.append(len(columns["feature"]))
            for feature, *row, value in _tree(predictor.nodes, roots[-1]):
                asked = -1 if feature < 0 else int(features[feature])
                for key, part in zip(_COLUMNS, (asked, *row, weight * value), strict=True):
                    columns[key].append(part)
    asked_about = {*columns["feature"]}
    bases = (
        weight * float(np.ravel(model._baseline_prediction)[0]) for model, *_, weight in models
    )
    return Ensemble(
        base=sum(bases, 0.0),
        roots=tuple(roots),
        needed=tuple(int(bool(known[i]) and i in asked_about) for i in range(len(known))),
        **{key: tuple(values) for key, values in columns.items()},
    )


_COLUMNS = ("feature", "threshold", "left", "right", "missing_left", "value")


def _tree(nodes: Any, offset: int) -> Iterator[tuple[int, float, int, int, int, float]]:
    """Yield the nodes of a tree; what is no leaf has the mean of its leaves."""
    value = nodes["value"].astype(np.float64)
    for i in reversed(range(len(nodes))):
        if not nodes["is_leaf"][i]:
            ends = nodes["left"][i], nodes["right"][i]
            weights = [float(nodes["count"][end]) for end in ends]
            value[i] = float(np.average([value[end] for end in ends], weights=weights))
    for i, node in enumerate(nodes):
        if node["is_leaf"]:
            yield -1, 0.0, -1, -1, 0, float(value[i])
            continue
        threshold = min(float(node["num_threshold"]), ALWAYS_LEFT)
        left, right = int(node["left"]) + offset, int(node["right"]) + offset
        yield (
            int(node["feature_idx"]),
            threshold,
            left,
            right,
            int(node["missing_go_to_left"]),
            float(value[i]),
        )
