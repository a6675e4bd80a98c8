"""The memory that survives a crash: obligations, alerts, counts, mutes and the present run.

A memory is plain data that can be written as JSON. The ticks between the memory and the restart
count as unknown. So an obligation that may have been violated meanwhile is reported as possibly
violated.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from forewarn.errors import RecordingError
from forewarn.monitoring.branches import Breach
from forewarn.monitoring.evaluate import Memory, Mutes
from forewarn.monitoring.intervention import AdvisorState
from forewarn.monitoring.policy import RESTING, Level, PolicyState, carried_over
from forewarn.monitoring.property_step import PropertyState
from forewarn.monitoring.step import Monitor, MonitorState

if TYPE_CHECKING:
    from forewarn.monitoring.belief import Belief
    from forewarn.monitoring.live_session import LiveSession
    from forewarn.monitoring.run_anomaly import Detector, RunState

Data = dict[str, Any]
"""A memory as plain data."""


def remember(watch: LiveSession) -> Data:
    """Return what a restart has to know; ``pending`` is false if no obligation or alert is.

    A breach that has not cleared is pending, too, or the next life would count it again.

    Where runs are watched for anomalies, it is another one after every tick.
    """
    state, _, advisor, mutes = watch.memory
    properties = properties_data(state)
    for prop in properties:
        if prop[2][0] == Level.NONE:
            prop[2][1] = 0  # since when there is no alert is of no interest
    pending = any(
        prop[:3] != [[initial], False, list(RESTING)]
        or prop[4] is not None
        # A belief that no obligation is pending is of no interest either.
        or any(branch != initial for _, branch, _ in prop[3])
        for prop, initial in zip(
            properties, (prop.automaton.initial for prop in watch.monitor.properties), strict=True
        )
    )
    return {
        "key": key(watch.monitor),
        "names": list(watch.names),
        "tick": state.tick,
        "pending": pending or advisor.asking,
        "properties": properties,
        "violations": list(watch.memory.violations),
        "advisor": list(advisor),
        "mutes": {name: None if math.isinf(end) else end for name, end in mutes.ends.items()},
        "heard": dict(mutes.heard),
        "reasons": mutes.reasons(),
        "mode": watch.spec.mode,
        "run": run_data(watch.monitor.detector, state.run),
    }


def run_data(detector: Detector | None, run: RunState | None) -> Data | None:
    """Return how far the run is that is watched for anomalies, as plain data; None if none is."""
    return None if detector is None or run is None else detector.dump(run)


def parse_run(monitor: Monitor, data: Mapping[str, Any] | None) -> RunState | None:
    """Return what `run_data` was made of, None if another calibration judges runs now.

    Raises ValueError, TypeError or KeyError if it makes no sense.
    """
    if data is None or monitor.detector is None:
        return None
    return monitor.detector.load(data, monitor.abstraction.vocabulary)


def properties_data(state: MonitorState) -> list[Any]:
    """Return where automata, policies and beliefs stand, as plain data."""
    return [
        [
            list(prop.branches),
            prop.latched,
            [int(prop.policy.level), *prop.policy[1:]],
            [list(entry) for entry in prop.belief],
            None if prop.breach is None else list(prop.breach),
        ]
        for prop in state.properties
    ]


def parse_properties(monitor: Monitor, data: Iterable[Any]) -> tuple[PropertyState, ...]:
    """Return what `properties_data` was made of; raises ValueError or TypeError."""
    properties = []
    for compiled, (branches, latched, policy, believed, broken) in zip(
        monitor.properties, data, strict=True
    ):
        known = tuple(int(branch) for branch in branches)
        belief, breach = _belief(believed), None
        if broken is not None:
            quiet, terminal, obliged = broken
            breach = Breach(int(quiet), bool(terminal), bool(obliged))
        if not known or not all(
            0 <= q < len(compiled.live.following) for q in (*known, *(q for _, q, _ in belief))
        ):
            raise ValueError(f"automaton states {known} of {compiled.name}")
        found = PolicyState(*policy)._replace(level=Level(policy[0]))
        asked = monitor.fresh(compiled).belief
        properties.append(
            PropertyState(known, bool(latched), found, belief or asked if asked else (), breach)
        )
    return tuple(properties)


def _belief(data: Iterable[Any]) -> Belief:
    found = tuple(
        (None if code is None else int(code), int(branch), float(probability))
        for code, branch, probability in data
    )
    if found and not (
        all(probability > 0 for *_, probability in found)
        and math.isclose(math.fsum(probability for *_, probability in found), 1.0)
    ):
        raise ValueError("a belief whose probabilities do not add up to 1")
    return found


def key(monitor: Monitor) -> str:
    """Return a digest of all that gives a memory its meaning: states, rate, automata."""
    digest = hashlib.sha256(repr((monitor.abstraction.digest, monitor.spec.rate)).encode())
    for prop in monitor.properties:
        automaton = prop.automaton
        digest.update(repr((prop.name, automaton.initial, automaton.transitions.shape)).encode())
        digest.update(automaton.transitions.tobytes())
    return digest.hexdigest()


def recall(
    watch: LiveSession, memory: Mapping[str, Any], first: int, oldest: float = math.inf
) -> None:
    """Go on where a former life of the monitor ended.

    `oldest`: ticks after which a memory counts no more.

    Raises RecordingError if the memory belongs to another monitor file, is too old, lies in the
    future, or makes no sense; then nothing has changed.
    """
    try:
        if memory["key"] != key(watch.monitor):
            raise RecordingError("the memory belongs to another monitor file")
        tick = memory["tick"]
        if tick is not None and not watch.clock.regular and not memory.get("outdated"):
            raise RecordingError(
                f"the memory of step {tick}: steps start again, and those in between are not "
                f"counted"
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
        heard = {str(name): int(tick) for name, tick in memory["heard"].items()}
        reasons = {str(name): str(why) for name, why in memory["reasons"].items()}
        if memory["mode"] != watch.spec.mode:
            # A monitor that only observed has asked for nothing: a chain of escalation begins now.
            heard = dict.fromkeys(watch.names, first)
        known = set(watch.names)
        if len(violations) != len(known) or not mutes.keys() | heard.keys() <= known:
            raise ValueError("it knows other properties")
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(f"the memory makes no sense: {error!r}") from error
    waiting = watch.memory.mutes.waiting
    watch.memory = Memory(state, violations, advisor, Mutes(mutes, waiting, heard, reasons))


def asking(memory: Mapping[str, Any]) -> dict[str, PolicyState]:
    """Return the alerts by which a memory's monitor asked a planner for something, by property.

    Alerts that were muted are not among them. The properties are those of its monitor file.

    Raises RecordingError if the memory makes no sense.
    """
    try:
        if not memory["pending"] or not memory["advisor"][1] or memory["mode"] != "act":
            return {}
        policies = {
            str(name): PolicyState(*policy)._replace(level=Level(policy[0]))
            for name, (_, _, policy, *_) in zip(memory["names"], memory["properties"], strict=True)
        }
        muted = memory["mutes"].keys()
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(f"the memory makes no sense: {error!r}") from error
    return {name: policy for name, policy in policies.items() if policy.level and name not in muted}


def outdated(
    watch: LiveSession, memory: Mapping[str, Any], asked: Mapping[str, PolicyState], first: int
) -> Data | None:
    """Return what a memory still tells, however old it is: that alerts had not ended.

    Their end was not seen. So they go on as after a jump of the clock, and end by their rules;
    see `policy.carried_over`. In another monitor file, those go on whose property is still there,
    by its rules: they have lasted as many moments as before. Obligations, counts, mutes and the run
    are forgotten, and alerts that were muted.

    Returns a memory of the tick before `first`; None if nothing was asked for that goes on.

    Raises RecordingError if the memory makes no sense.
    """
    if not asked.keys() & set(watch.names):
        return None
    try:
        shift = first - 1 - int(memory["tick"])
        heard = {
            str(name): int(at) + shift
            for name, at in memory["heard"].items()
            if name in watch.names
        }
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(f"the memory makes no sense: {error!r}") from error
    held = watch.monitor.start()
    held = held._replace(
        properties=tuple(
            fresh._replace(policy=carried_over(compiled.rules, asked[compiled.name], shift))
            if compiled.name in asked
            else fresh
            for compiled, fresh in zip(watch.monitor.properties, held.properties, strict=True)
        )
    )
    return {
        **memory,
        "key": key(watch.monitor),
        "names": list(watch.names),
        "tick": first - 1,
        "outdated": True,
        "properties": properties_data(held),
        "violations": [0] * len(watch.names),
        "mutes": {},
        "heard": heard,
        "reasons": {},
        "run": None,
    }


def _state(monitor: Monitor, memory: Mapping[str, Any], first: int) -> MonitorState:
    run = parse_run(monitor, memory["run"])
    if not memory["pending"]:
        return monitor.start()._replace(run=run)
    properties = parse_properties(monitor, memory["properties"])
    tick = int(memory["tick"])
    past = monitor.abstraction.nothing_seen(tick)
    return MonitorState(tick, first, False, properties, past, run)
