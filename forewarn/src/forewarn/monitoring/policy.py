"""The policy: from the risk of a property to its alert level, as a pure state machine.

The key `risk_measure` says which figure of a property is compared with its thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.config.sections import PropertySpec
    from forewarn.signals.clock import Clock


class RiskMeasure(IntEnum):
    """What is compared; the number is that of forewarn_msgs/msg/Risk."""

    RISK = 0
    UPPER = 1
    MIN_RISK = 2
    EXPECTED = 3

    @property
    def words(self) -> str:
        """What it is called in sentences."""
        return ("risk", "upper bound", "least risk of all choices", "expected risk")[self]

    def chosen(self, risk: float, upper: float, min_risk: float, expected: float) -> float:
        """Return the figure that is compared."""
        return (risk, upper, min_risk, expected)[self]


BY_KEY = {measure.name.lower(): measure for measure in RiskMeasure}
"""By the words of the monitor file."""


def needs_bounds(spec: MonitorSpec) -> bool:
    """Tell whether a threshold is compared with a bound: then nothing may begin without bounds."""
    return any(section.risk_measure == "upper" for section in spec.properties.values())


class Broken(IntEnum):
    """Whether a rule is broken at a tick, in rising order of urgency.

    `NO`: no breach is open.
    `CLEARING`: a breach is open, and does not last at this tick: it has been quiet for too short a
    time.
    `LASTS`: a breach is open, and lasts.
    `AT_ONCE`: the rule was violated at this tick, and the present state would not break it again:
    there may be no second tick to count.
    """

    NO = 0
    CLEARING = 1
    LASTS = 2
    AT_ONCE = 3


class Level(IntEnum):
    """The alert level of a property."""

    NONE = 0
    WARN = 1
    ACT = 2


@dataclass(frozen=True)
class Rules:
    """The policy of one property, its times in ticks."""

    warn: float  # warn, act, release: risk levels
    act: float
    release: float
    enter: int  # enter, exit: consecutive ticks that begin and end an alert
    exit: int
    hold: int  # Ticks an alert lasts at the least
    # What a state unknown to the model asks for, during the first `out_of_model_timeout` ticks;
    # from then on it asks for WARN at most, which may be a speed limit (`intervention.advise`)
    out_of_model: Level
    out_of_model_timeout: int
    breach_clear_time: int = 0  # Ticks in a row without a breach after which it has cleared


class PolicyState(NamedTuple):
    """Where the policy of one property stands."""

    level: Level = Level.NONE
    since: int = 0  # Tick at which the present level began
    warn_run: int = 0  # warn_run, act_run: consecutive ticks at or above the levels
    act_run: int = 0
    calm_run: int = 0  # Consecutive ticks below the release level of the present alert
    out_of_model_since: int | None = None  # Tick at which the state became unknown to the model
    # The state unknown to the model was released by hand: it asks for nothing while it lasts
    excused: bool = False


RESTING = PolicyState()


def compile_rules(spec: PropertySpec, clock: Clock) -> Rules:
    """Return the policy of a property with its times in moments."""
    levels = spec.thresholds
    return Rules(
        warn=levels.warn,
        act=levels.act,
        release=levels.release,
        enter=spec.enter,
        exit=spec.exit,
        hold=clock.at_least(spec.hold),
        out_of_model={"act": Level.ACT, "warn": Level.WARN, "ignore": Level.NONE}[
            spec.out_of_model
        ],
        out_of_model_timeout=clock.ticks(spec.out_of_model_timeout),
        breach_clear_time=clock.ticks(spec.breach_clear_time),
    )


def decide(
    rules: Rules,
    state: PolicyState,
    tick: int,
    figure: float,
    *,
    out_of_model: bool = False,
    held: bool = False,
    broken: Broken = Broken.NO,
) -> PolicyState:
    """Advance the policy by one tick.

    `figure`: risk, or its upper bound, in [0, 1]; NaN where there is none.
    `out_of_model`: the present state is unknown to the model; a figure that is known none the less
    comes from the property's scores.
    `held`: the present alert does not end, whatever the figure is.
    `broken`: whether the rule is broken. A tick at which a breach lasts counts as one above all
    levels, and no alert ends while a breach is open. What may not be seen a second time asks at
    once.
    """
    resting = state.level is Level.NONE and not out_of_model and not broken
    if resting and figure < rules.warn:
        if state[2:] == RESTING[2:]:
            return state
        return RESTING._replace(since=state.since)
    warns, acts = figure >= rules.warn, figure >= rules.act
    low = rules.release if state.level == Level.ACT else min(rules.release, rules.warn)
    calm = figure < low
    out_of_model_since = None
    excused = out_of_model and state.excused
    if out_of_model:
        out_of_model_since = tick if state.out_of_model_since is None else state.out_of_model_since
        expired = tick - out_of_model_since >= rules.out_of_model_timeout
        asked = min(rules.out_of_model, Level.WARN) if expired else rules.out_of_model
        asked = Level.NONE if excused else asked
        rests = asked < Level.WARN or (expired and state.level == Level.ACT)
        # What scores say of it counts as well: as they are NaN without, nothing is above a level.
        calm = rests and (calm or figure != figure)
        warns, acts = warns or asked >= Level.WARN, acts or asked >= Level.ACT
    if broken > Broken.CLEARING:
        warns, acts, calm = True, True, False
    calm = calm and not held
    state = PolicyState(
        state.level,
        state.since,
        min(state.warn_run + 1, rules.enter) if warns else 0,
        min(state.act_run + 1, rules.enter) if acts else 0,
        min(state.calm_run + 1, rules.exit) if calm else 0,
        out_of_model_since,
        excused,
    )
    level = _level(rules, state, tick, broken)
    if level == state.level:
        return state
    return state._replace(level=level, since=tick, calm_run=0)


def waits(rules: Rules, state: PolicyState, tick: int) -> bool:
    """Tell whether time alone changes what the policy says, after tick `tick`."""
    held = state.level is not Level.NONE and tick - state.since < rules.hold
    since = state.out_of_model_since
    counts = since is not None and tick - since < rules.out_of_model_timeout
    return held or counts


def release(state: PolicyState) -> PolicyState:
    """End an alert by hand.

    A state unknown to the model asks for nothing more while it lasts: it would only begin its time
    to act again.
    """
    return RESTING._replace(excused=state.out_of_model_since is not None)


def carried_over(rules: Rules, state: PolicyState, shift: int) -> PolicyState:
    """Return the policy on another clock: an alert goes on, because its end was not seen.

    It has lasted as long as before. All counts of consecutive ticks start again. Where a state that
    the model does not know had led to a limit, the property acts: no state has been seen since.

    `shift`: by how much ticks are greater than they would be by the former clock.
    """
    level = state.level
    if level == Level.WARN and state.out_of_model_since is not None and not state.excused:
        level = max(level, rules.out_of_model)
    if level == Level.NONE:
        return RESTING
    return RESTING._replace(level=level, since=state.since + shift)


def _level(rules: Rules, state: PolicyState, tick: int, broken: Broken) -> Level:
    at_once = broken is Broken.AT_ONCE
    if at_once or state.act_run >= rules.enter:
        return Level.ACT
    calm = state.calm_run >= rules.exit and tick - state.since >= rules.hold
    released = calm and not broken
    if state.level == Level.ACT and not released:
        return Level.ACT
    if at_once or state.warn_run >= rules.enter:
        return Level.WARN
    if state.level == Level.WARN and not released:
        return Level.WARN
    return Level.NONE
