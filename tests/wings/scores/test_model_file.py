"""Learned scores in model files: round trip, and every kind of damage."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from forewarn.errors import ModelError
from forewarn.models.checked_json import Reader
from forewarn.models.counts import CountModel
from forewarn.models.file import dump_model, merge_models, parse_model
from forewarn.states.vocabulary import Vocabulary
from forewarn.wings.scores.fit import Ensemble, LearnedScoreFit
from forewarn.wings.scores.model_file import dump_scores, parse_scores


def fit(**changes: Any) -> LearnedScoreFit:
    ensemble = Ensemble(
        -1.0, (0,), (1, -1, -1), (0.1, 0.0, 0.0), (1, -1, -1), (2, -1, -1), (0, 1, 0),
        (0.0, 1 / 3, -1.0), (0, 1),
    )  # fmt: skip
    sound: dict[str, Any] = {
        "name": "ahead",
        "foresees": "p",
        "formula": "always(not a)",
        "horizon": math.inf,
        "signals": ("x", "y"),
        "moments": 0,
        "lags": (),
        "directions": (0, -1),
        "ensemble": ensemble,
        "cuts": (0.1, 0.25),
        "weights": (0.3, 0.1),
        "recordings": ("d1", "d2"),
        "fitted_with": "scikit-learn 1.7.2",
    }
    return LearnedScoreFit(**{**sound, **changes})


def model(*fits: LearnedScoreFit) -> CountModel:
    counts = sparse.csr_matrix(np.array([[0, 2], [1, 0]], dtype=np.int64))
    starts = np.array([1, 0], dtype=np.int64)
    return CountModel(
        Vocabulary(("a",)),
        10.0,
        "digest",
        (0, 1),
        counts,
        starts,
        sections={"learned_score": fits},
    )


def test_a_model_file_keeps_them() -> None:
    text = dump_model(model(fit(), fit(name="other", horizon=2.0)))
    back = parse_model(text.encode())
    assert back.learned_score == (fit(), fit(name="other", horizon=2.0))
    assert dump_model(back) == text
    assert json.loads(text)["version"] == 1


def test_models_with_another_fit_are_not_merged() -> None:
    assert merge_models([model(fit()), model(fit())]).learned_score == (fit(),)
    for other in (model(fit(cuts=(0.1,))), model()):
        with pytest.raises(ModelError) as caught:
            merge_models([model(fit()), other])
        assert caught.value.key == "learned_score"
        assert "--add-to" in caught.value.accepted


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("signals", []),
        ("signals", ["x", "x"]),
        ("moments", 201),
        ("moments", True),
        ("lags", [1]),
        ("directions", [0]),
        ("directions", [0, 2]),
        ("cuts", [0.3, 0.1]),
        ("cuts", [0.0]),
        ("cuts", [1.0]),
        ("cuts", "0.1"),
        ("horizon", "2"),
        ("recordings", [1]),
        ("digest", "0" * 64),
        ("ensemble", []),
        ("ensemble.base", None),
        ("ensemble.feature", [2, -1, -1]),
        ("ensemble.feature", [1.5, -1, -1]),
        ("ensemble.left", [0, -1, -1]),
        ("ensemble.right", [3, -1, -1]),
        ("ensemble.roots", [-1]),
        ("ensemble.threshold", [1e400, 0, 0]),
        ("ensemble.value", [0.0]),
        ("ensemble.needed", [0]),
        ("ensemble.missing_left", [0, 2, 0]),
    ],
)
def test_what_no_fit_has_is_refused(path: str, value: Any) -> None:
    record = json.loads(json.dumps(dump_scores([fit()])))[0]
    *folders, key = path.split(".")
    place = record
    for folder in folders:
        place = place[folder]
    place[key] = value
    with pytest.raises(ModelError) as caught:
        parse_scores([Reader(record, "learned_score[0]")])
    assert caught.value.key.startswith(f"learned_score[0].{path}")
    assert caught.value.accepted


def test_two_of_one_name_are_refused() -> None:
    record = json.loads(json.dumps(dump_scores([fit()])))[0]
    with pytest.raises(ModelError, match="twice"):
        parse_scores([Reader(record, "learned_score[0]"), Reader(record, "learned_score[1]")])
