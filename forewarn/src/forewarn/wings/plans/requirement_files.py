"""Requirements and the answers of translators, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forewarn.errors import FormulaError, InputError
from forewarn.logic.syntax import atoms_of
from forewarn.wings.plans.equivalence.kinds import RequirementKind, kind_of
from forewarn.wings.plans.notations.reader import Reading, read_formula
from forewarn.wings.plans.texts import json_lines, read_text

RULE = '{"id": 1, "text": "a comes before b", "formula": "!b U a"}'
ANSWER = '{"id": 1, "model": "M", "answer": "!b U a"}'
MOST_CHARACTERS = 512_000_000
KINDS = {kind.value: kind for kind in RequirementKind}


@dataclass(frozen=True)
class Requirement:
    """A requirement in words, with the formula that it means, None where the line has none.

    Formulas about it may use the names `atoms`: those of the line and those of the formula.
    """

    id: str
    text: str
    formula: Reading | None
    kind: RequirementKind = RequirementKind.OTHER
    atoms: tuple[str, ...] = ()
    described: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Translation:
    """What a translator answered to a requirement; `text` is empty where nothing came back."""

    id: str
    model: str
    text: str
    error: str = ""


def load_requirements(path: Path, *, with_formulas: bool = True) -> dict[str, Requirement]:
    """Return the requirements of a file by their ``id``; raises InputError.

    Other keys of a line are ``formula`` (the reference, in any notation), ``text`` (in words),
    ``type`` (else inferred from the formula) and ``atoms`` (names, or an object from names to what
    they mean).
    """
    found: dict[str, Requirement] = {}
    for place, values in _objects(path):
        requirement = _requirement(path, place, values, with_formulas=with_formulas)
        if requirement.id in found:
            raise InputError(
                f"id {requirement.id!r} stands twice", file=path, key=place, accepted="one line"
            )
        found[requirement.id] = requirement
    if not found:
        raise InputError("no requirements", file=path, accepted=RULE)
    return found


def _requirement(
    path: Path, place: str, values: dict[str, Any], *, with_formulas: bool
) -> Requirement:
    described = _atoms(path, place, values.get("atoms"))
    source, text = values.get("formula"), values.get("text", "")
    wanted = "formula" if with_formulas else "text"
    if not isinstance(values.get(wanted), str):
        raise _wrong(path, place, wanted, values.get(wanted), "a text", RULE)
    reading = None
    if isinstance(source, str) and source.strip():
        try:
            reading = read_formula(source, known=tuple(described))
        except FormulaError as error:
            raise InputError(
                error.problem, file=path, key=f"{place}: formula", accepted=error.accepted
            ) from error
    kind = values.get("type")
    if kind is not None and kind not in KINDS:
        raise _wrong(path, place, "type", kind, ", ".join(KINDS), RULE)
    inferred = RequirementKind.OTHER if reading is None else kind_of(reading.formula)
    named = () if reading is None else atoms_of(reading.formula)
    return Requirement(
        _id(path, place, values, RULE),
        text if isinstance(text, str) else "",
        reading,
        KINDS[kind] if kind is not None else inferred,
        tuple(dict.fromkeys([*described, *named])),
        described,
    )


def _atoms(path: Path, place: str, value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return dict.fromkeys(value, "")
    if isinstance(value, dict) and all(isinstance(text, str) for text in value.values()):
        return value
    raise _wrong(path, place, "atoms", value, "names, or names with what they mean", RULE)


def load_answers(paths: Iterable[Path], known: Mapping[str, Requirement]) -> Iterator[Translation]:
    """Yield the answers of files, line by line; raises InputError.

    Keys of a line are ``id``, ``answer`` (null where nothing came back), ``model`` (without it, the
    file's name) and ``error`` (why nothing came back).
    """
    seen: set[tuple[str, str]] = set()
    for path in paths:
        for place, values in _objects(path):
            identifier = _id(path, place, values, ANSWER)
            if identifier not in known:
                raise _wrong(path, place, "id", identifier, "an id of the references", ANSWER)
            answer, model = values.get("answer", 0), values.get("model", path.name.split(".")[0])
            if answer is not None and not isinstance(answer, str):
                shown = None if "answer" not in values else answer
                raise _wrong(path, place, "answer", shown, "a text or null", ANSWER)
            if not isinstance(model, str):
                raise _wrong(path, place, "model", model, "a text", ANSWER)
            if (identifier, model) in seen:
                problem = f"{model} answers {identifier!r} twice"
                raise InputError(problem, file=path, key=place, accepted="one answer to each")
            seen.add((identifier, model))
            yield Translation(identifier, model, answer or "", str(values.get("error") or ""))


def _id(path: Path, place: str, values: dict[str, Any], example: str) -> str:
    value = values.get("id")
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise _wrong(path, place, "id", value, "a text or a whole number", example)
    return str(value)


def _wrong(path: Path, place: str, key: str, value: Any, accepted: str, example: str) -> InputError:
    shown = "is missing" if value is None else f"is {str(value)[:60]!r}"
    return InputError(
        f"{key} {shown}", file=path, key=place, accepted=f"{accepted}, as in {example}"
    )


def _objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for place, values in json_lines(read_text(path, MOST_CHARACTERS, RULE), path, RULE):
        if not isinstance(values, dict):
            raise InputError("is no object", file=path, key=place, accepted=RULE)
        yield place, values
