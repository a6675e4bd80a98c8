"""The functions that expressions may call: each part registers its own."""

from forewarn.expressions.functions import (
    arithmetic,
    beams,
    conflict,
    effects,
    embeddings,
    flows,
    memory,
    patterns,
    provenance,
    roads,
    texts,
)
from forewarn.expressions.functions.registry import CONSTANTS, FUNCTIONS, arity_problem

__all__ = [
    "CONSTANTS",
    "FUNCTIONS",
    "arithmetic",
    "arity_problem",
    "beams",
    "conflict",
    "effects",
    "embeddings",
    "flows",
    "memory",
    "patterns",
    "provenance",
    "roads",
    "texts",
]
