"""Linear predicates over the embedding of a text: ``w . E(text) > t``, one for each class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

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

SIZE = SIZES[0]
"""Numbers of an embedding that are weighed: few, so that they can be read and copied."""

MOST_CLASSES = 8
"""Classes that have a predicate, the most frequent first."""

MOST_TEXTS = 20_000
"""Different texts that weights are fitted to, the most frequent first."""


class Weighed(NamedTuple):
    """A linear predicate: its expression, and what it says of each example, NaN where unknown."""

    source: str
    values: NDArray[np.float64]


def weighed(
    name: str,
    values: Sequence[str | None],
    classes: NDArray[np.int64],
    rows: NDArray[np.int64],
    smallest: int,
) -> list[Weighed]:
    """Return for each class the weights that tell it best by a text (logistic regression).

    They have three digits, and what they say is what the expression will say.

    Parameters
    ----------
    name : str
        The variable.
    values : sequence of str or None, length n
        Its texts.
    classes : ndarray of int, shape (n,)
        The classes by number.
    rows : ndarray of int
        The examples that weights are fitted to.
    smallest : int
        Fewest examples of a class, and of all others.

    Raises
    ------
    ConfigError
        If scikit-learn is not installed.
    ExpressionError
        If the model of embeddings is not installed.
    """
    read = [None if text is None or len(text) > MAX_EMBEDDED else text for text in values]
    pairs = Counter((read[row], int(classes[row])) for row in rows.tolist())
    frequent: Counter[str] = Counter()
    for (text, _), count in pairs.items():
        if text is not None:
            frequent[text] += count
    texts = [text for text, _ in frequent.most_common(MOST_TEXTS)]
    table = np.array([embedding(text, SIZE) for text in texts])
    known = [text for text in dict.fromkeys(read) if text is not None]
    found = []
    for kind in _told_apart(classes[rows], smallest):
        hits = np.array([pairs[text, kind] for text in texts], dtype=np.float64)
        rest = np.array([frequent[text] for text in texts]) - hits
        if not hits.any() or not rest.any():
            continue
        weights = _fitted(table, hits, rest)
        said = {text: score_of(text, weights) for text in known}
        source = (
            f"embedding_score({name}, {installed_model().name!r}, "
            f"[{', '.join(f'{weight:.3g}' for weight in weights)}])"
        )
        says = [np.nan if text is None else said[text] for text in read]
        found.append(Weighed(source, np.array(says, dtype=np.float64)))
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


def _fitted(
    table: NDArray[np.float64], hits: NDArray[np.float64], rest: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weights that tell `hits` from `rest`, counts of each row, to three digits."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise ConfigError("scikit-learn is not installed", accepted=EXTRA) from error
    model: Any = LogisticRegression(max_iter=1000)
    labels = np.repeat([1, 0], len(table))
    model.fit(np.vstack([table, table]), labels, np.concatenate([hits, rest]))
    return np.array([float(f"{weight:.3g}") for weight in model.coef_[0]])
