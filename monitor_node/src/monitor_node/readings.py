"""The signals that a tick rests on, with the times that they count from."""

from __future__ import annotations

from typing import Any, NamedTuple

from forewarn.monitoring.live_session import Watch
from forewarn.monitoring.verdict import Verdict
from forewarn.signals.clock import Clock


class Seen(NamedTuple):
    """Names, values and times of all that a tick rests on."""

    names: list[str]
    values: list[Any]
    stamps_ns: list[int]


def signals_at(watch: Watch, clock: Clock, verdict: Verdict) -> Seen:
    """Return all signals at the last tick; a derived one is as old as the oldest it is from."""
    monitor, now_ns = watch.monitor, verdict.time_ns
    ages = watch.session.feed.ages(verdict.tick)
    times = [now_ns if age is None else clock.since(now_ns, age) for age in ages]
    for derived in monitor.abstraction.derived:
        times.append(min((times[slot] for slot in derived.arguments), default=now_ns))
    return Seen(list(monitor.abstraction.signals), list(verdict.values), times)


def seen_at(watch: Watch, clock: Clock, verdict: Verdict) -> Seen:
    """Return signals, then predicates and terminal labels, as of the last tick."""
    names, values, stamps = signals_at(watch, clock, verdict)
    vocabulary = watch.monitor.abstraction.vocabulary
    names += [f"predicates.{name}" for name in vocabulary.predicates]
    names += [f"terminal.{name}" for name in vocabulary.terminals]
    values += [vocabulary.truth(atom, verdict.observation) for atom in vocabulary.atoms]
    stamps += [verdict.time_ns] * len(vocabulary.atoms)
    return Seen(names, values, stamps)
