"""``forewarn spec grade``: whether formulas mean what their references mean."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forewarn.cli.common import positive_number, top_option
from forewarn.cli.options import argument, option
from forewarn.cli.output import Output, json_value
from forewarn.files.outputs import check_output, write_output
from forewarn.logic.syntax import depth, format_formula
from forewarn.wings.plans.equivalence.decision import Difference
from forewarn.wings.plans.grading import (
    ALL_TYPES,
    JUDGED,
    Grade,
    ModelRow,
    Outcome,
    Share,
    grade_answers,
    tabulate,
)
from forewarn.wings.plans.requirement_files import Requirement, load_answers, load_requirements

DESCRIPTION = """\
Compare the formulas that translators wrote for requirements with reference formulas, on infinite
and finite traces: each answer is not generated, a syntax error, not equivalent (with a shortest
trace), equivalent, or undecided. The notation (Spot, RTAMT, PRISM, nl2spec, nl2ltl, Declare,
words, Polish) is recognised."""

EPILOG = """\
A line of RULES is {"id": 1, "text": "a comes before b", "formula": "!b U a"}, with "type" (state
invariant, ordering constraint or other) and "atoms" where they are known; a line of ANSWERS is
{"id": 1, "model": "M", "answer": "not b until a"}, with null for an answer that did not come.

exit codes: 0 all are equivalent, 1 some are not, 2 wrong usage or input.

examples: forewarn spec grade answers.jsonl --reference rules.jsonl
          forewarn spec grade answers.jsonl --reference rules.jsonl \\
              --traces finite --rate 10 --top 0 --output grades.jsonl"""

_SHOWN_DEPTH, _SHOWN_LENGTH = 50, 500


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of ``spec grade``."""

    answers: list[Path] = argument("answers, JSON lines (.gz, .zst)", "ANSWERS")
    reference: Path = option("requirements and formulas", "RULES", required=True)
    traces: str = option(
        "which traces decide the table", default="infinite", choices=("infinite", "finite")
    )
    rate: float | None = option(
        "steps in a second, for bounds in seconds (default: what holds at every rate)",
        "HZ",
        of=positive_number,
    )
    top: int = top_option("answers that are not equivalent")
    output: Path | None = option("write each answer's grade, JSON lines", "FILE", "-o")


def run(options: Options, output: Output) -> int:
    """Grade."""
    check_output(options.output)
    requirements = load_requirements(options.reference)
    answers = list(load_answers(options.answers, requirements))
    finite = options.traces == "finite"
    with output.progress("grading") as bar:
        graded = grade_answers(
            answers, requirements, finite=finite, rate=options.rate,
            progress=lambda done: bar(done, len(answers)),
        )  # fmt: skip
        grades = list(graded)
    rows = tabulate(grades)
    if options.output is not None:
        lines = (json.dumps(json_value(record(grade))) + "\n" for grade in grades)
        write_output(options.output, "".join(lines))
    _print_table(rows, len(requirements), options.traces, output)
    _print_wrong(grades, requirements, options, output)
    output.emit({"traces": options.traces, "models": rows, "answers": [record(g) for g in grades]})
    return int(any(grade.outcome is not Outcome.EQUIVALENT for grade in grades))


def _print_table(rows: Sequence[ModelRow], asked: int, traces: str, output: Output) -> None:
    names = [outcome.value for outcome in JUDGED]
    columns = ("model", "type", ">answers", ">generated", *(f">{n}" for n in names), ">differ")
    cells = [
        [
            plain(row.model),
            row.type,
            _answers(row, asked),
            _percent(row.generated),
            *(f"{_percent(row.of_all[n])} ({_percent(row.of_generated[n])})" for n in names),
            str(row.differing),
        ]
        for row in rows
    ]
    output.table(columns, cells)
    other = "finite" if traces == "infinite" else "infinite"
    output.say(
        f"in % of the answers, and (of the generated ones), on {traces} traces; differ: how many "
        f"fare otherwise on {other} traces"
    )


def _answers(row: ModelRow, asked: int) -> str:
    short = row.type == ALL_TYPES and row.answers != asked
    return f"{row.answers} of {asked}" if short else str(row.answers)


def _percent(share: Share | None) -> str:
    return "-" if share is None else f"{100 * share.value:.1f}"


def _print_wrong(
    grades: Sequence[Grade],
    requirements: Mapping[str, Requirement],
    options: Options,
    output: Output,
) -> None:
    wrong = [grade for grade in grades if grade.outcome is not Outcome.EQUIVALENT]
    for grade in wrong[: options.top or len(wrong)]:
        output.say()
        output.say(f"{plain(grade.id)}, {plain(grade.model)}: {grade.outcome.value}")
        requirement = requirements[grade.id]
        assert requirement.formula is not None
        output.say(f"  reference  {shown(requirement.formula.formula)}")
        if grade.reading is not None:
            output.say(f"  answer     {shown(grade.reading.formula)}  ({grade.reading.notation})")
        for name in grade.reading.otherwise if grade.reading is not None else ():
            output.say(f"  note       {name} would group it otherwise")
        difference = grade.finite if options.traces == "finite" else grade.infinite
        if difference is not None and difference.trace is not None:
            holder = "the reference" if difference.holds == "first" else "the answer"
            longer = "" if difference.shortest else "; a shorter trace may do as well"
            rate = "" if difference.rate is None else f", at {difference.rate:g} Hz"
            output.say(
                f"  trace      {plain(str(difference.trace))}{rate}: only {holder} holds{longer}"
            )
        if grade.reason:
            output.say(f"  reason     {plain(grade.reason)}")
    if options.top and len(wrong) > options.top:
        output.say()
        output.say(f"{len(wrong) - options.top} more; --top 0 lists all")


def plain(text: str, longest: int = _SHOWN_LENGTH) -> str:
    """Return a text of a file as one short line without control characters."""
    kept = "".join(c if c.isprintable() else " " for c in text)
    return kept if len(kept) <= longest else kept[: longest - 3] + "..."


def shown(formula: Any) -> str:
    """Return the text of a formula, or its size where it is too deep."""
    levels = depth(formula)
    if levels > _SHOWN_DEPTH:
        return f"a formula {levels} operators deep"
    return plain(format_formula(formula))


def record(grade: Grade) -> dict[str, Any]:
    """Return a grade for machines."""
    reading = grade.reading
    return {
        "id": grade.id,
        "model": grade.model,
        "type": grade.kind,
        "outcome": grade.outcome,
        "formula": None if reading is None else shown(reading.formula),
        "notation": None if reading is None else reading.notation,
        "otherwise": [] if reading is None else reading.otherwise,
        "infinite": _difference_record(grade.infinite),
        "finite": _difference_record(grade.finite),
        "reason": grade.reason,
    }


def _difference_record(difference: Difference | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    trace = difference.trace
    return {
        "verdict": difference.verdict,
        "trace": None if trace is None else [sorted(letter) for letter in trace.letters],
        "loop": None if trace is None else trace.loop,
        "holds": {"first": "reference", "second": "answer"}.get(difference.holds),
        "shortest": difference.shortest,
        "rate": difference.rate,
    }
