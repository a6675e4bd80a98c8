"""The evidence of an intervention: the signals that decided, their sources and their gaps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from forewarn.checking.explanation import predicate_effects
from forewarn.monitoring.composition import explained_table
from forewarn.monitoring.escape import SAID
from forewarn.signals.clock import NANOSECONDS, Clock
from forewarn.states.condition import rests_on

if TYPE_CHECKING:
    from forewarn.monitoring.intervention import Intervention
    from forewarn.monitoring.risk_rows import RiskRow
    from forewarn.monitoring.step import Monitor
    from forewarn.monitoring.tables import CompiledProperty
    from forewarn.monitoring.verdict import Verdict
    from forewarn.states.abstraction import Abstraction

LONGEST = 60
"""Characters of a value in a message."""
MOST_SAID = 6
"""Signals in a sentence; fields have them all."""


class Source(NamedTuple):
    """One signal; see forewarn_msgs/msg/Source for the fields."""

    signal: str
    predicates: tuple[str, ...]
    topic: str
    arguments: tuple[str, ...]
    publishers: tuple[str, ...]
    known: bool
    value: float
    text: str
    age: float
    stamp_ns: int
    unknown_since_ns: int


class Lapses:
    """Since when signals have been unknown."""

    def __init__(self) -> None:
        # Time of the tick from which on each signal without a value had none
        self.since: Mapping[str, int] = {}

    def at(self, time_ns: int, names: Sequence[str], values: Sequence[Any]) -> Mapping[str, int]:
        """Return since when signals are unknown, as of a tick with these values."""
        return {
            name: self.since.get(name, time_ns)
            for name, value in zip(names, values, strict=True)
            if value is None
        }


def sources_of(
    monitor: Monitor,
    verdict: Verdict,
    ages: Sequence[int | None],
    since: Mapping[str, int],
    publishers: Mapping[str, Sequence[str]],
) -> tuple[Source, ...]:
    """Return the signals that a verdict rests on, those that are unknown first.

    These are the signals that the states depend on, and the signals from which those are computed.

    `ages`: age in nanoseconds of each source signal; None if nothing ever arrived.
    `since`: since when signals are unknown, in nanoseconds.
    `publishers`: full names of the nodes that publish each topic.
    """
    abstraction, clock = monitor.abstraction, monitor.clock
    names, now_ns = abstraction.signals, verdict.time_ns
    needs = {
        derived.name: tuple(dict.fromkeys(names[slot] for slot in derived.arguments))
        for derived in abstraction.derived
    }
    topics = {source.name: source.topic for source in abstraction.sources}
    aged = dict(zip(names, signal_ages(abstraction, ages), strict=True))
    wanted = rests_on(abstraction, sorted(abstraction.deciding, key=names.index))
    values = dict(zip(names, verdict.values, strict=True))
    found_sources = []
    for name in wanted:
        value, age, topic = values[name], aged[name], topics.get(name, "")
        found_sources.append(
            Source(
                signal=name,
                predicates=tuple(
                    dict.fromkeys(
                        key.partition(".")[2] or key
                        for key, expression in abstraction.conditions.items()
                        if name in expression.names
                    )
                ),
                topic=topic,
                arguments=needs.get(name, ()),
                publishers=tuple(publishers.get(topic, ())),
                known=value is not None,
                value=float(value) if isinstance(value, (bool, int, float)) else math.nan,
                text="unknown" if value is None else _short(value),
                age=math.inf if age is None else age / NANOSECONDS,
                stamp_ns=0 if age is None else clock.since(now_ns, age),
                unknown_since_ns=0 if value is not None else since.get(name, now_ns),
            )
        )
    return tuple(sorted(found_sources, key=lambda source: source.known))


def signal_ages(abstraction: Abstraction, ages: Sequence[int | None]) -> list[int | None]:
    """Return how old all signals are, in slot order: a derived one as old as the oldest it needs.

    `ages` are those of the source signals, in nanoseconds; None: nothing ever arrived, of a derived
    signal for one that it needs.
    """
    found = [*ages]
    for derived in abstraction.derived:  # each after what it needs
        needed = [found[slot] for slot in derived.arguments]
        known = [age for age in needed if age is not None]
        found.append(max(known, default=0) if len(known) == len(needed) else None)
    return found


def _short(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


class Remedies:
    """What would lower a risk most: looked up again only where state, rule or tables change."""

    def __init__(self) -> None:
        self._monitor: Monitor | None = None
        self._asked: tuple[Any, ...] = ()
        self._remedy_text = ""

    def of(self, monitor: Monitor, verdict: Verdict, row: RiskRow) -> str:
        """Return it in words; empty if nothing is known to."""
        state, model = verdict.observation.state, monitor.model
        known = None if model is None or state is None else model.index.get(state)
        if known is None or len(row.automaton_states) != 1:
            return ""
        compiled = next(prop for prop in monitor.properties if prop.name == row.property)
        odds = None if compiled.scored is None else compiled.scored.odds(verdict.values)
        asked = (row.property, known, row.automaton_states[0], odds)
        if monitor is not self._monitor or asked != self._asked:
            self._monitor, self._asked = monitor, asked
            self._remedy_text = _remedy(
                monitor, compiled, known, row.automaton_states[0], verdict.values
            )
        return self._remedy_text


def _remedy(
    monitor: Monitor,
    compiled: CompiledProperty,
    known: int,
    automaton_state: int,
    values: Sequence[Any],
) -> str:
    model = monitor.model
    if model is None or compiled.outlook is None:
        return ""
    table = explained_table(compiled, values)
    effects = predicate_effects(
        model, compiled.automaton, compiled.row_classes, table, known, automaton_state
    )
    if not effects or not effects[0].change < 0:
        return ""
    best = effects[0]
    truth = "true" if best.value else "false"
    return f"{best.predicate!r} becoming {truth} would lower it most: to {best.risk:.3g}"


def account(
    request: Intervention, formula: str, sources: Sequence[Source], remedy: str, clock: Clock
) -> str:
    """Return rule, signals, where they came from and what would help, in one sentence."""
    parts = [f"{request.reason} (the rule: {formula})"]
    unknown = [source for source in sources if not source.known]
    listed = unknown or [source for source in sources if source.predicates or not source.arguments]
    texts = [_source_text(source, clock) for source in listed[:MOST_SAID]]
    if len(listed) > MOST_SAID:
        texts.append(f"and {len(listed) - MOST_SAID} more")
    if texts:
        parts.append(f"{'unknown' if unknown else 'decided by'}: {', '.join(texts)}")
    if remedy:
        parts.append(remedy)
    if request.escape:
        ways = (SAID[way] for way, clear in request.escape._asdict().items() if clear)
        parts.append(f"a robot that stands may {' or '.join(ways)}, slowly")
    return "; ".join(parts)


def _source_text(source: Source, clock: Clock) -> str:
    where = f"from {', '.join(source.arguments)}" if source.arguments else "by name"
    if source.topic:
        nodes = ", ".join(source.publishers) or "no node publishes it"
        where = f"{source.topic}, {nodes}"
    if source.age == math.inf:
        return f"{source.signal} never came ({where})"
    text = source.signal if not source.known else f"{source.signal} {source.text}"
    return f"{text} ({where}, {clock.say(round(source.age, 3))} old)"
