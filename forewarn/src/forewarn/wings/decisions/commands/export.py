"""``forewarn export``: a model's chain for other tools."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from forewarn.cli.options import argument, option
from forewarn.cli.output import Output
from forewarn.errors import InputError, plural
from forewarn.files.outputs import check_output, write_output
from forewarn.models.file import load_model
from forewarn.wings.decisions.chains import chain_of, unsmoothed_option
from forewarn.wings.decisions.exporters import FORMATS, export_chain

DESCRIPTION = """\
Write the chain of a model in PRISM's language, Storm's DRN, JANI, or for Graphviz. Predicates
and terminal labels become labels. The first state is the one that most episodes begin in."""

EPILOG = """\
exit codes: 0 fine, 2 wrong usage or input.

examples: forewarn export monitor.model.json -o chain.prism
          forewarn export monitor.model.json --format dot --unsmoothed | dot -Tsvg > chain.svg"""

SUFFIXES = {
    ".prism": "prism", ".pm": "prism", ".drn": "drn", ".jani": "jani", ".dot": "dot", ".gv": "dot",
}  # fmt: skip
MANY = 100_000


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of ``export``."""

    model: Path = argument("the model file", "MODEL")
    format: str | None = option(
        "the format; by default what the suffix of the file says", None, "-f", choices=list(FORMATS)
    )
    output: Path | None = option("the file to write (default: stdout)", "FILE", "-o")
    unsmoothed: bool = unsmoothed_option()


def run(options: Options, output: Output) -> int:
    """Export."""
    target = None if options.output == Path("-") else options.output
    check_output(target)
    name = options.format or (SUFFIXES.get(target.suffix) if target else None)
    if name is None:
        raise InputError(
            "the suffix does not tell the format" if target else "no format is given",
            file=target,
            key="" if target else "--format",
            accepted=f"{', '.join(SUFFIXES)}, or --format" if target else ", ".join(FORMATS),
        )
    model = load_model(options.model)
    chain = chain_of(model, options.model, options.unsmoothed)
    transitions = chain.to_csr().nnz
    if chain.smoothed and transitions > MANY:
        output.note(
            f"note: smoothing makes {transitions:,} transitions of the {model.counts.nnz:,} that "
            "were counted; --unsmoothed leaves it out"
        )
    text = export_chain(model, name, chain)
    if target is not None:
        write_output(target, text)
        output.say(
            f"{plural(model.size, 'state')}, {plural(transitions, 'transition')}, {name} -> "
            f"{target}"
        )
    elif not output.as_json:
        sys.stdout.write(text)
    output.emit(
        {
            "format": name,
            "states": model.size,
            "transitions": transitions,
            **({"text": text} if target is None else {"file": target}),
        }
    )
    return 0
