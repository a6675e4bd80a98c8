"""The list of clocks: which one a monitor file or a model means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forewarn.signals.steps import Steps
from forewarn.signals.ticks import Grid

if TYPE_CHECKING:
    from forewarn.config.fields import Rate
    from forewarn.signals.clock import Clock


def clock_of(rate: Rate, topic: str | None = None) -> Clock:
    """Return the clock of a model or a monitor file: ticks at a rate, or steps of a topic."""
    return Steps(topic) if rate == "steps" else Grid(rate)


def by_clock(rate: Rate) -> str:
    """Return how a model or a monitor file counts, for people: ``at 10 Hz``, ``by steps``."""
    return "by steps" if rate == "steps" else f"at {rate:g} Hz"
