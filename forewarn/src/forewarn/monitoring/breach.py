"""Which violations are one breach, while a monitor runs; a finished run's are in `excursions`.

An automaton starts again after each violation, so that a rule that stays broken is violated again
and again. That is one breach, and it counts once, until it has cleared. `assessment.excursions`
says when, for all ticks of a run together; tests hold both to the same.
"""

from __future__ import annotations

from typing import NamedTuple

from forewarn.monitoring.tables import CompiledProperty
from forewarn.monitoring.verdict import PropertyStatus, PropertyVerdict
from forewarn.states.interface import Observed, is_terminal


class Breach(NamedTuple):
    """A breach that has begun and not cleared.

    Attributes
    ----------
    quiet : int
        Ticks since it was last seen to last; those at which nobody knows are left out.
    terminal : bool
        A terminal label held at the last tick.
    """

    quiet: int
    terminal: bool


def follow_breach(
    compiled: CompiledProperty,
    before: Breach | None,
    observation: Observed,
    verdict: PropertyVerdict,
    clear: int,
) -> tuple[Breach | None, PropertyVerdict]:
    """Take in a tick with a violation, or after one that has not cleared.

    Parameters
    ----------
    clear : int
        Ticks without a breach after which it has cleared.

    Returns
    -------
    breach : Breach or None
        What is open after the tick.
    verdict : PropertyVerdict
        Whether its violation counts.
    """
    status = verdict.status
    terminal = observation.ended or status is PropertyStatus.ENDED
    fresh = status is PropertyStatus.ENDED or (
        before is not None and before.terminal and not terminal
    )
    if verdict.violation:
        return Breach(0, terminal), verdict._replace(counted=before is None or fresh)
    if before is None or fresh:
        return None, verdict
    if verdict.possible_violation or len(verdict.automaton) > 1:
        return before._replace(terminal=terminal), verdict
    if status is PropertyStatus.VIOLATED or _lasts(compiled, observation.state, verdict):
        return Breach(0, terminal), verdict
    quiet = before.quiet + 1
    return (Breach(quiet, terminal) if quiet < clear else None), verdict


def _lasts(compiled: CompiledProperty, state: int | None, verdict: PropertyVerdict) -> bool:
    """Tell whether the present state would violate the property if it went on."""
    if state is None or is_terminal(state):
        return False
    return bool(compiled.lasting[verdict.automaton[0], compiled.letters_of(state)[0]])
