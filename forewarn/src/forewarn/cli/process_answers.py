"""What ``forewarn check`` prints of a decision process."""

from __future__ import annotations

from typing import Any

import numpy as np

from forewarn.checking.process_query import ProcessAnswer
from forewarn.cli.output import Output
from forewarn.models import CountModel
from forewarn.models.process import Mask


def print_process_answer(
    text: str, answer: ProcessAnswer, model: CountModel, first: Mask, top: int, output: Output
) -> None:
    """Print the bounds over the states that episodes begin in, and the states that matter most."""
    found = answer.values
    first = _extended(first, answer)
    output.say(text)
    output.say(f"  {_summary(answer, model, first)}")
    for note in found.notes:
        output.note(f"note: {note}")
    rank = np.where(np.isnan(found.estimate), np.inf, -found.estimate)
    visits = np.pad(model.visits, (0, len(answer.states) - model.size))
    order = np.lexsort((-visits, rank, answer.holds))
    rows = [
        [
            f"{found.estimate[i]:.6g}",
            f"{found.lower[i]:.6g}",
            f"{found.upper[i]:.6g}",
            *([_verdict(answer, i)] if answer.query.sign else []),
            model.vocabulary.key(answer.states[i]),
            model.vocabulary.name(answer.states[i]),
            str(int(visits[i])),
        ]
        for i in (order[:top] if top else order).tolist()
    ]
    verdict = ("verdict",) if answer.query.sign else ()
    output.table((">estimate", ">lower", ">upper", *verdict, "state", "name", ">visits"), rows)
    output.say()


def process_record(
    text: str, answer: ProcessAnswer, model: CountModel, first: Mask
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


def _extended(first: Mask, answer: ProcessAnswer) -> Mask:
    """Return the first states among those of the process, which may know more."""
    return np.pad(first, (0, len(answer.states) - first.size))


def _means(answer: ProcessAnswer, model: CountModel, first: Mask) -> tuple[float, float, float]:
    starts = np.pad(model.starts, (0, len(answer.states) - model.size))
    weights = starts[first] if starts.any() else np.ones(int(first.sum()))
    found = answer.values
    estimate, lower, upper = (
        float(np.average(values[first], weights=weights))
        for values in (found.estimate, found.lower, found.upper)
    )
    return estimate, lower, upper


def _summary(answer: ProcessAnswer, model: CountModel, first: Mask) -> str:
    estimate, lower, upper = _means(answer, model, first)
    where = "that episodes begin in" if model.starts.any() else "that were observed"
    kind = "sound" if answer.values.sound else "not sound"
    text = (
        f"{estimate:.6g} on average over the {int(first.sum())} states {where}; {lower:.6g} to "
        f"{upper:.6g} at {answer.values.confidence:.0%} ({kind})"
    )
    if not answer.query.sign:
        return text
    holds, settled = answer.holds[first], answer.settled[first]
    return (
        f"{text}\n  holds in {int(holds.sum())} of them by the estimate; the counts settle it in "
        f"{int(settled.sum())}"
    )


def _verdict(answer: ProcessAnswer, state: int) -> str:
    word = "holds" if answer.holds[state] else "fails"
    return word if answer.settled[state] else f"{word}, not settled"
