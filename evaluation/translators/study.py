"""What translators made of requirements, and whether Spot says the same: rows of RESULTS.md.

    python -m evaluation.translators.study --data DIR [--part answers] [--write]

`--data` is a folder with Lang2LTL's pairs, VLTL-Bench with the answers of its translators, and
nl2spec's expert set (README.md says where they come from). Spot has to be installed
(requirements/oracles.txt). Figures go to `--folder`, with `--write` the rows to RESULTS.md.
"""

from __future__ import annotations

import random
import statistics
import string
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

import spot

from evaluation.harness.command import command
from evaluation.harness.page import Row, between, publish, rounded
from evaluation.translators.data import Pair, Translator, pairs, translators
from evaluation.translators.spots_words import in_spots_words, words_replaced
from forewarn.errors import FormulaError, plural
from forewarn.logic.syntax import Formula, atoms_of
from forewarn.wings.plans.equivalence.decision import Difference, Verdict, compare
from forewarn.wings.plans.grading import ALL_TYPES, Grade, Outcome, grade, tabulate
from forewarn.wings.plans.notations.answers import unwrapped
from forewarn.wings.plans.notations.reader import read_formula
from forewarn.wings.plans.notations.tables import PREFIX_LETTERS

TITLE = "Formulas of translators"
COMMAND = "python -m evaluation.translators.study --data D --write"
LETTERS = sorted({*string.ascii_lowercase} - {*PREFIX_LETTERS})
"""Propositions of Lang2LTL's lifted pairs."""


class Tally:
    """Counts how often Spot and we say the same, and keeps what they do not agree on."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.disagreements: list[list[str]] = []
        self._known: dict[tuple[str, str, bool], bool] = {}

    def compare(self, first: Formula, second: Formula, *, finite: bool) -> None:
        """Compare two formulas and count."""
        self.count((first, second), compare(first, second, finite=finite), finite=finite)

    def count(
        self, pair: tuple[Formula, Formula], found: Difference | None, *, finite: bool
    ) -> None:
        """Count what was said of two formulas."""
        if found is None or found.verdict is Verdict.UNDECIDED:
            self.counts["undecided"] += 1
            return
        ours = found.verdict is Verdict.EQUIVALENT
        self.counts["equivalent" if ours else "not equivalent"] += 1
        self.counts["not shown to be shortest"] += not found.shortest
        texts = tuple(in_spots_words(formula, finite=finite) for formula in pair)
        if ours != self._theirs(*texts, finite):
            self.disagreements.append([*texts, "finite" if finite else "infinite"])

    def _theirs(self, first: str, second: str, finite: bool) -> bool:
        key = (first, second, finite)
        if key not in self._known:
            read = spot.from_ltlf if finite else spot.formula
            self._known[key] = spot.are_equivalent(read(first), read(second))
        return self._known[key]

    def summary(self) -> dict[str, Any]:
        """Return the counts; print what Spot says otherwise."""
        for texts in self.disagreements:
            print("otherwise:", *texts, sep="\n  ")
        return {**self.counts, "disagreements": len(self.disagreements)}


def mutated(formula: str, drawn: random.Random) -> str:
    """Return Spot's text of a formula with one operator changed, if it has any."""
    swaps = {"G": "F", "F": "G", "U": "W", "W": "U", "&": "|", "|": "&", "X": "F"}
    places = [i for i, c in enumerate(formula) if c in swaps and '"' not in formula[i - 1 : i + 2]]
    if not places:
        return f"!({formula})"
    at = drawn.choice(places)
    return formula[:at] + swaps[formula[at]] + formula[at + 1 :]


def _readable(data: str, texts: Iterable[str]) -> Iterator[Formula]:
    """Yield the formulas that can be read, and print why others cannot."""
    letters = LETTERS if data == "Lang2LTL" else ()
    for text in texts:
        try:
            yield read_formula(text, letters).formula
        except FormulaError as error:
            print(f"{data}: left out: {error.located(key=text)}", file=sys.stderr)


def of_pairs(rows: Iterable[Pair]) -> dict[str, Any]:
    """Compare each distinct formula with what Spot makes of it, a mutant, and its neighbour."""
    found: dict[str, Any] = {}
    by_data: dict[str, list[str]] = {}
    for row in rows:
        by_data.setdefault(row.data, []).append(row.formula)
    for data, texts in by_data.items():
        drawn, tally = random.Random(0), Tally()
        distinct = list(dict.fromkeys(texts))
        formulas = list(_readable(data, distinct))
        if len(formulas) < len(distinct):
            tally.counts["not read"] = len(distinct) - len(formulas)
        for formula, neighbour in zip(formulas, [*formulas[1:], *formulas[:1]], strict=True):
            atoms = atoms_of(formula)
            theirs = spot.formula(in_spots_words(formula))
            changed = mutated(str(theirs).replace("&&", "&"), drawn)
            for text in (theirs.simplify(), theirs.unabbreviate("FGRWMie^"), changed):
                other = read_formula(str(text), atoms, "spot").formula
                tally.compare(formula, other, finite=False)
                tally.compare(formula, other, finite=True)
            for finite in (False, True):
                tally.compare(formula, neighbour, finite=finite)
        found[data] = {"pairs": len(texts), "formulas": len(distinct), **tally.summary()}
    return found


