"""Counts, chains and the model file: frozen values."""

from forewarn.models.chain import Chain
from forewarn.models.counts import CountModel, Provenance, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.models.file import (
    canonical,
    check_replaceable,
    dump_model,
    load_model,
    merge_models,
    parse_model,
    save_model,
)

__all__ = [
    "Chain",
    "CountModel",
    "Provenance",
    "Smoothing",
    "canonical",
    "check_replaceable",
    "dump_model",
    "estimate_chain",
    "load_model",
    "merge_models",
    "parse_model",
    "save_model",
]
