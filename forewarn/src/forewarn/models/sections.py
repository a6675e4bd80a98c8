"""Parts of a model file that wings and other packages keep there.

Other packages add a `ModelSection` as an entry point of the group ``forewarn.model_sections``,
named as the key of the file. What a section holds may not change probabilities: those depend on
the counts and on what the abstraction's digest covers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from forewarn.models.checked_json import Reader


class ModelSection(NamedTuple):
    """How a part of a model becomes JSON, and is read again.

    `dump`: from the values, of which there is at least one, to as many mappings that JSON can hold.
    `parse`: from a `Reader` of each mapping to the values; raises ModelError with the key path.
    `joined`: from the values of each of several models to those of the merged one. By default those
        of the first model that has any stay.
    `in_words`: from the values to what `forewarn inspect` says of them.
    `facts`: from the values to what ``forewarn inspect --json`` has under the key.
    """

    dump: Callable[[Sequence[Any]], Sequence[dict[str, Any]]]
    parse: Callable[[Sequence[Reader]], tuple[Any, ...]]
    joined: Callable[[Sequence[tuple[Any, ...]]], tuple[Any, ...]] = itemgetter(0)
    in_words: Callable[[Sequence[Any]], str] | None = None
    facts: Callable[[Sequence[Any]], Any] | None = None
