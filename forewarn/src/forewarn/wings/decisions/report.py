"""The page of ``forewarn check``: answers, ways to the goal, and the process with its values."""

from __future__ import annotations

from collections.abc import Sequence

from forewarn.checking.critical import CriticalPart
from forewarn.models.counts import CountModel
from forewarn.reports.page import Part, absent, assembled, escape, part, table
from forewarn.reports.process import PROCESS, ProcessView, flows_of, process_body
from forewarn.reports.ways import ShownWay, ways_body
from forewarn.wings.decisions.process_answers import Checked
from forewarn.wings.decisions.process_query import ProcessQueryResult

MOST_STATES = 500
WAYS = (
    "The most probable ways to the goal under the policy that attains the probability. States with "
    "a dashed border come after a step that was never counted: smoothing alone promises them."
)


def check_page(model: CountModel, checked: Sequence[Checked], subtitle: str) -> str:
    """Return the page about the answers to some questions about a model."""
    parts: list[Part] = []
    for number, one in enumerate(checked, 1):
        parts.append(_answer(number, one))
        if one.answer is not None:
            parts += _process(number, one, one.answer, model)
    return assembled("Forewarn: questions about a model", subtitle, parts)


def _answer(number: int, one: Checked) -> Part:
    text = one.text
    rows = [[escape(cell) for cell in row] for row in text.rows[:MOST_STATES]]
    body = (
        f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in (*text.summary, *text.notes))}</ul>"
    )
    body += table(text.columns, rows, long="name")
    rest = len(text.rows) - len(rows)
    body += absent(f"{rest:,} more states.") if rest else ""
    return part(f"answer{number}", text.query, text.query, "", body)


def _process(
    number: int, one: Checked, answer: ProcessQueryResult, model: CountModel
) -> list[Part]:
    names = [model.vocabulary.name(code) for code in answer.states]
    known = answer.values.estimate == answer.values.estimate
    values = {
        name: float(value)
        for name, value, there in zip(names, answer.values.estimate, known, strict=True)
        if there
    }
    starts = {model.name(i): int(model.starts[i]) for i in model.starts.nonzero()[0]}
    goal = [name for name, there in zip(names, answer.goal, strict=True) if there]
    policy: dict[str, str] = {}
    first: list[str] = []
    ways = absent("The probability is that of no one policy: its steps are counted.")
    if one.evidence is not None:
        policy = dict(zip(names, one.evidence.policy, strict=True))
        shown = [_shown(way.named(names), way.probability, way.seen) for way in one.evidence.ways]
        critical = one.evidence.critical
        suffices = None
        if critical is not None:
            suffices = CriticalPart(tuple(names[i] for i in critical.states), *critical[1:])
            first = list(suffices.states)
        first = [*(name for way in shown for name in way.path[::2]), *first]
        ways = ways_body(shown, suffices)
    view = ProcessView(
        flows_of(model.steps, model.vocabulary), values, policy, starts, [*first, *goal]
    )
    picture = process_body(view, f"map{number}")
    return [
        part(f"ways{number}", "Ways", "Ways to the goal", WAYS, ways),
        part(f"process{number}", "Process", "The process", PROCESS, picture),
    ]


def _shown(path: tuple[str, ...], probability: float, seen: int) -> ShownWay:
    states = len(path[::2])
    remark = "each of its steps was counted"
    if seen < states:
        remark = f"counted up to the first {seen} of {states} states"
    return ShownWay(path, probability, seen, remark)
