"""Division of a monitor file between the node and a bridge to another middleware.

The monitor node cannot read channels of Cyber RT. A bridge reads them and computes the signals that
depend on channels only. It sends the values that the node needs, by name. For the node these are
external signals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forewarn.config.signals import SignalSpec
from forewarn.errors import ConfigError
from forewarn.expressions.syntax import parse_expression
from forewarn.logic.parser import parse_formula
from forewarn.logic.syntax import atoms_of
from forewarn.signals.clock_kinds import clock_of

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec

DEFAULT_TIMEOUT = 1.0


@dataclass(frozen=True)
class Bridging:
    """A monitor file, divided between bridge and node."""

    # What the node runs: signals that the bridge sends are external. Models of the monitor file are
    # models of this one.
    node: MonitorSpec
    # Names of the signals that the bridge sends, and after how many seconds each is stale
    sent: Mapping[str, float]
    # The signals from channels that each sent signal depends on
    sources: Mapping[str, frozenset[str]]


def divide(spec: MonitorSpec) -> Bridging:
    """Divide a monitor file between bridge and node.

    Without channels there is nothing to send, and the node runs the file as it is.

    Raises ConfigError if the clock is steps, which a bridge cannot make.
    """
    roots = {name: _sources(spec, name, ()) for name in spec.signals}
    carried = {
        name: sources
        for name, sources in roots.items()
        if sources
        and all(spec.signals[source].channel is not None for source in sources)
        # What is remembered is counted in the node's moments.
        and not _remembers(spec, name, ())
    }
    mixed = {name for name in spec.signals if name not in carried and spec.signals[name].is_derived}
    needed = _used(spec).union(*(_inputs(spec, name) for name in mixed))
    sent = {name: sources for name, sources in carried.items() if name in needed}
    if not carried:
        return Bridging(spec, {}, {})
    if not clock_of(spec.rate).timed:
        raise ConfigError(
            "'steps': a bridge sends values when they change, which makes no steps",
            file=spec.file,
            key="clock",
            accepted="ticks, for signals from channels; topics of ROS; or recordings of Apollo",
        )
    timeouts = {
        name: min(timeout_of(spec.signals[source]) for source in sources)
        for name, sources in sent.items()
    }
    signals = {
        name: _external(signal, timeouts[name]) if name in sent else signal
        for name, signal in spec.signals.items()
        if name in sent or name not in carried
    }
    return Bridging(spec.derived(signals), timeouts, sent)


def timeout_of(signal: SignalSpec) -> float:
    """Return after how many seconds a sample of a signal is stale; infinite for never."""
    return DEFAULT_TIMEOUT if signal.timeout is None else signal.timeout


def _external(signal: SignalSpec, timeout: float) -> SignalSpec:
    return SignalSpec(
        timeout="never" if math.isinf(timeout) else timeout,  # type: ignore[arg-type]
        default=signal.default,
        unit=signal.unit,
        description=signal.description,
    )


def _inputs(spec: MonitorSpec, name: str) -> frozenset[str]:
    value = spec.signals[name].value
    if value is None or not spec.signals[name].is_derived:
        return frozenset()
    return parse_expression(value).names & spec.signals.keys()


def _sources(spec: MonitorSpec, name: str, above: tuple[str, ...]) -> frozenset[str]:
    """Return the signals that arrive on which a signal depends, itself if it arrives."""
    if not spec.signals[name].is_derived:
        return frozenset({name})
    inner = (needed for needed in _inputs(spec, name) if needed not in above)
    return frozenset().union(*(_sources(spec, needed, (*above, name)) for needed in inner))


def _remembers(spec: MonitorSpec, name: str, above: tuple[str, ...]) -> bool:
    """Tell whether a signal, or one that it depends on, depends on earlier moments."""
    value = spec.signals[name].value
    if value is None or not spec.signals[name].is_derived or name in above:
        return False
    expression = parse_expression(value)
    if expression.remembers or expression.names & spec.learned_score.keys():
        return True
    return any(_remembers(spec, needed, (*above, name)) for needed in _inputs(spec, name))


def _used(spec: MonitorSpec) -> set[str]:
    """Return the signals that predicates, labels, phases and formulas read themselves."""
    texts = [*spec.predicates.values(), *spec.terminal.values()]
    texts += [
        text for text in (spec.active_when, spec.intervened_when, spec.action) if text is not None
    ]
    for section in spec.properties.values():
        texts += atoms_of(parse_formula(section.formula))
    if spec.escape is not None:
        texts += spec.escape.conditions.values()
    names = {name for text in texts for name in parse_expression(text).names}
    for score in spec.learned_score.values():
        names |= {*spec.signals} if score.signals is None else {*score.signals}
    return (names | spec.bins.keys()) & spec.signals.keys()
