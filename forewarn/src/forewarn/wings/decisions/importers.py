"""Chains of others as count models: the models that ProbGuard publishes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forewarn.errors import ModelError
from forewarn.models.checked_json import read_json
from forewarn.models.counts import CountModel, Provenance
from forewarn.models.file import MAX_COUNT
from forewarn.wings.decisions.labelled import labelled_chain

if TYPE_CHECKING:
    from forewarn.config.fields import Rate

FINISH = "finish"


class Coding(NamedTuple):
    """What the digits of ProbGuard's states stand for; the first names are terminal labels."""

    names: tuple[str, ...]
    marks: tuple[str, ...] = ()


def import_probguard(folder: Path | str, rate: Rate = 1.0) -> CountModel:
    """Read a chain as ProbGuard's repository keeps it; raises ModelError.

    A folder has ``model.json`` (states and transition probabilities as fractions) and
    ``abstraction.json`` (what the digits of a state stand for); ``dtmc.prism``, if it is there,
    tells the initial state. Counts are the fractions over a common denominator, so that maximum
    likelihood gives back the same probabilities; their smoothing is part of them.
    """
    place = Path(folder)
    source, abstraction = place / "model.json", place / "abstraction.json"
    document, meaning = read_json(source), read_json(abstraction)
    given = _expect(document, "transition_probs", dict, source)
    keys = _expect(document, "states", list, source)
    if not keys or not all(isinstance(key, str) for key in keys) or len(set(keys)) != len(keys):
        raise ModelError(
            "not a list of states", accepted="distinct texts", file=source, key="states"
        )
    digits = max((len(key) for key in keys if key != FINISH), default=0)
    coding = _coding(meaning, document, keys, digits, abstraction)
    terminals = (*coding.marks, FINISH) if FINISH in keys else coding.marks
    held = [_labels(key, coding, digits, source) for key in keys]
    names = dict.fromkeys((*coding.names[len(coding.marks) :], *terminals))
    labels = {name: np.array([name in one for one in held]) for name in names}
    rows = _rows(given, keys, source)
    for state, one in enumerate(held):
        if not one.isdisjoint(terminals):
            rows[state] = {state: Fraction(1)}
    first = _initial(place / "dtmc.prism", len(keys))
    starts = () if first is None else (first,)
    model, _ = labelled_chain(labels, rows, starts, terminals, source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    provenance = (Provenance(recording=f"ProbGuard {place.name}", digest=digest),)
    return replace(model, rate=rate, digest=f"probguard:{digest[:16]}", provenance=provenance)


def _expect(document: Any, key: str, kind: type, file: Path) -> Any:
    value = document.get(key) if isinstance(document, dict) else None
    if not isinstance(value, kind):
        raise ModelError("missing, or of another type", accepted=kind.__name__, file=file, key=key)
    return value


def _coding(meaning: Any, document: Any, keys: Sequence[str], digits: int, file: Path) -> Coding:
    if isinstance(meaning, dict) and "predicates" in meaning:
        predicates = _expect(meaning, "predicates", list, file)
        if not all(isinstance(p, list) and len(p) == 3 for p in predicates):
            raise ModelError(
                "not a list of predicates",
                accepted="[name, operator, value] items",
                file=file,
                key="predicates",
            )
        marks = ("collision", "reach")
        spare = digits - len(marks) - len(predicates)
        if spare < 0:
            raise ModelError(
                f"states of {digits} digits for {len(predicates)} predicates",
                accepted="two digits more than predicates, at least",
                file=file,
                key="predicates",
            )
        # Between the two labels and the predicates, their files have a digit without a name.
        extra = [f"digit {len(marks) + i}" for i in range(spare)]
        named = ["".join(str(part) for part in predicate) for predicate in predicates]
        return Coding((*marks, *_distinct([*extra, *named])), marks)
    return Coding(tuple(_distinct(_object_names(meaning, document, keys, digits))))


def _object_names(meaning: Any, document: Any, keys: Sequence[str], digits: int) -> list[str]:
    """Return names for the household models: objects in order, each with the same attributes."""
    parts = [
        meaning.get(k, []) if isinstance(meaning, dict) else []
        for k in ("objectTypes", "keys", "parentReceptacles")
    ]
    types, attributes, parents = ([str(word) for word in part] for part in parts)
    block = len(types) + len(attributes) + len(parents)
    shown = document.get("state_interpret", {})
    example: list[Any] = next((shown[key] for key in keys if isinstance(shown.get(key), list)), [])
    if not block or digits != block * len(example):
        return [f"digit {i}" for i in range(digits)]
    names: list[str] = []
    for valuation in example:
        label = (
            str(valuation.get("objectType", "object")) if isinstance(valuation, dict) else "object"
        )
        names += [f"{label} is {kind}" for kind in types]
        names += [f"{label}.{attribute}" for attribute in attributes]
        names += [f"{label} in {parent}" for parent in parents]
    return names


def _distinct(names: Sequence[str]) -> list[str]:
    result: list[str] = []
    for name in names:
        number = 1
        unique = name
        while unique in result:
            number += 1
            unique = f"{name} ({number})"
        result.append(unique)
    return result


def _labels(key: str, coding: Coding, digits: int, file: Path) -> set[str]:
    """Return the names that hold in a state; of a terminal one that label alone."""
    if key == FINISH:
        return {FINISH}
    if len(key) != digits or set(key) - {"0", "1"}:
        raise ModelError(
            f"{key!r} is no state", accepted=f"{digits} digits, each 0 or 1", file=file,
            key="states",
        )  # fmt: skip
    held = [name for name, digit in zip(coding.names, key, strict=True) if digit == "1"]
    return {*held[:1]} if held and held[0] in coding.marks else {*held}


def _rows(given: dict[str, Any], keys: Sequence[str], file: Path) -> list[dict[int, Fraction]]:
    index = {key: i for i, key in enumerate(keys)}
    found: list[dict[int, Fraction]] = [{} for _ in keys]
    for key, row in given.items():
        where = f"transition_probs.{key}"
        if key not in index or not isinstance(row, dict):
            raise ModelError(
                "not a row of a known state", accepted="an object", file=file, key=where
            )
        shares = {to: _fraction(text, f"{where}.{to}", file) for to, text in row.items()}
        unknown = [to for to in row if to not in index]
        if unknown:
            raise ModelError(
                f"{unknown[0]!r} is no state", accepted="one of states", file=file, key=where
            )
        total, common = sum(shares.values()), lcm(*(one.denominator for one in shares.values()))
        if shares and total != 1:
            raise ModelError(
                f"probabilities sum to {float(total):.12g}", accepted="1", file=file, key=where
            )
        if common > MAX_COUNT:
            raise ModelError(
                f"a common denominator of {common}", accepted=f"at most {MAX_COUNT}", file=file,
                key=where,
            )  # fmt: skip
        found[index[key]] = {index[to]: share for to, share in shares.items() if share}
    return found


def _fraction(text: Any, key: str, file: Path) -> Fraction:
    try:
        # The pattern keeps out numbers such as 1e999999999, whose digits would fill memory.
        plain = isinstance(text, str) and re.fullmatch(r"\d{1,18}(/\d{1,18})?", text)
        value = Fraction(text) if plain else None
    except ZeroDivisionError:
        value = None
    if value is None or not 0 <= value <= 1:
        raise ModelError(
            f"{text!r} is no probability", accepted="a fraction such as '3/7'", file=file, key=key
        )
    return value


def _initial(file: Path, states: int) -> int | None:
    """Return the initial state that a PRISM file names, if there is one."""
    if not file.is_file():
        return None
    found = re.search(r"\binit\s+(\d+)\s*;", file.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        return None
    first = int(found[1])
    if first >= states:
        raise ModelError(
            f"the initial state is {first}",
            accepted=f"a state below {states}",
            file=file,
            key="init",
        )
    return first
