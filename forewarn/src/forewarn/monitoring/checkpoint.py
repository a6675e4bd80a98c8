"""What a monitor must not forget when it crashes: pending obligations, alerts, counts, mutes.

A memory is plain data that goes through JSON. Between its tick and the first tick afterwards
nothing was seen: those ticks count as unknown ones, so that an obligation that may have been broken
meanwhile is reported as possibly broken.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

from forewarn.errors import RecordingError
from forewarn.monitoring.intervention import AdvisorState
from forewarn.monitoring.live_session import Watch
from forewarn.monitoring.mutes import Mutes
from forewarn.monitoring.policy import RESTING, Level, PolicyState
from forewarn.monitoring.step import Monitor, MonitorState, PropertyState

Memory = dict[str, Any]


def remember(watch: Watch) -> Memory:
    """Return what a restart has to know; ``pending`` is false if no obligation or alert is."""
    state = watch.session.state
    properties = properties_data(state)
    fresh: list[Any] = [
        [[compiled.automaton.initial], False, list(RESTING)]
        for compiled in watch.monitor.properties
    ]
    for prop in properties:
        if prop[2][0] == Level.NONE:
            prop[2][1] = 0  # since when there is no alert is of no interest
    return {
        "key": key(watch.monitor),
        "tick": state.tick,
        "pending": properties != fresh or watch.advisor.asking,
        "properties": properties,
        "violations": list(watch.violations),
        "advisor": list(watch.advisor),
        "mutes": {name: None if math.isinf(end) else end for name, end in watch.mutes.ends.items()},
        "heard": dict(watch.mutes.heard),
        "reasons": watch.mutes.reasons(),
        "mode": watch.spec.mode,
    }


def properties_data(state: MonitorState) -> list[Any]:
    """Return where automata and policies stand, as plain data."""
    return [
        [list(prop.branches), prop.latched, [int(prop.policy.level), *prop.policy[1:]]]
        for prop in state.properties
    ]


def parse_properties(monitor: Monitor, data: Iterable[Any]) -> tuple[PropertyState, ...]:
    """Return what `properties_data` was made of; raises ValueError or TypeError."""
    properties = []
    for compiled, (branches, latched, policy) in zip(monitor.properties, data, strict=True):
        known = tuple(int(branch) for branch in branches)
        if not known or not all(0 <= q < len(compiled.live.following) for q in known):
            raise ValueError(f"automaton states {known} of {compiled.name}")
        found = PolicyState(*policy)._replace(level=Level(policy[0]))
        properties.append(PropertyState(known, bool(latched), found))
    return tuple(properties)


def key(monitor: Monitor) -> str:
    """Return a digest of all that gives a memory its meaning: states, rate, automata."""
    digest = hashlib.sha256(repr((monitor.abstraction.digest, monitor.spec.rate)).encode())
    for prop in monitor.properties:
        automaton = prop.automaton
        digest.update(repr((prop.name, automaton.initial, automaton.transitions.shape)).encode())
        digest.update(automaton.transitions.tobytes())
    return digest.hexdigest()


def recall(watch: Watch, memory: Mapping[str, Any], first: int, oldest: float = math.inf) -> None:
    """Go on where a former life of the monitor ended.

    Parameters
    ----------
    watch : Watch
        The new life, before its first tick.
    memory : mapping
        What `remember` returned.
    first : int
        The next tick.
    oldest : float
        Ticks after which a memory counts no more.

    Raises
    ------
    RecordingError
        If the memory belongs to another monitor file, is too old, lies in the future, or makes no
        sense; then nothing has changed.
    """
    try:
        if memory["key"] != key(watch.monitor):
            raise RecordingError("the memory belongs to another monitor file")
        tick = memory["tick"]
        if tick is not None and not watch.session.clock.regular:
            raise RecordingError(
                f"the memory of step {tick}: steps begin anew, nobody knows how many"
            )
        if tick is not None and not 0 < first - tick <= oldest:
            raise RecordingError(
                f"the memory of tick {tick} is {first - tick} ticks old (accepted: 1 to {oldest})"
            )
        state = _state(watch.monitor, memory, first)
        violations = [int(violation) for violation in memory["violations"]]
        episodes, asking = memory["advisor"]
        advisor = AdvisorState(int(episodes), bool(asking))
        mutes = {
            str(name): math.inf if end is None else float(end)
            for name, end in memory["mutes"].items()
        }
        heard = {str(name): int(tick) for name, tick in memory.get("heard", {}).items()}
        reasons = {str(name): str(why) for name, why in memory.get("reasons", {}).items()}
        if memory.get("mode", watch.spec.mode) != watch.spec.mode:
            # Whoever only observed has asked for nothing: a chain of escalation begins now.
            heard = dict.fromkeys(watch.names, first)
        known = set(watch.names)
        if len(violations) != len(known) or not mutes.keys() | heard.keys() <= known:
            raise ValueError("it knows other properties")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(f"the memory makes no sense: {error!r}") from error
    watch.recall(state, violations, advisor, Mutes(mutes, watch.mutes.waiting, heard, reasons))


def _state(monitor: Monitor, memory: Mapping[str, Any], first: int) -> MonitorState:
    if not memory["pending"]:
        return monitor.start()
    properties = parse_properties(monitor, memory["properties"])
    tick = int(memory["tick"])
    return MonitorState(tick, first, False, properties, monitor.abstraction.nothing_seen(tick))
