"""What a text is about: a weighted sum of its embedding, by a model that ships in a wheel.

The model is WordLlama's `l2_supercat` (MIT): a vector for each of 32,000 parts of words. The
embedding of a text is their sum, scaled to length 1; the first 64 or 128 numbers serve alone. Its
two files are read from the installed package, which is not imported: nothing is fetched, now or
later. It is the optional extra ``embeddings``.

The same text gives the same bits on every processor: sums of 16-bit numbers are exact in 64 bits,
and the other sums are rounded once (`math.fsum`).
"""

from __future__ import annotations

import ast
import hashlib
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import ExpressionError
from forewarn.expressions.functions.registry import Function, register
from forewarn.expressions.functions.texts import list_of_texts
from forewarn.expressions.values import NAN, Notes, is_unknown

EXTRA = "pip install './forewarn[embeddings]'"
SIZES = (64, 128, 256)
"""Numbers of an embedding: the model was trained so that its first ones serve alone."""

MAX_EMBEDDED = 50_000
"""Characters of all texts that one call reads at most: 13 ms."""

MOST_REMEMBERED = 1024
LONGEST_REMEMBERED = 20_000

_FILES = ("weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json")


class EmbeddingModel(NamedTuple):
    """A model of embeddings.

    `parts`: gives the numbers of the parts of words that make up a text.
    """

    name: str  # what monitor files call it: its name, and a digest of its files
    parts: Callable[[str], Sequence[int]]
    table: NDArray[np.float16]  # shape (parts, 256): the vector of each part


@lru_cache(maxsize=1)
def installed_model() -> EmbeddingModel:
    """Return the model of the optional extra, read once.

    Raises ExpressionError if the extra is not installed; names it.
    """
    package = find_spec("wordllama")
    try:
        from safetensors.numpy import load
        from tokenizers import Tokenizer
    except ImportError as error:
        raise _missing() from error
    if package is None or not package.submodule_search_locations:
        raise _missing()
    folder = Path(package.submodule_search_locations[0])
    try:
        weights, words = ((folder / name).read_bytes() for name in _FILES)
    except OSError as error:
        raise _missing(f": {error}") from error
    digest = hashlib.sha256(weights + words).hexdigest()[:12]
    tokenizer, (table,) = Tokenizer.from_buffer(words), load(weights).values()

    def parts(text: str) -> Sequence[int]:
        found: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return found

    return EmbeddingModel(f"l2_supercat_256@{digest}", parts, table)


def _missing(why: str = "") -> ExpressionError:
    return ExpressionError(f"the optional extra 'embeddings' is not installed{why}", accepted=EXTRA)


def embedding(text: str, size: int = SIZES[-1]) -> NDArray[np.float64]:
    """Return the embedding of a text, shape (size,), of length 1; zeros for an empty one.

    Raises ExpressionError if the extra is not installed.
    """
    return _remembered(text, size) if len(text) <= LONGEST_REMEMBERED else _embedded(text, size)


def _embedded(text: str, size: int) -> NDArray[np.float64]:
    model = installed_model()
    # Exact, so that no order of addition matters: 16-bit numbers have few digits.
    total = model.table[model.parts(text), :size].sum(axis=0, dtype=np.float64)
    length = math.sqrt(math.fsum((total * total).tolist()))
    return np.asarray(total / length if length else total, dtype=np.float64)


_remembered = lru_cache(MOST_REMEMBERED)(_embedded)


def score_of(text: str, weights: NDArray[np.float64]) -> float:
    """Return the sum of the numbers of a text's embedding, each times its weight."""
    return math.fsum((embedding(text, len(weights)) * weights).tolist())


def _embedding_score(notes: Notes, text: Any, model: Any, weights: Any) -> Any:
    del model  # that it is the one that is installed was checked when the expression was read
    if is_unknown(text):
        return NAN
    held = [text] if isinstance(text, str) else list_of_texts(notes, "embedding_score", text)
    if held is None:
        return NAN
    if sum(map(len, held)) > MAX_EMBEDDED:
        return notes.unknown(f"embedding_score() would read more than {MAX_EMBEDDED} characters")
    found = [score_of(one, np.asarray(weights, dtype=np.float64)) for one in held]
    return found[0] if isinstance(text, str) else np.array(found, dtype=np.float64)


def _refusal(arguments: Sequence[ast.expr]) -> tuple[str, str] | None:
    """Return what is wrong with the model and the weights as they are written, and what is not."""
    try:
        model, weights = map(ast.literal_eval, arguments[1:])
    except ValueError:
        return (
            "embedding_score() needs its model and weights as written",
            "'name@digest', [0.1, ...",
        )
    sizes = " or ".join(map(str, SIZES))
    numbers = isinstance(weights, (list, tuple)) and {*map(type, weights)} <= {int, float}
    if not numbers or len(weights) not in SIZES:
        return "embedding_score() needs a list of weights", f"{sizes} numbers"
    try:
        installed = installed_model().name
    except ExpressionError as error:
        return f"embedding_score(): {error.problem}", str(error.accepted)
    if model != installed:
        return (
            f"the model of embeddings is {model!r}, but {installed!r} is installed",
            f"the version of wordllama that has it, or a file learned with {installed!r}",
        )
    return None


register(
    {
        "embedding_score": Function(
            _embedding_score,
            3,
            3,
            "a weighted sum of the embedding of a text, or of each of a list",
            needs="the model of embeddings and its weights",
            refusal=_refusal,
        )
    }
)
