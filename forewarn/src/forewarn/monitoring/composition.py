"""What a verdict rests on: the parts of a risk, and the values that a broken rule reads.

A risk that is not the chain's alone is a sum of log-odds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from forewarn.checking.interface import RiskTable
from forewarn.expressions.syntax import parse_expression
from forewarn.monitoring.property_risk import look_up, pushed, scored_risk
from forewarn.monitoring.verdict import PropertyStatus, Verdict

if TYPE_CHECKING:
    from forewarn.monitoring.step import Monitor
    from forewarn.monitoring.tables import CompiledProperty

Values = Sequence[Any] | Mapping[int, Any]


class Push(NamedTuple):
    """What a score adds to the log-odds of a risk: `weight` times its own `log_odds`."""

    score: str
    weight: float
    log_odds: float


class Composition(NamedTuple):
    """What the risk of a product state is made of."""

    # Names of the estimates in the table, and the weights of their log-odds
    estimates: tuple[tuple[str, float], ...]
    table: float  # Log-odds of the state in the table; infinite where automaton and graph decide
    # What scores add at the moment; empty where a score is unknown, or if they are not wanted
    pushes: tuple[Push, ...]
    risk: float  # What comes of it, as it is published
    calibrated: bool  # A map of the model comes on top of the sum
    without: tuple[str, ...] = ()  # Scores that would have a part in it if all were known

    @property
    def log_odds(self) -> float:
        """Return the sum."""
        return self.table + math.fsum(push.weight * push.log_odds for push in self.pushes)


def is_estimated(compiled: CompiledProperty) -> bool:
    """Tell whether the risk of a property is not the chain's as it is."""
    return compiled.estimate is not None and not compiled.estimate.is_chain


def explained_table(compiled: CompiledProperty, values: Values | None) -> RiskTable:
    """Return the risk of all product states as it is published while signals have these values.

    Of the chain it is the risk before a map calibrates it, in whose terms the chain is explained.

    `values`: values of all signals in slot order; without them, no score is known.
    """
    assert compiled.table is not None and compiled.outlook is not None
    if not is_estimated(compiled):
        return compiled.outlook.table
    scored = compiled.scored
    odds = None if scored is None or values is None else scored.odds(values)
    if scored is None or odds is None:
        return compiled.table
    return RiskTable(pushed(scored, scored.table.values, odds), horizon=compiled.table.horizon)


def composition_of(
    compiled: CompiledProperty, row: int, automaton: int, values: Values | None
) -> Composition | None:
    """Return what the risk of a product state is made of; None if it is the chain's as it is.

    `values`: values of all signals in slot order; without them, no score is known.
    """
    estimate, scored = compiled.estimate, compiled.scored
    if estimate is None or estimate.is_chain or compiled.table is None:
        return None
    odds = None if scored is None or values is None else scored.odds(values)
    pushes: tuple[Push, ...] = ()
    if scored is None or values is None or odds is None:
        risk = look_up(compiled, row, automaton).probability
        mixture, line = estimate.plain, estimate.calibration
        table, map_ = float(compiled.table.values[row, automaton]), None
    else:
        assert estimate.scored is not None
        risk = scored_risk(scored, row, automaton, odds).probability
        mixture, line = estimate.scored, estimate.scored_calibration
        table, map_ = float(scored.table.values[row, automaton]), scored.calibration
        pushes = tuple(
            Push(name, weight, log_odds)
            for name, (weight, log_odds) in zip(
                estimate.judged.scores, scored.terms(values), strict=True
            )
        )
    return Composition(
        tuple((part.base, line.slope * part.weight) for part in mixture.parts if part.weight),
        _logit(table),
        pushes,
        risk,
        map_ is not None,
        () if scored is None or pushes else estimate.judged.scores,
    )


def _logit(value: float) -> float:
    if not 0.0 < value < 1.0:
        return math.copysign(math.inf, value - 0.5) if value == value else math.nan
    return math.log(value) - math.log1p(-value)


