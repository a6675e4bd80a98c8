"""Breaches: which violations count as one, and when a rule that was broken is kept again.

An automaton starts again after each violation, so a rule that stays broken is violated again and
again, and a quantity that flickers about its limit breaks the rule once for each flicker. Such
violations are one breach, and count once, until the breach has cleared:

- It lasts while the condition that broke the rule holds, and while an obligation is pending that
  would be violated if the present state went on.
- It has cleared as soon as a pending obligation is met; else after `clear` ticks in a row at which
  it is known not to last; and at once where an episode ends, and where the rule is not active.
- A tick at which this is not known leaves it as it was.

The policy and all figures about violations use these breaches at each tick.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Broken(IntEnum):
    """Whether a rule is broken at a tick, in rising order of urgency.

    Attributes
    ----------
    NO
        No breach is open.
    CLEARING
        A breach is open, and does not last at this tick: it has been quiet for too short a time.
    LASTS
        A breach is open, and lasts.
    AT_ONCE
        The rule was violated at this tick, and the present state would not break it again: there
        may be no second tick to count.
    """

    NO = 0
    CLEARING = 1
    LASTS = 2
    AT_ONCE = 3


class Breach(NamedTuple):
    """A breach that has begun and not cleared.

    Attributes
    ----------
    quiet : int
        Ticks since it was last seen to last, without those at which that is unknown.
    terminal : bool
        A terminal label held at the last tick.
    obliged : bool
        An obligation was pending at the last tick of which that is known.
    """

    quiet: int
    terminal: bool
    obliged: bool


class Evidence(NamedTuple):
    """What one tick tells about a breach.

    Attributes
    ----------
    violation : bool
        The rule is violated at this tick.
    ended : bool
        The episode has ended.
    terminal : bool
        A terminal label holds, or the episode has ended.
    unknown : bool
        The tick does not tell whether the breach lasts.
    waits : bool
        The condition that broke the rule holds.
    obliged : bool
        An obligation is pending that is violated if the present state goes on.
    """

    violation: bool
    ended: bool
    terminal: bool
    unknown: bool
    waits: bool
    obliged: bool


class Followed(NamedTuple):
    """What is open after a tick, how broken the rule is, and whether its violation counts."""

    breach: Breach | None
    broken: Broken
    counted: bool


WHOLE = Followed(None, Broken.NO, False)


def follow(before: Breach | None, now: Evidence, clear: int) -> Followed:
    """Take in a tick.

    Parameters
    ----------
    before : Breach or None
        What was open after the tick before.
    now : Evidence
        What this tick tells.
    clear : int
        Ticks in a row without a breach after which it has cleared.
    """
    fresh = now.ended or (before is not None and before.terminal and not now.terminal)
    if now.violation:
        lasts = now.unknown or now.waits or now.obliged
        breach = Breach(0, now.terminal, now.obliged)
        counted = before is None or fresh
        return Followed(breach, Broken.LASTS if lasts else Broken.AT_ONCE, counted)
    if before is None or fresh:
        return WHOLE
    if now.unknown:
        broken = Broken.CLEARING if before.quiet else Broken.LASTS
        return Followed(before._replace(terminal=now.terminal), broken, False)
    if now.waits or (now.obliged and not before.quiet):
        return Followed(Breach(0, now.terminal, now.obliged), Broken.LASTS, False)
    quiet = before.quiet + 1
    if quiet >= clear or (before.obliged and not now.obliged):
        return WHOLE
    return Followed(Breach(quiet, now.terminal, now.obliged), Broken.CLEARING, False)
