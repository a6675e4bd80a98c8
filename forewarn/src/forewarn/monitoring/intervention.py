"""From the alerts of all properties to the one thing the planner is asked to do."""

from __future__ import annotations

import builtins
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from forewarn.config.actions import ACTIONS, LIMIT_SPEED, NO_ACTION, SEVERITY, WARN
from forewarn.config.actuators import NO_WAY, Ways
from forewarn.monitoring.policy import Level, RiskMeasure
from forewarn.monitoring.risk_rows import RiskRow, compared, never_seen
from forewarn.signals.clock import Clock, within
from forewarn.signals.clock_kinds import Grid

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.config.sections import PropertySpec
    from forewarn.monitoring.advice import Advice, Alternative


class Intervention(NamedTuple):
    """What is asked of the planner or the robot, from the policy to the actuator.

    The message forewarn_msgs/msg/Intervention has the same fields. An actuator gets only what
    concerns it (`demanded`); equal interventions then ask for the same.
    """

    action: str = NO_ACTION  # Constant of the message; ``NONE`` if nothing is asked for
    speed_limit: float = math.nan  # m/s, for LIMIT_SPEED; NaN otherwise. 0 means to stand still.
    id: int = 0  # Its number
    active: bool = True  # It is to be done; the monitor may only observe
    property: str = ""
    properties: tuple[str, ...] = ()
    risk: float = math.nan
    reason: str = ""
    evidence: tuple[str, ...] = ()
    recommendation: str = ""
    recommendation_reason: str = ""
    alternatives: tuple[Alternative, ...] = ()
    escape: Ways = NO_WAY

    @builtins.property  # a field has its name
    def limits(self) -> bool:
        """Tell whether a speed limit is asked for."""
        return ACTIONS[self.action].limits

    @builtins.property
    def stops(self) -> bool:
        """Tell whether a stop of any kind is asked for."""
        return ACTIONS[self.action].stops

    @builtins.property
    def hard(self) -> bool:
        """Tell whether the stop is one with the largest safe deceleration."""
        return ACTIONS[self.action].hard

    @builtins.property
    def moves(self) -> bool:
        """Tell whether anything is asked for that changes the motion."""
        return ACTIONS[self.action].moves

    @builtins.property
    def demanded(self) -> Intervention:
        """Return what it asks of the robot: nothing while it is not active."""
        if not self.active:
            return NOTHING
        # One NaN for all: the same has to equal itself, or it would be sent at every tick.
        return Intervention(self.action, self.speed_limit if self.limits else math.nan, self.id)

    def asks_the_same(self, other: Intervention | None) -> bool:
        """Tell whether both ask for the same; a limit of NaN is none."""
        if (
            other is None
            or self._replace(speed_limit=0.0)[:4] != other._replace(speed_limit=0.0)[:4]
        ):
            return False
        limits = self.speed_limit, other.speed_limit
        return limits[0] == limits[1] or all(map(math.isnan, limits))

    def with_advice(self, advice: Advice) -> Intervention:
        """Return the intervention with what a shield recommends beside it."""
        return self._replace(
            recommendation=advice.action,
            recommendation_reason=advice.reason,
            alternatives=advice.alternatives,
        )


NOTHING = Intervention()


def strongest(first: Intervention, second: Intervention) -> Intervention:
    """Return the stronger of two, as `demanded` gives them, and the lower of two limits."""
    if first.limits and second.limits:
        return min(first, second)  # by their limits: the action is the same
    return max(first, second, key=lambda one: SEVERITY.index(one.action))


class AdvisorState(NamedTuple):
    """What is remembered between ticks."""

    episodes: int = 0  # Interventions so far; the number of the present or the last one
    asking: bool = False


class EscalationStep(NamedTuple):
    """What one property asks for, from `after` ticks of its alert on."""

    intervention: str
    speed_limit: float | None
    after: int = 0


WARNING = EscalationStep(WARN, None)
SECONDS = Grid(1.0)
NO_ANSWERS: Mapping[str, EscalationStep] = MappingProxyType({})


def answers_of(section: PropertySpec, clock: Clock) -> tuple[EscalationStep, ...]:
    """Return the escalation chain of a property, the first step first."""
    return (
        EscalationStep(section.intervention, section.speed_limit),
        *(
            EscalationStep(step.action, step.speed_limit, clock.at_least(step.after))
            for step in section.escalation
        ),
    )


