"""``forewarn check``: ask a model anything, through Storm."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forewarn.checking.storm import QueryResult, check_query
from forewarn.cli.common import whole_number
from forewarn.cli.output import Output
from forewarn.models import CountModel, estimate_chain, load_model

DESCRIPTION = """\
Answer a query about a model: PCTL over predicates and terminal labels, in double quotes, through
Storm (stormpy has to be installed), and CTL (AX AG AF AU EX EG EF EU), where names may stand
bare. A step is a tick: at 10 Hz, F<=50 looks five seconds ahead."""

EPILOG = """\
exit codes: 0 a number was found, or the formula holds in every state that episodes begin in;
1 it does not hold in one of them; 2 wrong usage or input.

examples: forewarn check monitor.model.json 'P=? [ F<=50 "collision" ]'
          forewarn check monitor.model.json 'AG !collision'"""


@dataclass(frozen=True)
class Options:
    """The arguments of ``check``."""

    model: Path
    query: str
    top: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="the model file")
    parser.add_argument("query", metavar="QUERY", help="a PCTL or CTL formula")
    parser.add_argument(
        "-n",
        "--top",
        type=whole_number,
        default=10,
        metavar="N",
        help="how many states to list, 0 for all (default: 10)",
    )


def run(options: Options, output: Output) -> int:
    """Ask, and print the answer for the states where it matters most."""
    model = load_model(options.model)
    answer = check_query(model, estimate_chain(model), options.query)
    for note in answer.notes:
        output.note(f"note: {note}")
    starts = np.flatnonzero(model.starts)
    truth = answer.values.dtype == bool
    output.say(_summary(model, answer, starts))
    order = np.lexsort((-model.visits, -answer.values.astype(np.float64)))
    listed = order[: options.top or model.size]
    rows = [
        [str(bool(answer.values[i])) if truth else f"{answer.values[i]:.6g}", model.name(i),
         str(int(model.visits[i]))]
        for i in listed.tolist()
    ]  # fmt: skip
    output.table((">value", "state", ">visits"), rows)
    output.emit(
        {
            "query": answer.query,
            "values": {
                model.vocabulary.key(code): answer.values[i] for i, code in enumerate(model.states)
            },
            "starts": [model.vocabulary.key(model.states[i]) for i in starts.tolist()],
            "notes": answer.notes,
        }
    )
    return 1 if truth and not answer.values[starts].all() else 0


def _summary(model: CountModel, answer: QueryResult, starts: NDArray[np.intp]) -> str:
    if answer.values.dtype == bool:
        return (
            f"holds in {int(answer.values.sum())} of {model.size} states, and in "
            f"{int(answer.values[starts].sum())} of the {len(starts)} that episodes begin in"
        )
    if not len(starts):
        return f"over {model.size} states"
    mean = np.average(answer.values[starts], weights=model.starts[starts])
    return f"{mean:.6g} at the beginning of an episode, mean over {len(starts)} first states"
