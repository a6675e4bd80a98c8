"""Sentences with formulas, and what translators answered, of Lang2LTL, VLTL-Bench and nl2spec."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.assessment.requirement_files import Answer, Requirement
from forewarn.logic.equivalence import kind_of
from forewarn.logic.notations import read_formula
from forewarn.logic.syntax import atoms_of

DOMAINS = ("traffic_light", "warehouse")
#: Translators that were given the sentence, not one with its propositions masked, and answered in
#: the words of the domain.
GROUNDED = ("nl2tl__raw_nl", "nl2tl__t5_base__raw_nl", "nl2tl__Qwen3-4B")


class Pair(NamedTuple):
    """A sentence and its formula."""

    data: str
    text: str
    formula: str


def lines(path: Path) -> list[str]:
    """Return the lines of a file, unpacked."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()


def pairs(folder: Path) -> Iterator[Pair]:
    """Yield all sentences with their formulas, those of VLTL-Bench with masked propositions."""
    for row in map(json.loads, lines(folder / "lang2ltl_lifted_pairs.jsonl")):
        yield Pair("Lang2LTL", row["nl"], row["ltl_prefix"])
    for domain in DOMAINS:
        for row in map(json.loads, lines(folder / "vltl" / f"{domain}.jsonl.gz")):
            yield Pair("VLTL", " ".join(row["sentence"]), " ".join(row["grounded_tl"]))
    for line in lines(folder / "nl2spec_expert_LTL_dataset.txt"):
        text, _, formula = line.partition(";")
        yield Pair("nl2spec", text, formula)


class Translator(NamedTuple):
    """A translator's answers with the requirements that they are about.

    Requirements are of one domain and one way to write propositions: `name` says which.
    """

    name: str
    requirements: dict[str, Requirement]
    answers: list[Answer]


def translators(folder: Path) -> Iterator[Translator]:
    """Yield the answers of each translator in each domain."""
    for domain in DOMAINS:
        rows = {str(row["id"]): row for row in
                map(json.loads, lines(folder / "vltl" / f"{domain}.jsonl.gz"))}  # fmt: skip
        for path in sorted((folder / "vltl" / "answers").glob(f"*__{domain}.jsonl.gz")):
            name = path.name.removesuffix(f"__{domain}.jsonl.gz")
            grounded = name.startswith(GROUNDED)
            given = [json.loads(line) for line in lines(path)]
            answers = [Answer(str(row["id"]), name, row["prediction"]) for row in given]
            asked = {answer.id: _requirement(rows[answer.id], grounded) for answer in answers}
            yield Translator(name, asked, answers)


def _requirement(row: dict[str, Any], grounded: bool) -> Requirement:
    formula = read_formula(" ".join(row["tl" if grounded else "grounded_tl"]))
    return Requirement(
        str(row["id"]), " ".join(row["sentence"]), formula, kind_of(formula.formula),
        atoms_of(formula.formula),
    )  # fmt: skip
