"""Linear predicates over the embedding of a text: ``w . E(text) > t``, one for each class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import ConfigError
from forewarn.expressions.functions.embeddings import (
    EXTRA,
    MAX_EMBEDDED,
    SIZES,
    embedding,
    installed_model,
    score_of,
)
from forewarn.wings.trees.collection_features import Measure

SIZE = SIZES[0]
"""Numbers of an embedding that are weighed: few, so that they can be read and copied."""

MOST_CLASSES = 8
"""Classes that have a predicate, the most frequent first."""

MOST_TEXTS = 20_000
"""Different texts that weights are fitted to, the most frequent first."""

FOLDS = 5
"""Parts of the traces, the texts of each predicted by weights that were fitted to the others."""


def weighed(
    name: str,
    values: Sequence[str | None],
    classes: NDArray[np.int64],
    runs: Sequence[int],
    rows: NDArray[np.int64],
    smallest: int,
) -> list[Measure]:
    """Return for each class the weights that tell it best by a text (logistic regression).

    Each different text counts once, with the share of its examples that are of the class: with 64
    weights a few texts that come again and again would be remembered. Only weights stay of which
    the like predict texts of other traces better than the base rate does. They have three digits,
    and what they say is what the expression will say. Weights are fitted to the examples `rows` of
    n; a class, and all others, has `smallest` examples at least.
    """
    read = [None if text is None or len(text) > MAX_EMBEDDED else text for text in values]
    pairs = Counter((read[row], int(classes[row])) for row in rows.tolist())
    first = {read[row]: runs[row] for row in reversed(rows.tolist())}
    frequent: Counter[str] = Counter()
    for (text, _), count in pairs.items():
        if text is not None:
            frequent[text] += count
    texts = [text for text, _ in frequent.most_common(MOST_TEXTS)]
    table = np.array([embedding(text, SIZE) for text in texts])
    fold = np.unique([first[text] for text in texts], return_inverse=True)[1] % FOLDS
    known = [text for text in dict.fromkeys(read) if text is not None]
    found = []
    for kind in _told_apart(classes[rows], smallest):
        shares = np.array([pairs[text, kind] / frequent[text] for text in texts])
        if not _predicts(table, shares, fold):
            continue
        weights = np.array([float(f"{weight:.3g}") for weight in _fitted(table, shares).coef_[0]])
        scores = {text: score_of(text, weights) for text in known}
        source = (
            f"embedding_score({name}, {installed_model().name!r}, "
            f"[{', '.join(f'{weight:.3g}' for weight in weights)}])"
        )
        says = [np.nan if text is None else scores[text] for text in read]
        found.append(Measure(source, np.array(says, dtype=np.float64)))
    return found


def _told_apart(classes: NDArray[np.int64], smallest: int) -> list[int]:
    """Return the classes that have a predicate; of two the one says what the other does."""
    counted = Counter(classes.tolist())
    large = [
        kind
        for kind, count in counted.most_common(MOST_CLASSES)
        if smallest <= count <= len(classes) - smallest
    ]
    return large[:1] if len(counted) == 2 else large


def _predicts(
    table: NDArray[np.float64], shares: NDArray[np.float64], fold: NDArray[np.int64]
) -> bool:
    """Tell whether texts are predicted by other folds better than by the base rate of these."""
    gained = 0.0
    for held in np.unique(fold).tolist():
        known, judged = shares[fold != held], shares[fold == held]
        base = known.mean() if len(known) else 0.0
        if not 0 < base < 1:
            return False
        says = _fitted(table[fold != held], known).predict_proba(table[fold == held])[:, 1]
        with np.errstate(divide="ignore"):
            gained += float(
                (judged * np.log(says / base)).sum()
                + ((1 - judged) * np.log((1 - says) / (1 - base))).sum()
            )
    return gained > 0


def _fitted(table: NDArray[np.float64], shares: NDArray[np.float64]) -> Any:
    """Return logistic regression of `shares`, each row counting once."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise ConfigError("scikit-learn is not installed", accepted=EXTRA) from error
    labels = np.repeat([1, 0], len(table))
    model: Any = LogisticRegression(max_iter=1000)
    return model.fit(np.vstack([table, table]), labels, np.concatenate([shares, 1 - shares]))
