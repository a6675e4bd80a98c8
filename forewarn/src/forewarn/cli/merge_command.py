"""``forewarn merge``: counts of one monitor file add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forewarn.assessment.modelling import NORMAL, kept_normal
from forewarn.cli.common import output_option
from forewarn.cli.options import argument
from forewarn.cli.output import Output
from forewarn.errors import ModelError, located, plural
from forewarn.files.outputs import check_output
from forewarn.learning.copies import refuse_counted_twice
from forewarn.models.counts import CountModel
from forewarn.models.file import load_model, merge_models, save_model

DESCRIPTION = """\
Add up the counts of models of the same monitor file; properties and thresholds may differ.
Models that have counted the same recording are refused."""

EPILOG = """\
exit codes: 0 a model was written, 2 wrong usage or input.

example: forewarn merge monday.json tuesday.json -o week.json"""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of ``merge``."""

    models: list[Path] = argument("model files", "MODEL")
    output: Path = output_option("model")


def run(options: Options, output: Output) -> int:
    """Merge and write."""
    check_output(options.output)
    models: list[CountModel] = []
    for path in options.models:
        model = load_model(path)
        with located(ModelError, file=path):
            merge_models([*models[:1], model])
        models.append(model)
        if model.recalibration:
            output.note(f"note: the calibration in {path} is left out: it was fitted to it alone")
        if model.hierarchical_prior is not None:
            output.note(f"note: counts that {path} borrows from other groups are left out")
        if model.estimates:
            output.note(
                f"note: the choice of estimates in {path} is left out: a monitor chooses again, "
                "and `forewarn learn --add-to` writes it down"
            )
    merged = merge_models(models)
    refuse_counted_twice(merged.provenance)
    _remark_normal(options.models, models, merged, output)
    save_model(merged, options.output)
    transitions = int(merged.counts.sum())
    output.say(
        f"{plural(len(models), 'model')}, {plural(len(merged.provenance), 'recording')}: "
        f"{plural(merged.size, 'state')}, {plural(transitions, 'transition')} -> {options.output}"
    )
    output.emit(
        {
            "model": options.output,
            "states": merged.size,
            "transitions": transitions,
            "recordings": [origin.__dict__ for origin in merged.provenance],
        }
    )
    return 0


def _remark_normal(
    paths: Sequence[Path], models: Sequence[CountModel], merged: CountModel, output: Output
) -> None:
    """Say whose normal moments are left out."""
    kept = merged.sections.get(NORMAL)
    for path, model in zip(paths, models, strict=True):
        if model.sections.get(NORMAL) and model.sections[NORMAL] is not kept:
            output.note(
                f"note: normal moments in {path} are left out: those of two models cannot be "
                f"joined, and those of the most recordings ({kept_normal(merged)}) are kept"
            )