def in_words(found: Composition) -> str:
    """Say what a risk is made of."""
    if math.isnan(found.table):
        return "the model has never seen this state"
    if math.isinf(found.table):
        truth = "certain" if found.table > 0 else "impossible"
        return f"automaton and graph decide it: a violation is {truth}, whatever is estimated"
    terms = [(found.table, f"the table ({_estimates(found.estimates)})", "")]
    terms += [(push.weight * push.log_odds, push.score, _times(push)) for push in found.pushes]
    # A score may do without any estimate.
    shown = terms if found.estimates or found.table else terms[1:]
    text = f"its log-odds {found.log_odds:+.2f} are "
    if len(shown) == 1:
        text += f"those of {shown[0][1]}{shown[0][2]}"
    else:
        text += " and ".join(f"{added:+.2f} of {what}{how}" for added, what, how in shown)
    if found.without:
        text += f", as it is while {' or '.join(found.without)} is unknown"
    return f"{text}, then calibrated" if found.calibrated else text


def _times(push: Push) -> str:
    return "" if push.weight == 1.0 else f" ({push.weight:.2f} times {push.log_odds:+.2f})"


def _estimates(found: tuple[tuple[str, float], ...]) -> str:
    if len(found) == 1:
        return found[0][0]
    return " + ".join(f"{weight:.2f} {name}" for name, weight in found)


def risk_facts(monitor: Monitor, verdict: Verdict, name: str) -> tuple[str, ...]:
    """Return a sentence about what the risk of a property is made of at a tick.

    None if it is the chain's as it is, or if there is no risk.
    """
    pairs = zip(monitor.properties, verdict.properties, strict=True)
    compiled, prop = next(pair for pair in pairs if pair[0].name == name)
    if not is_estimated(compiled) or monitor.model is None or prop.probability != prop.probability:
        return ()
    state = verdict.observation.state
    row = None if state is None else monitor.model.index.get(state)
    if prop.status is PropertyStatus.VIOLATED:
        return (f"the risk of {name} is 1, because it is violated: that is no estimate",)
    if prop.status is PropertyStatus.ENDED:
        return ()
    if not prop.in_model and compiled.estimate is not None:
        scores = " and ".join(compiled.estimate.judged.scores)
        return (f"the risk of {name} is by {scores} alone: the model has never seen this state",)
    if row is None or len(prop.automaton) != 1 or prop.status is PropertyStatus.UNKNOWN:
        return (f"the risk of {name} is the worst of all states that may be",)
    found = composition_of(compiled, row, prop.automaton[0], verdict.values)
    return () if found is None else (f"the risk of {name}: {in_words(found)}",)


SHOWN = 4
LONGEST = 24


def violation_values(
    monitor: Monitor, compiled: CompiledProperty, verdict: Verdict
) -> dict[str, Any]:
    """Return the signals that a property reads, with their values at a tick; None where unknown.

    Signals of atoms that hold come first, because a broken rule is mostly about what holds.
    """
    signals = monitor.abstraction.signals
    state, space = verdict.observation.state, monitor.abstraction.vocabulary
    atoms = sorted(
        compiled.automaton.atoms, key=lambda atom: state is None or not space.holds(atom, state)
    )
    spec = monitor.spec
    texts = [spec.predicates.get(atom) or spec.terminal.get(atom) or atom for atom in atoms]
    names = dict.fromkeys(name for text in texts for name in _names(text) if name in signals)
    return {name: verdict.values[signals.index(name)] for name in names}


def violation_facts(monitor: Monitor, verdict: Verdict, name: str) -> tuple[str, ...]:
    """Return a sentence about what a property that is violated at a tick saw."""
    pairs = zip(monitor.properties, verdict.properties, strict=True)
    compiled, prop = next(pair for pair in pairs if pair[0].name == name)
    if not prop.violation:
        return ()
    values = values_in_words(violation_values(monitor, compiled, verdict))
    return (f"{name} is violated: {values}",) if values else ()


@lru_cache(maxsize=1024)
def _names(text: str) -> tuple[str, ...]:
    return tuple(sorted(parse_expression(text).names))


def values_in_words(values: dict[str, Any]) -> str:
    """Return the values in one line: ``gap 0.31, speed 3.2``; empty without any."""
    shown = [f"{name} {_shown(value)}" for name, value in [*values.items()][:SHOWN]]
    return ", ".join(shown)


def _shown(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:.3g}" if math.isfinite(value) else str(value)
    text = repr(value) if isinstance(value, str) else f"{type(value).__name__} of {len(value)}"
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
