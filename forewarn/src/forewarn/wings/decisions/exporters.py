"""Chains for other tools: PRISM's language, Storm's DRN, JANI and Graphviz."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.errors import ModelError
from forewarn.models.estimation import estimate_chain
from forewarn.signals.clock_kinds import by_clock, clock_of

if TYPE_CHECKING:
    from forewarn.models.chain import Chain
    from forewarn.models.counts import CountModel

Mask = NDArray[np.bool_]

RESERVED = {
    "init", "deadlock", "A", "bool", "clock", "const", "ctmc", "C", "double", "dtmc", "E",
    "endinit", "endmodule", "endrewards", "F", "false", "filter", "formula", "func", "G", "global",
    "I", "int", "label", "max", "mdp", "min", "module", "P", "Pmax", "Pmin", "probabilistic",
    "prob", "pta", "rate", "rewards", "R", "Rmax", "Rmin", "S", "s", "stochastic", "system", "true",
    "U", "W", "X",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Exported:
    """What goes into a file: a flat chain, shape (n, n), labels and names.

    States without successors stay where they are. `meaning` is the predicate or terminal label that
    a label, an identifier, stands for. `about` says what one step is.
    """

    matrix: sparse.csr_matrix
    labels: Mapping[str, Mask]
    meaning: Mapping[str, str]
    names: tuple[str, ...]
    initial: int
    about: str

    def rows(self) -> Iterator[list[tuple[int, float]]]:
        """Yield the successors of each state with their probabilities."""
        matrix = self.matrix
        for i in range(matrix.shape[0]):
            part = slice(matrix.indptr[i], matrix.indptr[i + 1])
            yield list(zip(matrix.indices[part].tolist(), matrix.data[part].tolist(), strict=True))


def export_chain(model: CountModel, format_name: str, chain: Chain | None = None) -> str:
    """Return the text of a model's chain in one of `FORMATS`; raises ModelError."""
    if format_name not in FORMATS:
        raise ModelError(f"{format_name!r} is no format", accepted=", ".join(FORMATS), key="format")
    if not model.size:
        raise ModelError("the model has no states", accepted="a model with states", key="states")
    return FORMATS[format_name](_prepared(model, estimate_chain(model) if chain is None else chain))


def _prepared(model: CountModel, chain: Chain) -> Exported:
    matrix = chain.to_csr()
    empty = np.asarray(matrix.sum(axis=1)).ravel() == 0
    matrix = sparse.csr_matrix(matrix + sparse.diags(empty.astype(np.float64)))
    matrix.eliminate_zeros()
    matrix.sort_indices()
    labels: dict[str, Mask] = {}
    meaning: dict[str, str] = {}
    vocabulary = model.vocabulary
    for name in vocabulary.atoms:
        label = _identifier(name, labels)
        labels[label] = np.array([vocabulary.holds(name, state) for state in model.states])
        meaning[label] = name
    names = tuple(vocabulary.name(state) for state in model.states)
    about = f"learned by Forewarn; one step is one {clock_of(model.rate).noun}"
    about += f" {by_clock(model.rate)}" if model.rate != "steps" else " of the monitor"
    return Exported(matrix, labels, meaning, names, int(np.argmax(model.starts)), about)


def _identifier(name: str, taken: Mapping[str, Mask]) -> str:
    """Return a name that every format accepts and that is not taken."""
    words = {"<=": "_le_", ">=": "_ge_", "==": "_eq_", "!=": "_ne_", "<": "_lt_", ">": "_gt_"}
    text = name
    for mark, word in words.items():
        text = text.replace(mark, word)
    text = re.sub(r"_+", "_", re.sub(r"\W", "_", text, flags=re.ASCII)).strip("_") or "label"
    if text[0].isdigit() or text in RESERVED:
        text = f"p_{text}"
    number, unique = 1, text
    while unique in taken:
        number += 1
        unique = f"{text}_{number}"
    return unique


def _prism(chain: Exported) -> str:
    lines = [
        f"// A discrete-time Markov chain {chain.about}.",
        *(f'// "{label}" is {name}' for label, name in chain.meaning.items() if label != name),
        "dtmc",
        "",
        "module chain",
        f"  s : [0..{max(len(chain.names) - 1, 1)}] init {chain.initial};",
        "",
    ]
    for i, row in enumerate(chain.rows()):
        moves = " + ".join(f"{weight!r} : (s'={j})" for j, weight in row)
        lines.append(f"  [] s={i} -> {moves}; // {_comment(chain.names[i])}")
    lines += ["endmodule", ""]
    for label, mask in chain.labels.items():
        where = " | ".join(f"s={i}" for i in np.flatnonzero(mask)) or "false"
        lines.append(f'label "{label}" = {where};')
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _drn(chain: Exported) -> str:
    n = len(chain.names)
    lines = [
        f"// A discrete-time Markov chain {chain.about}.",
        *(f"// {label} is {name}" for label, name in chain.meaning.items() if label != name),
        "@type: DTMC",
        "@parameters",
        "",
        "@reward_models",
        "",
        "@nr_states",
        str(n),
        "@nr_choices",
        str(n),
        "@model",
    ]
    for i, row in enumerate(chain.rows()):
        held = [label for label, mask in chain.labels.items() if mask[i]]
        marks = ["init", *held] if i == chain.initial else held
        lines.append(" ".join([f"state {i}", *marks]))
        lines.append("\taction 0")
        lines += [f"\t\t{j} : {weight!r}" for j, weight in row]
    return "\n".join(lines) + "\n"


def _jani(chain: Exported) -> str:
    def assigned(i: int) -> list[dict[str, object]]:
        return [{"ref": label, "value": True} for label, mask in chain.labels.items() if mask[i]]

    document = {
        "jani-version": 1,
        "name": "forewarn",
        "type": "dtmc",
        "metadata": {"description": f"A chain {chain.about}."},
        "features": [],
        "variables": [
            {"name": label, "type": "bool", "transient": True, "initial-value": False}
            for label in chain.labels
        ],
        "properties": [],
        "automata": [
            {
                "name": "chain",
                "locations": [
                    {"name": f"s{i}", "transient-values": assigned(i)}
                    for i in range(len(chain.names))
                ],
                "initial-locations": [f"s{chain.initial}"],
                "edges": [
                    {
                        "location": f"s{i}",
                        "destinations": [
                            {"location": f"s{j}", "probability": {"exp": weight}}
                            for j, weight in row
                        ],
                    }
                    for i, row in enumerate(chain.rows())
                ],
            }
        ],
        "system": {"elements": [{"automaton": "chain"}]},
    }
    return json.dumps(document, indent=1) + "\n"


def _dot(chain: Exported) -> str:
    terminal = np.asarray(chain.matrix.diagonal() == 1.0)
    lines = ["digraph chain {", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
    for i, name in enumerate(chain.names):
        marks = ", peripheries=2" if terminal[i] else ""
        marks += ", style=bold" if i == chain.initial else ""
        lines.append(f"  s{i} [label={_quoted(name)}{marks}];")
    lines += [
        f'  s{i} -> s{j} [label="{weight:.3g}"];'
        for i, row in enumerate(chain.rows())
        for j, weight in row
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


FORMATS: Mapping[str, Callable[[Exported], str]] = {
    "prism": _prism,
    "drn": _drn,
    "jani": _jani,
    "dot": _dot,
}
