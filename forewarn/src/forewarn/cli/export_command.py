"""``forewarn export``: a model's chain for other tools."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from forewarn.cli.common import write_text
from forewarn.cli.output import Output
from forewarn.errors import InputError
from forewarn.models import load_model
from forewarn.models.exporters import FORMATS, export_chain

DESCRIPTION = """\
Write the chain of a model in the language of another tool: PRISM's, Storm's DRN, JANI, or
Graphviz."""

EPILOG = """\
exit codes: 0 fine, 2 wrong usage or input.

example: forewarn export monitor.model.json -o chain.prism"""

SUFFIXES = {".prism": "prism", ".pm": "prism", ".drn": "drn", ".jani": "jani", ".dot": "dot"}


@dataclass(frozen=True)
class Options:
    """The arguments of ``export``."""

    model: Path
    output: Path
    format: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="the model file")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="the file to write (- for stdout)",
    )
    parser.add_argument(
        "-f",
        "--format",
        choices=sorted(FORMATS),
        help="the format; by default what the file's suffix says",
    )


def run(options: Options, output: Output) -> int:
    """Export."""
    name = options.format or SUFFIXES.get(options.output.suffix)
    if name is None:
        raise InputError(
            "the suffix does not tell the format",
            file=options.output,
            accepted=f"{', '.join(SUFFIXES)}, or --format",
        )
    text = export_chain(load_model(options.model), name)
    if options.output == Path("-"):
        sys.stdout.write(text)
        return 0
    write_text(options.output, text)
    output.say(f"{name} -> {options.output}")
    output.emit({"file": options.output, "format": name})
    return 0
