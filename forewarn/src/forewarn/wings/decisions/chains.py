"""The chain of a model, written out for tools that know no smoothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from forewarn.cli.options import option
from forewarn.errors import InputError
from forewarn.models.chain import Chain
from forewarn.models.counts import CountModel
from forewarn.models.estimation import estimate_chain, valid_successors

MAX_TRANSITIONS = 20_000_000


def unsmoothed_option() -> Any:
    """Declare ``--unsmoothed``."""
    return option("leave smoothing out: only transitions that were counted (maximum likelihood)")


def chain_of(model: CountModel, file: Path, unsmoothed: bool) -> Chain:
    """Return the chain of a model, with or without its smoothing.

    Raises InputError if smoothing would fill more rows than fit into memory.
    """
    smoothing = replace(model.smoothing, alpha="none") if unsmoothed else model.smoothing
    chain = estimate_chain(model, smoothing)
    if chain.smoothed:
        filled = int(valid_successors(model, smoothing).numbers.sum())
        if filled > MAX_TRANSITIONS:
            raise InputError(
                f"smoothing fills the rows of {model.size:,} states: {filled:,} transitions",
                file=file,
                accepted=f"at most {MAX_TRANSITIONS:,}; --unsmoothed leaves smoothing out",
            )
    return chain
