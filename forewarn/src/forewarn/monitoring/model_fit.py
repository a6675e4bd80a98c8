"""Whether a model was learned with the states of a monitor file, and how to keep it if not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from forewarn.errors import ModelError
from forewarn.models.counts import END_LABEL
from forewarn.signals.clock_kinds import by_clock

if TYPE_CHECKING:
    from forewarn.logic.specification import CompiledSpec
    from forewarn.models.counts import CountModel

#: A predicate that compares a signal with a number.
CUT = re.compile(r"(?P<signal>\w+)\s*(?:<=?|>=?)\s*(?P<threshold>[-+.\w]+)\Z")


def check_model(compiled: CompiledSpec, model: CountModel) -> None:
    """Check that `model` fits this abstraction; raises ModelError saying what differs."""
    for problem in _differences(compiled, model):
        raise problem


def _differences(compiled: CompiledSpec, model: CountModel) -> Iterator[ModelError]:
    vocabulary = compiled.abstraction.vocabulary
    if not model.observed.any():
        yield ModelError(
            "the model has no visited state: nothing was learned",
            key="states",
            accepted="a model learned from recordings in which all predicates are known at times",
        )
    if model.rate != compiled.spec.rate:
        yield ModelError(
            f"the model was learned {by_clock(model.rate)}, the monitor file runs "
            f"{by_clock(compiled.spec.rate)}",
            key="rate",
            accepted="equal clocks: learn again, or change clock or rate",
        )
    if model.vocabulary.kind != vocabulary.kind:
        yield ModelError(
            f"the model was learned with states of the kind {model.vocabulary.kind}",
            key="space.kind",
            accepted=f"{vocabulary.kind}, as the monitor file says: learn again",
        )
    for key, theirs, ours in (
        ("predicates", model.vocabulary.predicates, vocabulary.predicates),
        ("terminal", _declared_terminals(model), vocabulary.terminals),
    ):
        if theirs != ours:
            missing = [n for n in ours if n not in theirs]
            extra = [n for n in theirs if n not in ours]
            detail = "; ".join(
                f"{what} {', '.join(names)}"
                for what, names in (("it lacks", missing), ("it has", extra))
                if names
            )
            of_formulas = _of_formulas(compiled, model, missing) if key == "predicates" else None
            yield of_formulas or ModelError(
                f"the model was learned with other {key}: {detail or 'in another order'}",
                key=key,
                accepted=", ".join(ours),
            )
    if model.digest != compiled.abstraction.digest:
        yield ModelError(
            f"the model was learned with another abstraction (digest {model.digest[:12]}, the "
            f"monitor file has {compiled.abstraction.digest[:12]}): a signal, predicate, "
            "constraint or timeout differs",
            key="digest",
            accepted="a model learned with this monitor file: learn again",
        )


def _of_formulas(
    compiled: CompiledSpec, model: CountModel, missing: Sequence[str]
) -> ModelError | None:
    """Return the error where a model lacks only comparisons that stand in formulas."""
    spec = compiled.spec
    binned = {name for name in missing if (cut := CUT.match(name)) and cut["signal"] in spec.bins}
    if not missing or binned or any(name in spec.predicates for name in missing):
        return None
    name = missing[0]
    rules = zip(spec.properties, compiled.automata, strict=True)
    rule = next((rule for rule, automaton in rules if name in automaton.atoms), None)
    if rule is None:
        return None
    cut = CUT.match(name)
    known = [
        theirs
        for theirs in model.vocabulary.predicates
        if cut is not None and (other := CUT.match(theirs)) and other["signal"] == cut["signal"]
    ]
    keep = f"{' or '.join(known)}, which this model knows; or " if known else ""
    return ModelError(
        f"the comparison {name} in the formula of {rule} is part of the states, and the model was "
        "learned without it",
        key="predicates",
        accepted=f"{keep}learn again, best with all comparisons that formulas may come to need "
        "under `predicates:`: among those they choose without learning again",
    )


def _declared_terminals(model: CountModel) -> tuple[str, ...]:
    terminals = model.vocabulary.terminals
    return terminals[:-1] if model.end == "absorb" and terminals[-1:] == (END_LABEL,) else terminals
