"""How much a run tries: a part of what the tests promise, or all of it (`make test-long`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

WHOLE = bool(os.environ.get("FOREWARN_LONG"))
"""Whether all is tried: tests marked `long`, every repetition, every file of others."""


def examples(number: int) -> int:
    """Return how many inputs Hypothesis draws for a law that asks for `number`: a third, or all."""
    return number if WHOLE else -(-number // 3)


def repetitions(number: int) -> int:
    """Return how often what is drawn by chance is repeated: `number` times, or a tenth of it."""
    return number if WHOLE else max(1, number // 10)


def sampled(items: Sequence[T]) -> list[T]:
    """Return all items, or each tenth and the last one."""
    return list(items) if WHOLE else list(dict.fromkeys([*items[::10], *items[-1:]]))
