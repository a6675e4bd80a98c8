"""Why a risk is what it is: the likeliest ways to the violation, and what would lower it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forewarn.checking.explanation import likely_ways, predicate_effects
from forewarn.monitoring.composition import Composition, Values, composition_of, explained_table

if TYPE_CHECKING:
    from forewarn.monitoring.step import Monitor
    from forewarn.signals.clock import Clock

WAYS = 3


class LikelyWay(NamedTuple):
    """One way to the violation."""

    states: tuple[str, ...]  # States passed, the present one first
    share: float  # Part of the risk that goes this way, in [0, 1]
    time: float  # Expected seconds to the violation on this way


class Change(NamedTuple):
    """What one predicate, different at the next tick, would make of the risk."""

    predicate: str
    value: bool
    risk: float


class Reasons(NamedTuple):
    """Why a risk is what it is."""

    # The chain's risk, in [0, 1], before anything calibrates it or other estimates join it: ways
    # and times are the chain's
    risk: float
    # Expected seconds to the violation, given that there is one within the horizon; NaN where that
    # has no meaning
    expected_time: float
    ways: tuple[LikelyWay, ...]  # The likeliest ways, in that order
    # Each predicate alone, the one that lowers the risk most first; only changes to states that the
    # model knows. Their risk is the chain's, or what `made_of` tells of.
    changes: tuple[Change, ...]
    made_of: Composition | None = None  # What the risk is made of; None if it is the chain's

    @property
    def published(self) -> float:
        """The risk that `changes` are to be compared with."""
        return self.risk if self.made_of is None else self.made_of.risk


def explain_risk(
    monitor: Monitor, name: str, state: int, automaton_state: int, values: Values | None = None
) -> Reasons | None:
    """Explain the risk of a property in one product state.

    `automaton_state`: state of the property's automaton after it has read `state`.
    `values`: values of all signals at the moment, in slot order, for scores.
    Returns None if there is no model, or it does not know the state.
    """
    compiled = next(prop for prop in monitor.properties if prop.name == name)
    model, outlook = monitor.model, compiled.outlook
    row = None if model is None else model.index.get(state)
    if model is None or outlook is None or row is None:
        return None
    period = monitor.clock.duration(1)
    automaton, classes = compiled.automaton, compiled.row_classes
    ways = likely_ways(outlook.chain, automaton, classes, outlook.table, row, automaton_state, WAYS)
    table = explained_table(compiled, values)
    effects = predicate_effects(model, automaton, classes, table, row, automaton_state)
    return Reasons(
        risk=float(outlook.table.values[row, automaton_state]),
        expected_time=outlook.expected(row, automaton_state) * period,
        ways=tuple(
            LikelyWay(
                tuple(model.vocabulary.name(model.states[state]) for state in way.states),
                way.share,
                way.steps * period,
            )
            for way in ways
        ),
        changes=tuple(Change(effect.predicate, effect.value, effect.risk) for effect in effects),
        made_of=composition_of(compiled, row, automaton_state, values),
    )


def in_words(reasons: Reasons, clock: Clock) -> list[str]:
    """Return sentences for people."""
    found = []
    if reasons.ways:
        way = reasons.ways[0]
        chain = "" if reasons.made_of is None else " by the chain alone"
        found.append(
            f"The likeliest path{chain} is {' > '.join(way.states)}, {100 * way.share:.0f} % of "
            f"the risk, in about {clock.say(way.time, '.1f')}."
        )
    lowering = next((change for change in reasons.changes if change.risk < reasons.published), None)
    if lowering is not None:
        found.append(
            f"The risk would fall most, to {lowering.risk:.3g}, if {lowering.predicate!r} became "
            f"{'true' if lowering.value else 'false'}."
        )
    return found
