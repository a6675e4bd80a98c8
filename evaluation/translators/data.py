"""Sentences with formulas, and what translators answered, of Lang2LTL, VLTL-Bench and nl2spec."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.errors import FormulaError, InputError
from forewarn.logic.syntax import atoms_of
from forewarn.recordings.traces import open_text
from forewarn.wings.plans.equivalence.kinds import kind_of
from forewarn.wings.plans.notations.reader import read_formula
from forewarn.wings.plans.requirement_files import Requirement, Translation

PACKED = ".jsonl.gz"
MASKED = "prop_"


class Pair(NamedTuple):
    """A sentence and its formula."""

    data: str
    text: str
    formula: str


def pairs(folder: Path) -> Iterator[Pair]:
    """Yield all sentences with their formulas, those of VLTL-Bench with masked propositions."""
    lang2ltl, nl2spec = (
        folder / name for name in ("lang2ltl_lifted_pairs.jsonl", "nl2spec_expert_LTL_dataset.txt")
    )
    found = domains(folder)
    if not (found or lang2ltl.exists() or nl2spec.exists()):
        raise FileNotFoundError(
            f"{folder} has none of {lang2ltl.name}, {nl2spec.name}, vltl/*{PACKED}"
        )
    for row in json_lines(lang2ltl, "nl", "ltl_prefix") if lang2ltl.exists() else ():
        yield Pair("Lang2LTL", row["nl"], row["ltl_prefix"])
    for path in found.values():
        for row in json_lines(path, "sentence", "grounded_tl"):
            yield Pair("VLTL", _joined(row["sentence"]), _joined(row["grounded_tl"]))
    for line in text_lines(nl2spec) if nl2spec.exists() else ():
        text, separator, formula = line.rpartition(";")
        if separator:
            yield Pair("nl2spec", text, formula)
        elif line.strip():
            print(f"{nl2spec}: left out, for it has no formula: {line}", file=sys.stderr)


def _joined(words: Any) -> str:
    """Return a text that is given as one, or as its words; of anything else its JSON."""
    if words is None or isinstance(words, str):
        return words or ""
    if isinstance(words, list):
        return " ".join(map(str, words))
    return json.dumps(words)


def domains(folder: Path) -> dict[str, Path]:
    """Return the domains of VLTL-Bench that a folder has, with the file of their sentences."""
    paths = sorted((folder / "vltl").glob(f"*{PACKED}"))
    return {path.name.removesuffix(PACKED): path for path in paths}


class Translator(NamedTuple):
    """A translator's answers with the requirements that they are about.

    Requirements are of one domain and one way to write propositions: `name` says which.
    """

    name: str
    requirements: dict[str, Requirement]
    answers: list[Translation]


def translators(folder: Path) -> Iterator[Translator]:
    """Yield the answers of each translator in each domain, and say which are left out.

    A translator of which no answer in a domain has a masked proposition answered in the words of
    the domain.
    """
    paths = set((folder / "vltl" / "answers").glob(f"*{PACKED}"))
    if not paths:
        raise FileNotFoundError(f"{folder} has no vltl/answers/*{PACKED} (--part pairs needs none)")
    for domain, sentences in domains(folder).items():
        needed = ("id", "sentence", "tl", "grounded_tl")
        rows = {str(row["id"]): row for row in json_lines(sentences, *needed)}
        own = sorted(path for path in paths if path.name.endswith(f"__{domain}{PACKED}"))
        paths -= set(own)
        for path in own:
            name = path.name.removesuffix(f"__{domain}{PACKED}")
            given = list(json_lines(path, "id", "prediction"))
            answers = [
                Translation(str(row["id"]), name, _joined(row["prediction"])) for row in given
            ]
            grounded = not any(MASKED in answer.text for answer in answers)
            known = [answer for answer in answers if answer.id in rows]
            if len(known) < len(answers):
                _leave_out(f"{path}: {len(answers) - len(known)} answers", sentences)
            asked = {
                answer.id: _requirement(sentences, rows[answer.id], grounded) for answer in known
            }
            yield Translator(name, asked, known)
    for path in sorted(paths):
        _leave_out(f"{path}: all answers", path.parent.parent)


def _leave_out(what: str, sentences: Path) -> None:
    print(f"{what} are left out: their sentences are not in {sentences}", file=sys.stderr)


def _requirement(path: Path, row: dict[str, Any], grounded: bool) -> Requirement:
    key = "tl" if grounded else "grounded_tl"
    try:
        formula = read_formula(_joined(row[key]))
    except FormulaError as error:
        raise error.located(file=path, key=f"{row['id']}.{key}") from None
    return Requirement(
        str(row["id"]), _joined(row["sentence"]), formula, kind_of(formula.formula),
        atoms_of(formula.formula),
    )  # fmt: skip


def text_lines(path: Path) -> list[str]:
    """Return the lines of a file, unpacked; a sentence may hold any other line break."""
    try:
        with open_text(path) as file:
            return file.read().removeprefix("\ufeff").split("\n")
    except (EOFError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read ({error})", accepted="text", file=path) from error


def json_lines(path: Path, *needed: str, accepted: str = "") -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of JSON lines."""
    accepted = accepted or f"an object with {', '.join(needed)}"
    for number, line in enumerate(text_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InputError(
                f"is no JSON ({error})", accepted=accepted, file=path, key=f"line {number}"
            ) from error
        problem = "is no object" if not isinstance(row, dict) else ""
        if lacking := [key for key in needed if problem or key not in row]:
            problem = f"lacks {', '.join(lacking)}"
        if problem:
            raise InputError(problem, accepted=accepted, file=path, key=f"line {number}")
        yield row
