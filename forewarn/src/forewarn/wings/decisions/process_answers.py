"""Answers to queries about a model, for the console and for the page."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from forewarn.cli.output import Output
from forewarn.errors import plural
from forewarn.models.chain import Floats
from forewarn.models.counts import CountModel
from forewarn.models.process import Mask
from forewarn.wings.decisions.evidence import Evidence, find_evidence
from forewarn.wings.decisions.process_query import ProcessQueryResult


class QueryText(NamedTuple):
    """A question, and the answer for people; columns that begin with > are aligned right."""

    query: str
    summary: tuple[str, ...]
    notes: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Checked(NamedTuple):
    """An answer; of a decision process with its values, and why they are what they are."""

    text: QueryText
    answer: ProcessQueryResult | None = None
    evidence: Evidence | None = None


def print_answer(answer: QueryText, top: int, output: Output) -> None:
    """Print an answer with its first states, all of them if `top` is 0."""
    output.say(answer.query)
    for line in answer.summary:
        output.say(f"  {line}")
    for note in answer.notes:
        output.note(f"note: {note}")
    output.table(answer.columns, answer.rows[: top or None])
    output.say()


def tell_process_answer(
    text: str, answer: ProcessQueryResult, model: CountModel, first: Mask
) -> QueryText:
    """Return the bounds over the states that episodes begin in, and those of all states."""
    found = answer.values
    first = _extended(first, answer)
    rank = np.where(np.isnan(found.estimate), np.inf, -found.estimate)
    visits = np.pad(model.visits, (0, len(answer.states) - model.size))
    order = np.lexsort((-visits, rank, answer.holds))
    rows = tuple(
        (
            f"{found.estimate[i]:.6g}",
            f"{found.lower[i]:.6g}",
            f"{found.upper[i]:.6g}",
            *([_verdict(answer, i)] if answer.query.sign else []),
            model.vocabulary.key(answer.states[i]),
            model.vocabulary.name(answer.states[i]),
            str(int(visits[i])),
        )
        for i in order.tolist()
    )
    verdict = ("verdict",) if answer.query.sign else ()
    columns = (">estimate", ">lower", ">upper", *verdict, "state", "name", ">visits")
    return QueryText(text, _summary(answer, model, first), found.notes, columns, rows)


def process_record(
    text: str, answer: ProcessQueryResult, model: CountModel, first: Mask
) -> dict[str, Any]:
    """Return the answer for machines."""
    found, first = answer.values, _extended(first, answer)
    keys = [model.vocabulary.key(code) for code in answer.states]
    estimate, lower, upper = _means(answer, model, first)
    return {
        "query": text,
        "kind": "process",
        "fine": bool(answer.holds[first].all()),
        "settled": bool(answer.settled[first].all()),
        "initial": {"estimate": estimate, "lower": lower, "upper": upper},
        "values": dict(zip(keys, found.estimate.tolist(), strict=True)),
        "lower": dict(zip(keys, found.lower.tolist(), strict=True)),
        "upper": dict(zip(keys, found.upper.tolist(), strict=True)),
        "confidence": found.confidence,
        "sound": found.sound,
        "notes": found.notes,
    }


def _extended(first: Mask, answer: ProcessQueryResult) -> Mask:
    """Return the first states among those of the process, which may know more."""
    return np.pad(first, (0, len(answer.states) - first.size))


def _means(
    answer: ProcessQueryResult, model: CountModel, first: Mask
) -> tuple[float, float, float]:
    weights = _weights(answer, model, first)[first]
    found = answer.values
    estimate, lower, upper = (
        float(np.average(values[first], weights=weights))
        for values in (found.estimate, found.lower, found.upper)
    )
    return estimate, lower, upper


def _weights(answer: ProcessQueryResult, model: CountModel, first: Mask) -> Floats:
    """Return how many runs begin in each state; where nothing is known of that, all count alike."""
    starts = np.pad(model.starts, (0, len(answer.states) - model.size))
    return np.asarray(starts if starts.any() else first, dtype=np.float64)


def process_evidence(answer: ProcessQueryResult, model: CountModel, first: Mask) -> Evidence | None:
    """Return why the probability is as great as it is, from where runs begin."""
    weights = _weights(answer, model, _extended(first, answer))
    return find_evidence(answer, weights / weights.sum())


def evidence_record(
    evidence: Evidence | None, answer: ProcessQueryResult, model: CountModel
) -> dict[str, Any]:
    """Return the evidence as plain values, states by their names; {} without evidence."""
    if evidence is None:
        return {}
    names = [model.vocabulary.name(code) for code in answer.states]
    critical = evidence.critical
    return {
        "policy": dict(zip(names, evidence.policy, strict=True)),
        "paths": [
            {"path": way.named(names), "probability": way.probability, "seen": way.seen}
            for way in evidence.ways
        ],
        "critical": None
        if critical is None
        else {**critical._asdict(), "states": [names[state] for state in critical.states]},
    }


def _summary(answer: ProcessQueryResult, model: CountModel, first: Mask) -> tuple[str, ...]:
    estimate, lower, upper = _means(answer, model, first)
    where = "that episodes begin in" if model.starts.any() else "that were observed"
    kind = "sound" if answer.values.sound else "not sound"
    states = plural(int(first.sum()), "state")
    text = (
        f"{estimate:.6g} on average over the {states} {where}; {lower:.6g} to "
        f"{upper:.6g} at {answer.values.confidence:.0%} ({kind})"
    )
    if not answer.query.sign:
        return (text,)
    holds, settled = answer.holds[first], answer.settled[first]
    return (
        text,
        f"holds in {int(holds.sum())} of them by the estimate; the counts settle it in "
        f"{int(settled.sum())}",
    )


def _verdict(answer: ProcessQueryResult, state: int) -> str:
    word = "holds" if answer.holds[state] else "fails"
    return word if answer.settled[state] else f"{word}, not settled"
