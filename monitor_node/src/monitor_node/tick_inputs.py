"""What a tick rests on, with the times that it counts from."""

from __future__ import annotations

from typing import Any, NamedTuple

from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.sources import signal_ages
from forewarn.monitoring.verdict import Verdict
from forewarn.signals.clock import Clock


class Seen(NamedTuple):
    """Names, values and times of all that a tick rests on."""

    names: list[str]
    values: list[Any]
    stamps_ns: list[int]


def ages_at(watch: LiveSession, verdict: Verdict) -> list[int | None]:
    """Return how old all signals were at the last tick, in nanoseconds; None if none has come."""
    return signal_ages(watch.monitor.abstraction, watch.feed.ages(verdict.tick))


def seen_at(watch: LiveSession, clock: Clock, verdict: Verdict) -> Seen:
    """Return signals, then predicates and terminal labels, as of the last tick."""
    abstraction, now_ns = watch.monitor.abstraction, verdict.time_ns
    ages, vocabulary = ages_at(watch, verdict), abstraction.vocabulary
    predicates = (f"predicates.{name}" for name in vocabulary.predicates)
    terminals = (f"terminal.{name}" for name in vocabulary.terminals)
    truths = (vocabulary.truth(atom, verdict.observation) for atom in vocabulary.atoms)
    stamps = [now_ns if age is None else clock.since(now_ns, age) for age in ages]
    return Seen(
        [*abstraction.signals, *predicates, *terminals],
        [*verdict.values, *truths],
        stamps + [now_ns] * len(vocabulary.atoms),
    )
