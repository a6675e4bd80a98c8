"""Why learned scores are what they are: which signals push them, and how hard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forewarn.states.abstraction import Abstraction, Past

SHOWN = 3
LEAST = 0.005


def danger_facts(
    abstraction: Abstraction, past: Past | None, values: Sequence[Any]
) -> tuple[str, ...]:
    """Return a sentence about each learned score at a tick.

    Parameters
    ----------
    past : Past or None
        What the tick left.
    values : sequence
        Values of all signals at the tick, in slot order.
    """
    facts = []
    for name, scoring in abstraction.scores if past is not None else ():
        assert past is not None
        score = values[abstraction.signals.index(name)]
        pushes = scoring.pushes(abstraction.window(name, past))
        if score is None or pushes is None:
            facts.append(f"{name} is unknown")
            continue
        decisive = [(signal, push) for signal, push in pushes.items() if abs(push) >= LEAST]
        listed = ", ".join(f"{signal} {push:+.2f}" for signal, push in decisive[:SHOWN])
        moved = f"; its log-odds are moved by {listed}" if listed else ""
        facts.append(f"{name} is {score:.3g}{moved}")
    return tuple(facts)
