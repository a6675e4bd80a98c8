"""Chains in PRISM's language, Storm's DRN and JANI as count models: Storm reads them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forewarn.errors import ModelError
from forewarn.files.inputs import open_plain
from forewarn.models.counts import CountModel, Provenance
from forewarn.models.file import MAX_STATES
from forewarn.wings.decisions.labelled import labelled_chain
from forewarn.wings.decisions.storm_api import Mask, Storm

if TYPE_CHECKING:
    from forewarn.config.fields import Rate

SUFFIXES = {".prism": "prism", ".pm": "prism", ".drn": "drn", ".jani": "jani"}
OUTSIDE = "out_of_bounds"
"""Storm's label of a state in which a variable has left its range."""
FEW = f"at most {MAX_STATES:,}: give smaller constants, or lump the chain first"


class Imported(NamedTuple):
    """A chain that Storm has read; `rounded` states keep probabilities to within 2^-40."""

    model: CountModel
    rounded: int


def import_chain(
    file: Path, rate: Rate = 1.0, constants: str = "", terminals: Sequence[str] = ()
) -> Imported:
    """Read a discrete-time Markov chain in PRISM's language, DRN or JANI (`labelled_chain`).

    A division by zero in the file ends the process: see `storm_api.in_subprocess`. The file tells
    no rate. `constants` are values of those that the file leaves open, as in ``N=16,p=0.9``. Raises
    ModelError, or CheckingError if stormpy is missing.
    """
    try:
        with open_plain(file) as stream:
            content = stream.read()
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror or error}", file=file) from error
    built = _build(Storm(), file, content, constants)
    kind = str(built.model_type).rsplit(".", 1)[-1].upper()
    if kind != "DTMC":
        raise ModelError(f"is a model of kind {kind}", accepted="a DTMC", file=file)
    if built.nr_states > MAX_STATES:
        raise ModelError(f"has {built.nr_states:,} states", accepted=FEW, file=file)
    labels = _labels(built, file)
    rows = [_row(built, state) for state in range(built.nr_states)]
    digest = hashlib.sha256(content + constants.encode()).hexdigest()
    made, rounded = labelled_chain(labels, rows, built.initial_states, terminals, file)
    model = replace(
        made,
        rate=rate,
        digest=f"storm:{digest[:16]}",
        provenance=(Provenance(recording=file.name, digest=digest),),
    )
    return Imported(model, rounded)


def _build(storm: Storm, file: Path, content: bytes, constants: str) -> Any:
    """Return Storm's model of the file with all labels."""
    form = SUFFIXES[file.suffix]
    if form == "drn":
        if constants:
            raise ModelError(
                "a DRN file has no constants", accepted="no --constants", file=file, key=constants
            )
        # Checked before anything is built: Storm itself knows no limit.
        found = re.search(rb"^@nr_states\s+(\d+)", content, re.MULTILINE)
        if found and int(found[1]) > MAX_STATES:
            raise ModelError(f"has {int(found[1]):,} states", accepted=FEW, file=file)
    module = storm.module
    try:
        if form == "drn":
            return module.build_model_from_drn(str(file))
        described = (
            module.parse_prism_program(str(file))
            if form == "prism"
            else module.parse_jani_model(str(file))[0]
        )
        described = module.preprocess_symbolic_input(described, [], constants)[0]
        program = described.as_prism_program() if form == "prism" else described.as_jani_model()
        if program.has_undefined_constants:
            raise ModelError(
                "leaves constants open: " + ", ".join(_undefined(program)),
                accepted="--constants NAME=VALUE,...",
                file=file,
            )
        # Storm lets a value out of range wrap around in silence. Asked to add a state for it, Storm
        # changes other rows as well: so that model is only looked at, and a second one is taken.
        # Storm's exploration checks would refuse rows that are rounded, too.
        labelling = _built(storm, program, add_outside=True).labeling
        if OUTSIDE in labelling.get_labels() and any(labelling.get_states(OUTSIDE)):
            raise ModelError(
                "a variable leaves its range, or a label has the name out_of_bounds",
                accepted="updates within the ranges that are declared",
                file=file,
            )
        return _built(storm, program)
    except (RuntimeError, ValueError, IndexError) as error:  # as pybind11 has those of C++
        raise _refused(error, file, form, constants) from error


def _built(storm: Storm, program: Any, *, add_outside: bool = False) -> Any:
    """Return the model of a program with all labels; `add_outside` adds that of `OUTSIDE`."""
    options = storm.module.BuilderOptions()
    options.set_build_all_labels()
    if add_outside:
        options.set_add_out_of_bounds_state()
    return storm.module.build_sparse_model_with_options(program, options)


def _undefined(program: Any) -> list[str]:
    return sorted(constant.name for constant in program.constants if not constant.defined)


def _refused(error: Exception, file: Path, form: str, constants: str) -> ModelError:
    """Return Storm's words with file and line."""
    text = re.sub(r"^\w+Exception: ", "", " ".join(str(error).split()))
    place = re.search(r"[Pp]arsing error at (\d+):(\d+):\s*", text) or re.search(
        r"parse error at line (\d+), column (\d+):\s*", text
    )
    if place:
        text = text[place.end() :]
    accepted = {"prism": "PRISM's language", "drn": "Storm's DRN", "jani": "JANI"}[form]
    where = f"line {place[1]}, column {place[2]}" if place else ""
    if "constant definition" in text or "defining already defined" in text:
        where, accepted = f"--constants {constants}", "NAME=VALUE,... of constants left open"
    else:
        accepted += ", a DTMC, as Storm takes it"
    return ModelError(f"Storm does not take it: {text}", accepted=accepted, file=file, key=where)


def _labels(built: Any, file: Path) -> dict[str, Mask]:
    labeling = built.labeling
    try:
        names = set(labeling.get_labels())
    except UnicodeDecodeError as error:
        raise ModelError("has a label that is no UTF-8", accepted="UTF-8", file=file) from error
    if "init" not in names:
        raise ModelError("has no initial state", accepted="a state with the label init", file=file)
    result: dict[str, Mask] = {}
    # Storm adds both of its own accord.
    for name in sorted(names - {"init", "deadlock"}):
        mask = np.zeros(built.nr_states, dtype=bool)
        mask[list(labeling.get_states(name))] = True
        result[name] = mask
    return result


def _row(built: Any, state: int) -> dict[int, float]:
    row: dict[int, float] = {}
    for entry in built.transition_matrix.get_row(state):
        value = float(entry.value())
        if value:
            row[int(entry.column)] = value
    return row
