"""What ``learn`` says of risks that are not the chain's alone."""

from __future__ import annotations

from typing import Any

from forewarn.cli.output import Output
from forewarn.learning.estimates.choice import in_words
from forewarn.models.counts import CountModel


def print_estimates(model: CountModel, output: Output) -> None:
    """Print what each risk is made of, and how well everything that was tried predicts."""
    for one in model.estimates:
        output.say(f"{one.judged.name}: the risk is {in_words(one)}")
        if one.losses:
            rows = [[loss.name, f"{loss.log_loss:.4f}", f"{loss.brier:.4f}"] for loss in one.losses]
            output.table(
                (one.judged.name, ">log loss", ">Brier"),
                rows,
                "recordings predicted without those of their fold",
            )


def estimates_record(model: CountModel) -> dict[str, Any]:
    """Return all of it for ``--json``."""
    return {
        one.judged.name: {
            "asked": one.asked,
            "chosen": one.chosen,
            "words": in_words(one),
            "plain": one.plain._asdict(),
            "scored": None if one.scored is None else one.scored._asdict(),
            "losses": [loss._asdict() for loss in one.losses],
            "recordings": one.recordings,
            "with_violations": one.with_violations,
        }
        for one in model.estimates
    }
