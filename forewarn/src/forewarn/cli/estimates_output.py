"""What ``learn`` says of risks that are not the chain's alone."""

from __future__ import annotations

from typing import Any

from forewarn.cli.output import Output
from forewarn.learning.estimates.choice import details_in_words, in_words
from forewarn.models.counts import CountModel


def print_estimates(model: CountModel, output: Output, *, details: bool) -> None:
    """Print what each risk is made of; with details its weights, and how well each one predicts."""
    for one in model.estimates:
        more = "; details: --assess" if one.losses and not details else ""
        output.say(f"{one.judged.name}: {in_words(one)}{more}")
        if not details:
            continue
        if weights := details_in_words(one):
            output.say(weights)
        if one.losses:
            rows = [[loss.name, f"{loss.log_loss:.4f}", f"{loss.brier:.4f}"] for loss in one.losses]
            output.table(
                (one.judged.name, ">log loss", ">Brier"),
                rows,
                "how well each predicts recordings that it was not fitted to",
            )


def estimates_record(model: CountModel) -> dict[str, Any]:
    """Return all of it for ``--json``."""
    return {
        one.judged.name: {
            "asked": one.asked,
            "chosen": one.chosen,
            "words": in_words(one),
            "details": details_in_words(one),
            "plain": one.plain._asdict(),
            "scored": None if one.scored is None else one.scored._asdict(),
            "losses": [loss._asdict() for loss in one.losses],
            "recordings": one.recordings,
            "with_violations": one.with_violations,
        }
        for one in model.estimates
    }
