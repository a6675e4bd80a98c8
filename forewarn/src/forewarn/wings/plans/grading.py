"""Grade what translators made of requirements: SENTINEL's semantic level (arXiv 2510.12985).

An answer is not generated, a syntax error, not equivalent to the reference, equivalent, or
undecided: it is too large for the budget, or its bounds in seconds need a rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from forewarn.assessment.reliability import wilson
from forewarn.errors import FormulaError
from forewarn.wings.plans.equivalence.decision import Difference, compare
from forewarn.wings.plans.equivalence.kinds import RequirementKind
from forewarn.wings.plans.notations.answers import is_prose, unwrapped
from forewarn.wings.plans.notations.reader import Reading, TooLargeError, read_formula
from forewarn.wings.plans.requirement_files import Requirement, Translation


class Outcome(Enum):
    """What became of a requirement; those of answers that were compared are a `Verdict`'s."""

    NOT_GENERATED = "not generated"
    SYNTAX_ERROR = "syntax error"
    NOT_EQUIVALENT = "not equivalent"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Grade:
    """One answer, graded: the `outcome` is that on the traces that were asked for.

    `infinite` and `finite` are what tells it from the reference; `first` is the reference.
    `reason`: why it was not read, or not decided.
    """

    id: str
    model: str
    kind: RequirementKind
    outcome: Outcome
    reading: Reading | None = None
    infinite: Difference | None = None
    finite: Difference | None = None
    reason: str = ""


def grade_answers(
    answers: Iterable[Translation],
    requirements: Mapping[str, Requirement],
    *,
    finite: bool = False,
    rate: float | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Iterator[Grade]:
    """Grade answers, each against its requirement's reference.

    `finite` says whether the outcome is about finite traces; both are compared in any case. `rate`
    makes steps of bounds in seconds (`compare`). `progress` gets how many were graded.
    """
    known: dict[tuple[str, str], Grade] = {}
    for count, answer in enumerate(answers, 1):
        requirement = requirements[answer.id]
        key = answer.id, answer.text
        if key not in known:
            known[key] = grade(answer, requirement, finite=finite, rate=rate)
        found = known[key]
        yield Grade(
            answer.id, answer.model, found.kind, found.outcome, found.reading, found.infinite,
            found.finite, answer.error or found.reason,
        )  # fmt: skip
        progress(count)


def grade(
    answer: Translation,
    requirement: Requirement,
    *,
    finite: bool = False,
    rate: float | None = None,
) -> Grade:
    """Grade one answer."""
    assert requirement.formula is not None
    head = answer.id, answer.model, requirement.kind
    text = unwrapped(answer.text)
    if not text:
        return Grade(*head, Outcome.NOT_GENERATED, reason=answer.error or "no formula")
    try:
        reading = read_formula(text, known=requirement.atoms)
    except TooLargeError as error:
        return Grade(*head, Outcome.UNDECIDED, reason=f"too large: {error}")
    except FormulaError as error:
        if is_prose(text, requirement.atoms):
            return Grade(*head, Outcome.NOT_GENERATED, reason="words without a formula")
        return Grade(*head, Outcome.SYNTAX_ERROR, reason=error.problem.partition("\n")[0])
    try:
        on_infinite, on_finite = (
            compare(requirement.formula.formula, reading.formula, finite=ends, rate=rate)
            for ends in (False, True)
        )
    except FormulaError as error:
        return Grade(*head, Outcome.UNDECIDED, reading, reason=str(error))
    decisive = on_finite if finite else on_infinite
    outcome = Outcome(decisive.verdict.value)
    return Grade(*head, outcome, reading, on_infinite, on_finite, decisive.reason)


@dataclass(frozen=True)
class Share:
    """A share with its 95 % score interval; `of` answers were counted."""

    count: int
    of: int
    value: float
    lower: float
    upper: float

    @classmethod
    def among(cls, count: int, of: int) -> Share | None:
        """Return the share of `count` among `of`, None if there are none."""
        return cls(count, of, count / of, *wilson(count / of, of)) if of else None


ALL_TYPES = "all"
JUDGED = (Outcome.SYNTAX_ERROR, Outcome.NOT_EQUIVALENT, Outcome.EQUIVALENT, Outcome.UNDECIDED)
"""What becomes of an answer that was generated."""


@dataclass(frozen=True)
class ModelRow:
    """A row of SENTINEL's table: what became of the answers of a model, by outcome.

    Shares are of all answers, and of those that were generated, as SENTINEL counts. `differing`
    counts answers for which infinite and finite traces give different outcomes.
    """

    model: str
    type: str
    answers: int
    generated: Share | None
    of_all: dict[str, Share | None]
    of_generated: dict[str, Share | None]
    differing: int


def tabulate(grades: Sequence[Grade]) -> list[ModelRow]:
    """Return rows for each model, in the order of first appearance: all answers, and by type."""
    rows = []
    for model in dict.fromkeys(grade.model for grade in grades):
        own = [grade for grade in grades if grade.model == model]
        alike = ((kind.value, [g for g in own if g.kind is kind]) for kind in RequirementKind)
        rows += [_row(model, name, some) for name, some in ((ALL_TYPES, own), *alike) if some]
    return rows


def _row(model: str, kind: str, grades: Sequence[Grade]) -> ModelRow:
    of = len(grades)
    count = {outcome: sum(g.outcome is outcome for g in grades) for outcome in Outcome}
    generated = of - count[Outcome.NOT_GENERATED]
    differing = sum(
        g.infinite is not None and g.finite is not None and g.infinite.verdict != g.finite.verdict
        for g in grades
    )
    return ModelRow(
        model,
        kind,
        of,
        Share.among(generated, of),
        {outcome.value: Share.among(count[outcome], of) for outcome in JUDGED},
        {outcome.value: Share.among(count[outcome], generated) for outcome in JUDGED},
        differing,
    )