def of_answers(found: Iterable[Translator]) -> dict[str, Any]:
    """Grade all answers, and ask Spot the same."""
    grades: list[Grade] = []
    times: list[float] = []
    tally, reading = Tally(), Tally()
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for translator in found:
        for answer in translator.answers:
            requirement = translator.requirements[answer.id]
            begun = time.perf_counter()
            graded = grade(answer, requirement)
            times.append(time.perf_counter() - begun)
            grades.append(graded)
            key = unwrapped(answer.text), requirement.atoms
            if key not in seen:
                seen.add(key)
                _count_reading(*key, reading)
            if graded.reading is not None and requirement.formula is not None:
                for finite, said in ((False, graded.infinite), (True, graded.finite)):
                    pair = requirement.formula.formula, graded.reading.formula
                    tally.count(pair, said, finite=finite)
    rows = [asdict(row) for row in tabulate(grades)]
    return {
        "rows": rows,
        "outcomes": {o.value: sum(g.outcome is o for g in grades) for o in Outcome},
        "otherwise": sum(bool(g.reading and g.reading.otherwise) for g in grades),
        "notations": Counter(g.reading.notation for g in grades if g.reading is not None),
        "spot": tally.summary(),
        "reading": reading.summary(),
        "milliseconds": _quantiles(times),
    }


def _count_reading(text: str, atoms: tuple[str, ...], reading: Tally) -> None:
    """Let Spot read an answer whose words are replaced by its own."""
    if not text:
        return
    theirs = spot.parse_infix_psl(words_replaced(text))
    try:
        ours = read_formula(text, atoms)
    except FormulaError:
        reading.counts["refused by both" if theirs.errors else "refused by us"] += 1
        if not theirs.errors:
            reading.disagreements.append([text, str(theirs.f)])
        return
    if theirs.errors:
        reading.counts[f"refused by Spot, {ours.notation}"] += 1
        reading.disagreements.append([text, ours.notation])
        return
    same = spot.are_equivalent(theirs.f, spot.formula(in_spots_words(ours.formula)))
    reading.counts["read alike" if same else "read otherwise"] += 1
    if not same:
        reading.disagreements.append([text, str(theirs.f)])


def _quantiles(times: list[float]) -> dict[str, float | None]:
    ordered = sorted(1e3 * value for value in times)
    return {
        "median": rounded(statistics.median(ordered), 3),
        "p99": rounded(ordered[int(len(ordered) * 0.99)], 3),
        "greatest": rounded(ordered[-1], 3),
    }


def rows_of(found: Mapping[str, Any]) -> list[Row]:
    """Return the rows of what has been judged: translators, and what Spot says."""
    answers = found.get("answers", {})
    by_model = groupby(answers.get("rows", ()), key=lambda row: row["model"])
    rows = [_graded(model, some) for model, some in by_model]
    compared = {
        f"{name}: formulas of {plural(one['pairs'], 'pair')}": one
        for name, one in found.get("pairs", {}).items()
    }
    if answers:
        compared["all answers against Spot"] = answers["spot"]
    for name, one in compared.items():
        equal, undecided = one.get("equivalent", 0), one.get("undecided", 0)
        total = equal + undecided + one.get("not equivalent", 0)
        said = f"{one['disagreements']} disagreements, {undecided} undecided"
        rows.append(Row(name, said, "", f"{total} comparisons, {equal} equivalent"))
    if answers:
        spent = answers["milliseconds"]
        said = f"median {spent['median']} ms, 99 % {spent['p99']} ms, most {spent['greatest']:g} ms"
        rows.append(Row("time to read and compare an answer", said))
    return rows


def _graded(model: str, rows: Iterable[Mapping[str, Any]]) -> Row:
    """Return how the answers of a translator are graded: all of them, and by type."""
    by_type = {row["type"]: row for row in rows}
    shares = {name: row["of_all"] for name, row in by_type.items()}
    equivalent, wrong = (
        {name: f"{100 * of[outcome.value]['value']:.1f}" for name, of in shares.items()}
        for outcome in (Outcome.EQUIVALENT, Outcome.SYNTAX_ERROR)
    )
    none = 100 * (1 - by_type[ALL_TYPES]["generated"]["value"])
    ends = [100 * shares[ALL_TYPES][Outcome.EQUIVALENT.value][end] for end in ("lower", "upper")]
    return Row(
        f"`{model}`",
        f"equivalent {equivalent.pop(ALL_TYPES)}% ({', '.join(equivalent.values())}), "
        f"syntax error {wrong[ALL_TYPES]}%, none {none:.1f}%",
        between(ends, "{:.1f}"),
        f"{by_type[ALL_TYPES]['answers']}",
    )


def main(
    data: Path, part: str = "all", folder: Path = Path("out/translators"), write: bool = False
) -> None:
    """Make the study, or its `part`: pairs or answers."""
    if part not in ("all", "pairs", "answers"):
        raise SystemExit("--part is all, pairs or answers")
    found = {}
    if part in ("all", "pairs"):
        found["pairs"] = of_pairs(pairs(data))
    if part in ("all", "answers"):
        found["answers"] = of_answers(translators(data))
    publish(TITLE, COMMAND, rows_of(found), found, folder, write=write)


if __name__ == "__main__":
    command(main)
