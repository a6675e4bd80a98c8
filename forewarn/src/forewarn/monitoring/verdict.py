"""The verdict of the monitor at one tick."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from forewarn.monitoring.policy import Broken

if TYPE_CHECKING:
    from forewarn.monitoring.policy import Level
    from forewarn.monitoring.run_anomaly import AnomalyRow
    from forewarn.signals.snapshots import Failure, StaleSignal
    from forewarn.states.interface import Observed


class PropertyStatus(IntEnum):
    """The certain status of a property, without any probability."""

    UNKNOWN = 0
    SATISFIED_SO_FAR = 1
    VIOLATED = 2
    CANNOT_BE_VIOLATED = 3
    INACTIVE = 4
    ENDED = 5


class LeastFigure(NamedTuple):
    """The least probability of a violation over all ways to choose, and its bounds.

    NaN where it is not asked for; the probability also where nothing was seen done.
    """

    probability: float
    lower: float
    upper: float


NO_LEAST = LeastFigure(math.nan, math.nan, math.nan)


class ExpectedFigure(NamedTuple):
    """The mean risk over what the state may be, by all readings so far; see `belief`."""

    # In [0, 1]; NaN where it is not asked for, and where no state of the model may be
    probability: float
    # Share of the belief, in [0, 1], that the next moment does not start from: more than it can
    # hold. NaN where the figure is not asked for.
    left_out: float
    # The chain cannot explain the readings: the belief about the state starts again
    restarted: bool


NO_EXPECTED = ExpectedFigure(math.nan, math.nan, False)


class Shown(NamedTuple):
    """What the policy is shown of a property, beside its breach."""

    figure: float  # What it compares with the thresholds; NaN where nothing is known
    out_of_model: bool  # The model has never seen this state


NOTHING_SHOWN = Shown(math.nan, False)


class PropertyVerdict(NamedTuple):
    """One property at one tick.

    `status`: VIOLATED also while a condition that violates an invariant lasts.
    `violation`: a violation happened at this tick; True once for each.
    `possible_violation`: a violation may have happened: with what is known it cannot be excluded.
    `probability`, `lower`, `upper`: risk and its bounds in [0, 1]; NaN where there is none.
    `in_model`: the model knows a state that agrees with what is known.
    `automaton`: states the automaton may be in.
    `alert_since`: tick at which the present level began.
    `counted`: the violation at this tick counts: it is the first of its breach; see `breach`.
    `held`: why an alert that acts goes on although its risk may be low, by `hold_while` of the
    monitor file; empty where nothing holds it.
    """

    name: str
    status: PropertyStatus
    violation: bool
    possible_violation: bool
    probability: float
    lower: float
    upper: float
    in_model: bool
    automaton: tuple[int, ...]
    level: Level
    alert_since: int
    least: LeastFigure = NO_LEAST
    expected: ExpectedFigure = NO_EXPECTED
    counted: bool = False
    held: str = ""
    broken: Broken = Broken.NO
    shown: Shown = NOTHING_SHOWN


class Verdict(NamedTuple):
    """All properties at one tick, with what was seen.

    `stale`: source signals that are too old, or never came.
    `failures`: what was received and could not be read or decided.
    `values`: values of all signals in the abstraction's order; None where unknown.
    `repeats`: so many ticks follow that come to the same, but for their time and the ages of
    `stale`.
    """

    tick: int
    time_ns: int
    observation: Observed
    properties: tuple[PropertyVerdict, ...]
    stale: tuple[StaleSignal, ...]
    failures: tuple[Failure, ...]
    values: Sequence[Any] = ()
    anomaly: AnomalyRow | None = None
    repeats: int = 0
