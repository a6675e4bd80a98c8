"""``forewarn import``: models of other tools."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from forewarn.cli.common import add_output, hertz_or_steps
from forewarn.cli.output import Output
from forewarn.config.fields import Rate
from forewarn.errors import plural
from forewarn.files.outputs import check_output
from forewarn.models import save_model
from forewarn.models.importers import import_probguard

DESCRIPTION = """\
Read a chain as ProbGuard's repository keeps it (a folder with model.json and abstraction.json, and
perhaps dtmc.prism, which tells the first state) and write it as a model file, for `inspect`,
`check` and `export`. Its probabilities are kept exactly: as counts over a common denominator."""

EPILOG = """\
exit codes: 0 a model was written, 2 wrong usage or input.

example: forewarn import models/law38_2 -o law38_2.model.json"""


@dataclass(frozen=True)
class Options:
    """The arguments of ``import``."""

    folder: Path
    output: Path
    rate: Rate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of the chain")
    add_output(parser, "model")
    parser.add_argument(
        "--rate",
        type=hertz_or_steps,
        default=1.0,
        metavar="HZ",
        help="steps a second, or steps, which the folder does not tell (default: 1)",
    )


def run(options: Options, output: Output) -> int:
    """Read and write."""
    check_output(options.output)
    model = import_probguard(options.folder, options.rate)
    save_model(model, options.output)
    vocabulary = model.vocabulary
    if not model.starts.any():
        output.note("note: the folder does not tell the first state")
    output.say(
        f"{plural(model.size, 'state')}, {plural(model.counts.nnz, 'transition')}, "
        f"{plural(len(vocabulary.predicates), 'predicate')}, terminal labels "
        f"{', '.join(vocabulary.terminals) or 'none'} -> "
        f"{options.output}"
    )
    output.emit(
        {
            "model": options.output,
            "states": model.size,
            "transitions": model.counts.nnz,
            "predicates": vocabulary.predicates,
            "terminals": vocabulary.terminals,
            "first": [model.vocabulary.key(model.states[i]) for i in model.starts.nonzero()[0]],
        }
    )
    return 0