def out_of_model_answers(spec: MonitorSpec) -> dict[str, EscalationStep]:
    """Return what each property asks for in a state that it still does not know after its limit.

    That is a speed limit where an actuator can set one, and else, or if the property does not act
    on such states, a warning: no entry.
    """
    actuators = spec.actuators
    if actuators.autoware is None and actuators.nav2 is None and actuators.twist is None:
        return {}
    return {
        name: EscalationStep(LIMIT_SPEED, section.out_of_model_speed)
        for name, section in spec.properties.items()
        if section.out_of_model == "act"
    }


def advise(
    state: AdvisorState,
    rows: Sequence[RiskRow],
    since: Sequence[int],
    answers: Sequence[Sequence[EscalationStep]],
    out_of_model: Mapping[str, EscalationStep] = NO_ANSWERS,
    *,
    act: bool,
    clock: Clock = SECONDS,
) -> tuple[AdvisorState, Intervention | None]:
    """Return the request of this tick: repeated while it holds, withdrawn once, else None.

    `since`: tick at which the level of each property began.
    `answers`: escalation chain of each property.
    `out_of_model`: what a property asks for at WARN in a state unknown to the model, if more than a
    warning.
    """
    alerting = [
        (row, _answer(row, _due(chain, row.tick - begin), out_of_model))
        for row, begin, chain in zip(rows, since, answers, strict=True)
        if row.level
    ]
    if not alerting:
        withdrawn = withdraw(state, "no property alerts any more") if state.asking else None
        return state._replace(asking=False), withdrawn
    episodes = state.episodes + (not state.asking)
    row, answer = max(alerting, key=_urgency)
    action = answer.intervention
    limits = [
        alert.speed_limit
        for _, alert in alerting
        if ACTIONS[alert.intervention].limits and alert.speed_limit is not None
    ]
    request = Intervention(
        id=episodes,
        action=action,
        active=act,
        property=row.property,
        properties=tuple(other.property for other, _ in alerting),
        risk=compared(row),
        speed_limit=min(limits) if ACTIONS[action].limits else math.nan,
        reason=reason_of(row, clock),
        evidence=_evidence(row, clock),
    )
    return AdvisorState(episodes, True), request


def withdraw(state: AdvisorState, reason: str) -> Intervention:
    """Return the request that takes the present one back."""
    return Intervention(id=state.episodes, active=False, reason=reason)


def _due(chain: Sequence[EscalationStep], lasted: int) -> EscalationStep:
    # Times rise, but several may lie within the same tick: the last of them counts.
    return next(answer for answer in reversed(chain) if answer.after <= lasted)


def _answer(
    row: RiskRow, due: EscalationStep, out_of_model: Mapping[str, EscalationStep]
) -> EscalationStep:
    if row.level == Level.ACT:
        return due
    return WARNING if not never_seen(row) else out_of_model.get(row.property, WARNING)


def _urgency(alert: tuple[RiskRow, EscalationStep]) -> tuple[int, int, float]:
    row, answer = alert
    figure = compared(row)
    return SEVERITY.index(answer.intervention), row.level, math.inf if figure != figure else figure


def reason_of(row: RiskRow, clock: Clock) -> str:
    """Return why a property alerts, in one sentence."""
    threshold = row.threshold_act if row.level == Level.ACT else row.threshold_warn
    if row.broken:
        return f"{row.property}: the rule is broken; the alert lasts until the breach has cleared"
    if never_seen(row):
        return f"{row.property}: the model has never seen this state, the risk is unknown"
    value = compared(row)
    missing = len(row.stale_signals)
    stale = f", with {missing} stale signal{'s' if missing > 1 else ''}" if missing else ""
    if value != value and row.risk_measure is RiskMeasure.MIN_RISK:
        return f"{row.property}: nothing was seen done in this state, the least risk is unknown"
    if value != value:
        return f"{row.property}: no risk is known{stale}; the alert holds until it may end"
    text = f"{row.property}: {row.risk_measure.words} {value:.3f} {within(clock, row.horizon)}"
    if value >= threshold:
        return f"{text} is at least {threshold:g}{stale}"
    return f"{text}{stale}; the alert holds until it may end"


def _evidence(row: RiskRow, clock: Clock) -> tuple[str, ...]:
    facts = [f"state: {row.state}", f"automaton: {' or '.join(row.automaton_state_names)}"]
    if row.expected_restarted:
        facts.append("the model cannot explain the readings: the belief starts again")
    for name, age in zip(row.stale_signals, row.stale_ages, strict=True):
        facts.append(
            f"{name} never arrived"
            if math.isinf(age)
            else f"{name} is {clock.say(round(age, 3))} old"
        )
    return tuple(facts)
