"""One property at one tick: where its automaton goes, its risk, and what the policy makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from forewarn.monitoring.belief import Belief, Filter, follow
from forewarn.monitoring.branches import WHOLE, Breach, Evidence, Followed, Step
from forewarn.monitoring.branches import follow as follow_breach
from forewarn.monitoring.policy import Level, PolicyState, RiskMeasure, decide
from forewarn.monitoring.property_risk import (
    CERTAIN,
    NAN,
    NO_RISK,
    NOT_JUDGED,
    OVER,
    UNSEEN,
    Risk,
    by_scores,
    look_up,
    min_risk_of,
    risk_of_action,
    scored_risk,
    uncertain_risk,
)
from forewarn.monitoring.verdict import (
    NO_EXPECTED,
    NO_LEAST,
    NOTHING_SHOWN,
    ExpectedFigure,
    LeastFigure,
    PropertyStatus,
    PropertyVerdict,
    Shown,
)

if TYPE_CHECKING:
    from forewarn.monitoring.tables import CompiledProperty, LoadedModel
    from forewarn.states.interface import Observed

# A member of an enumeration costs more to look up than the comparison with it.
UNKNOWN, VIOLATED, ENDED = PropertyStatus.UNKNOWN, PropertyStatus.VIOLATED, PropertyStatus.ENDED


class PropertyState(NamedTuple):
    """The state of one property between two ticks."""

    branches: tuple[int, ...]  # Where the live automaton may be after the last tick
    latched: bool  # A violation was counted and its condition may not have cleared
    policy: PolicyState
    belief: Belief = ()  # How probable each product state is; empty if beliefs are not computed
    breach: Breach | None = None  # A breach that has not cleared


class TickInputs(NamedTuple):
    """What all properties read at one tick."""

    tick: int
    observation: Observed
    row: int | None  # Its row in the tables, where the model has it
    action: str | None  # What is being done, where it is known and used
    values: Sequence[Any]  # Values of all signals in slot order; None where unknown
    suspended: bool  # Values are missing, and only of signals whose staleness is to be ignored
    waiting: bool  # Nothing was fully known so far, and the time to start up is not over
    # Properties that may have been violated at ticks that were missed before this one
    missed: frozenset[str] = frozenset()


def judge(
    compiled: CompiledProperty,
    before: PropertyState,
    moment: TickInputs,
    model: LoadedModel | None,
    beliefs: Filter | None,
) -> tuple[PropertyState, PropertyVerdict]:
    """Advance one property by a tick at which monitoring is active.

    `beliefs`: what beliefs are computed with, if anything asks for them.
    """
    step = compiled.after(before.branches, before.latched, moment.observation)
    if compiled.name in moment.missed and not step.violation:
        step = step._replace(possible=True)
    risk, status = _risk(compiled, before, moment, step, model)
    followed = _breach(compiled, before.breach, moment.observation, step, status)
    belief, expected = _expected(compiled, before.belief, moment, risk, beliefs)
    acted = before.policy.level == Level.ACT
    held = _held(compiled, moment.values) if acted else ""
    least = NO_LEAST
    if moment.waiting and status is not VIOLATED:  # which no missing signal can bring about
        status, policy, shown = UNKNOWN, before.policy, NOTHING_SHOWN
    else:
        if compiled.least is not None:
            least = min_risk_of(
                model, compiled, before.branches, moment.observation, moment.row, step, risk
            )
        shown = _shown(compiled, risk, status, least, expected)
        policy = decide(
            compiled.rules,
            before.policy,
            moment.tick,
            shown.figure,
            out_of_model=shown.out_of_model,
            held=bool(held),
            broken=followed.broken,
        )
        if not acted and policy.level == Level.ACT:
            held = _held(compiled, moment.values)
    after = PropertyState(step.branches, step.latched, policy, belief, followed.breach)
    return after, _verdict(
        compiled, after, step, status, risk, least, expected, held, shown, followed
    )


def inactive(
    compiled: CompiledProperty, fresh: PropertyState, moment: TickInputs
) -> tuple[PropertyState, PropertyVerdict]:
    """Return the outcome of a tick at which monitoring is not active: the property starts again."""
    start, missed = (compiled.automaton.initial,), compiled.name in moment.missed
    nothing = Step(start, start, False, PropertyStatus.INACTIVE, False, missed)
    return fresh, _verdict(compiled, fresh, nothing, PropertyStatus.INACTIVE, NO_RISK)


def is_steady(compiled: CompiledProperty, before: PropertyState, after: PropertyState) -> bool:
    """Tell whether a tick would be judged the same at any other time: no alert counts ticks."""
    # The policy returns what it was given only where it rests.
    return (
        after.policy is before.policy
        and compiled.scored is None
        and compiled.of_actions is None
        and not before.belief
        and before.breach is None
        and after.breach is None
    )


def _risk(
    compiled: CompiledProperty,
    before: PropertyState,
    moment: TickInputs,
    step: Step,
    model: LoadedModel | None,
) -> tuple[Risk, PropertyStatus]:
    """Return the risk, and the status: unknown where nothing is judged."""
    row, branches, status = moment.row, step.branches, step.status
    if status is VIOLATED:
        return CERTAIN, status
    if compiled.values is None:
        return NO_RISK, status
    if status is ENDED:
        return OVER, status
    if row is not None and len(branches) == 1 and status is not UNKNOWN:
        risk = _known_risk(compiled, row, branches[0], moment)
    elif moment.observation.state is None and moment.suspended:
        return NOT_JUDGED, UNKNOWN
    else:
        table = compiled.table if compiled.of_actions is None else compiled.of_actions
        assert table is not None and model is not None
        odds = None if compiled.scored is None else compiled.scored.odds(moment.values)
        if compiled.scored is not None and odds is not None:
            table = compiled.scored.table
        risk = uncertain_risk(
            model, compiled, before.branches, moment.observation, row, table, odds
        )
    if risk is UNSEEN and compiled.scored is not None:
        risk = by_scores(compiled.scored, moment.values)
    return risk, status


def _known_risk(compiled: CompiledProperty, row: int, automaton: int, moment: TickInputs) -> Risk:
    """Return the risk of a product state that is known for certain."""
    if compiled.of_actions is not None:
        return risk_of_action(compiled.of_actions, row, automaton, moment.action)
    if compiled.scored is not None and (odds := compiled.scored.odds(moment.values)) is not None:
        return scored_risk(compiled.scored, row, automaton, odds)
    return look_up(compiled, row, automaton)


def _expected(
    compiled: CompiledProperty,
    belief: Belief,
    moment: TickInputs,
    risk: Risk,
    beliefs: Filter | None,
) -> tuple[Belief, ExpectedFigure]:
    """Return the belief about a property after a tick, and the mean risk over it."""
    if not belief:
        return belief, NO_EXPECTED
    expected = NO_EXPECTED._replace(left_out=0.0)
    if beliefs is not None and compiled.table is not None:
        odds = None if compiled.scored is None else compiled.scored.odds(moment.values)
        belief, expected = follow(
            beliefs, compiled, belief, moment.observation, moment.action, odds
        )
    if expected.probability != expected.probability and (risk is CERTAIN or risk is OVER):
        expected = expected._replace(probability=risk.probability)
    return belief, expected


def _shown(
    compiled: CompiledProperty,
    risk: Risk,
    status: PropertyStatus,
    least: LeastFigure,
    expected: ExpectedFigure,
) -> Shown:
    """Return the figure that the policy compares, and whether the model has never seen this."""
    measure = compiled.announced.risk_measure
    figure = measure.chosen(risk.probability, risk.upper, least.probability, expected.probability)
    if risk is NO_RISK:
        # Without a model only a violation raises an alert, so its end must release it. But a
        # silent sensor must not let the robot go.
        return Shown(NAN if status is UNKNOWN else 0.0, False)
    if risk is NOT_JUDGED:
        figure = NAN  # its upper bound of 1 must not alert either
    # Where nothing was seen done, the least risk is as unknown as in a state never seen.
    known = figure == figure or risk is NOT_JUDGED
    if measure is RiskMeasure.EXPECTED:
        # Readings that were never seen may still tell what is likely, if they may be wrong.
        return Shown(figure, not known)
    out_of_model = not (risk.in_model and (measure is not RiskMeasure.MIN_RISK or known))
    if out_of_model and measure is RiskMeasure.UPPER:
        figure = NAN  # a bound of 1 tells nothing
    return Shown(figure, out_of_model)


def _held(compiled: CompiledProperty, values: Sequence[Any]) -> str:
    """Say why an alert that acts goes on although its risk may be low; empty if nothing holds it.

    What the model has learned of a driver who brakes does not hold for one who is braked.
    """
    condition = compiled.hold_while
    if condition is None:
        return ""
    holds, why = condition.truth(values)
    if holds is False:
        return ""
    return f"{compiled.name} is held while {condition.text}; {why or 'it is true'}"


def _verdict(
    compiled: CompiledProperty,
    after: PropertyState,
    step: Step,
    status: PropertyStatus,
    risk: Risk,
    least: LeastFigure = NO_LEAST,
    expected: ExpectedFigure = NO_EXPECTED,
    held: str = "",
    shown: Shown = NOTHING_SHOWN,
    followed: Followed = WHOLE,
) -> PropertyVerdict:
    return PropertyVerdict(
        compiled.name,
        status,
        step.violation,
        step.possible,
        risk.probability,
        risk.lower,
        risk.upper,
        risk.in_model,
        step.automaton,
        after.policy.level,
        after.policy.since,
        least,
        expected,
        followed.counted,
        held,
        followed.broken,
        shown,
    )


def _breach(
    compiled: CompiledProperty,
    before: Breach | None,
    observation: Observed,
    step: Step,
    status: PropertyStatus,
) -> Followed:
    """Return what is open after a tick, and whether its violation counts."""
    if before is None and not step.violation:
        return WHOLE
    ended = status is PropertyStatus.ENDED
    unknown = len(step.automaton) > 1 or step.possible
    waits = not unknown and compiled.live.violated in step.branches
    obliged = False
    if not (unknown or waits):
        lasting = _lasting(compiled, step.automaton[0], observation)
        unknown, obliged = len(lasting) > 1, lasting == {True}
    terminal = observation.ended or ended
    now = Evidence(step.violation, ended, terminal, unknown, waits, obliged)
    return follow_breach(before, now, compiled.rules.breach_clear_time)


def _lasting(compiled: CompiledProperty, automaton: int, observation: Observed) -> set[bool]:
    """Return whether what the state may be would violate the property if it went on."""
    state = observation.state
    letters = (
        compiled.compatible_letters(observation) if state is None else compiled.letters_of(state)
    )
    terminals = compiled.live.terminals
    return {letter < terminals and bool(compiled.lasting[automaton, letter]) for letter in letters}
