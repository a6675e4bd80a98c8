"""The present risk of one property, explained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from forewarn.config.actions import NO_ACTION
from forewarn.monitoring.composition import risk_facts
from forewarn.monitoring.evaluate import advised
from forewarn.monitoring.policy import Level
from forewarn.monitoring.reasons import Reasons, explain_risk
from forewarn.monitoring.risk_rows import RiskRow
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.verdict import Verdict
from forewarn.signals.clock import NANOSECONDS, Clock, within
from forewarn.states.abstraction import Past


class RiskExplanation(NamedTuple):
    """The fields of the service Explain's response; see there."""

    time_ns: int
    row: RiskRow
    text: str
    predicates: tuple[str, ...]
    truths: tuple[bool | None, ...]
    signals: tuple[str, ...]
    values: tuple[Any, ...]
    ages: tuple[float, ...]
    shares: tuple[float, ...]


def reasons(monitor: Monitor, verdict: Verdict, row: RiskRow) -> Reasons | None:
    """Explain the risk itself, where state and automaton are known; takes up to a second."""
    state = verdict.observation.state
    if state is None or len(row.automaton_states) != 1:
        return None
    automaton_state = row.automaton_states[0]
    return explain_risk(monitor, row.property, state, automaton_state, values=verdict.values)


def explain(
    monitor: Monitor,
    verdict: Verdict,
    ages: Sequence[int | None],
    row: RiskRow,
    asked: str = NO_ACTION,
    past: Past | None = None,
) -> RiskExplanation:
    """Explain one property at the last tick; `reasons` come on top.

    `ages`: how old all signals were then, in nanoseconds; None if none has come yet.
    """
    observation = verdict.observation
    abstraction = monitor.abstraction
    listed = [
        (name, value, math.inf if age is None else age / NANOSECONDS)
        for name, value, age in zip(abstraction.signals, verdict.values, ages, strict=True)
        if name in abstraction.deciding
    ]
    made_of = risk_facts(monitor, verdict, row.property)
    return RiskExplanation(
        time_ns=verdict.time_ns,
        row=row,
        text=" ".join(
            [
                _text(row, monitor.clock),
                *(f"{fact[0].upper()}{fact[1:]}." for fact in made_of),
                *(f"{fact}." for fact in abstraction.scores_in_words(past, verdict.values)),
                *_advice(monitor, verdict, asked),
            ]
        ),
        predicates=abstraction.vocabulary.predicates,
        truths=tuple(
            abstraction.vocabulary.truth(name, observation)
            for name in abstraction.vocabulary.predicates
        ),
        signals=tuple(name for name, _, _ in listed),
        values=tuple(value for _, value, _ in listed),
        ages=tuple(age for _, _, age in listed),
        shares=_shares(monitor, verdict, row),
    )


def _shares(monitor: Monitor, verdict: Verdict, row: RiskRow) -> tuple[float, ...]:
    state = verdict.observation.state
    compiled = next(prop for prop in monitor.properties if prop.name == row.property)
    if not row.most_likely_path or monitor.model is None or compiled.outlook is None:
        return ()
    assert state is not None
    return compiled.outlook.path(monitor.model.index[state], row.automaton_states[0]).shares


def _advice(monitor: Monitor, verdict: Verdict, asked: str) -> list[str]:
    advice = advised(monitor, verdict, asked)
    if advice is None:
        return []
    if not advice.action:
        return [f"The shield: {advice.reason}."]
    return [f"The shield recommends {advice.action!r}: {advice.reason}."]


def _text(row: RiskRow, clock: Clock) -> str:
    sentences = [f"The state is {row.state!r}."]
    if row.automaton_state_names:
        sentences.append(f"The rule {row.property} is {' or '.join(row.automaton_state_names)}.")
    if not math.isnan(row.probability):
        if not row.in_model:
            sentences.append("The model has never seen this state, and its scores tell the risk.")
        span = within(clock, row.horizon)
        sentences.append(f"It is violated {span} with probability {row.probability:.3g}.")
    elif not row.in_model:
        sentences.append("The model has never seen this state, so the risk is unknown.")
    else:
        sentences.append("There is no model, so the risk is unknown.")
    if not math.isnan(row.expected):
        sentences.append(f"By all readings so far {row.expected:.3g} is to be expected.")
    if row.expected_restarted:
        sentences.append("The model cannot explain the readings: the belief starts again.")
    sentences.append(f"Its level is {Level(row.level).name}{' (muted)' if row.muted else ''}.")
    if row.stale_signals:
        sentences.append(f"Unknown for now: {', '.join(row.stale_signals)}.")
    return " ".join(sentences)
