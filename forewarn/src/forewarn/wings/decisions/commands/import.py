"""``forewarn import``: models of other tools."""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from forewarn.cli.common import hertz_or_steps, output_option, storm_speaks
from forewarn.cli.options import argument, option
from forewarn.cli.output import Output
from forewarn.config.fields import Rate
from forewarn.errors import InputError, ModelError, plural
from forewarn.files.outputs import check_output
from forewarn.models.counts import CountModel
from forewarn.models.file import save_model
from forewarn.wings.decisions.importers import import_probguard
from forewarn.wings.decisions.storm_api import in_subprocess
from forewarn.wings.decisions.storm_models import FEW, SUFFIXES, import_chain

DESCRIPTION = """\
Read a chain of another tool as a model file, for `inspect`, `check` and `export`: PRISM's language,
Storm's DRN or JANI (stormpy has to be installed), or a folder of ProbGuard's repository. Labels
become predicates; states with the same labels differ in index_1, index_2, index_4 and so on. A
formula without a label needs one in the file first: label "lost" = s=5. A chain may have 131,072
states."""

EPILOG = """\
exit codes: 0 a model was written, 2 wrong usage or input.

examples: forewarn import models/law38_2 -o law38_2.model.json
          forewarn import brp.pm --constants N=16,MAX=2 -o brp.model.json
          forewarn import chain.tra -o chain.model.json --rate 10 --terminal done"""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of ``import``."""

    source: Path = argument(f"the file ({', '.join(SUFFIXES)}), or ProbGuard's folder", "SOURCE")
    output: Path = output_option("model")
    rate: Rate = option(
        "steps a second, or steps, which the source does not tell",
        "HZ",
        of=hertz_or_steps,
        default=1.0,
    )
    constants: str = option(
        "values of constants that a PRISM or JANI file leaves open", "NAME=VALUE,...", default=""
    )
    terminals: list[str] = option(
        "a label of absorbing states that becomes a terminal label (may be repeated)",
        "LABEL",
        "--terminal",
    )


def run(options: Options, output: Output) -> int:
    """Read and write."""
    check_output(options.output)
    model = _read(options, output)
    save_model(model, options.output)
    vocabulary = model.vocabulary
    if not model.starts.any():
        output.note("note: the source does not tell the first state")
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


def _read(options: Options, output: Output) -> CountModel:
    source = options.source
    if source.suffix in SUFFIXES and not source.is_dir():
        with storm_speaks(output):
            asked = source, options.rate, options.constants, options.terminals
            try:
                found = in_subprocess(import_chain, *asked)
            except BrokenProcessPool as error:
                raise ModelError(
                    "Storm crashes on it: it divides by zero, or has too many states",
                    accepted=FEW, file=source,
                ) from error  # fmt: skip
        if found.rounded:
            output.note(
                f"note: the probabilities of {plural(found.rounded, 'state')} have no common "
                "denominator up to 2^40: they are kept to within 2^-40"
            )
        return found.model
    if source.is_file():
        accepted = f"{', '.join(SUFFIXES)}, or a folder as ProbGuard keeps them"
        raise InputError("the suffix does not tell the format", file=source, accepted=accepted)
    if options.constants or options.terminals:
        raise InputError(
            "ProbGuard's folders have neither constants nor labels",
            file=source,
            key="--constants" if options.constants else "--terminal",
            accepted="neither option, or a file of another tool",
        )
    return import_probguard(source, options.rate)
