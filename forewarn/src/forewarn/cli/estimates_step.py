"""What ``learn`` says of risks that are not the chain's alone."""

from __future__ import annotations

from typing import Any

from forewarn.cli.output import Output
from forewarn.learning.estimates.choice import in_words
from forewarn.logic.specification import CompiledSpec
from forewarn.models import CountModel
from forewarn.monitoring.build import with_estimates


def estimated_model(compiled: CompiledSpec, model: CountModel, output: Output) -> CountModel:
    """Return the model with what risks are made of, where the monitor file asks for it."""
    if all(section.estimator == "chain" for section in compiled.spec.properties.values()):
        return model
    with output.progress("choosing what risks are made of"):
        return with_estimates(compiled, model)


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
