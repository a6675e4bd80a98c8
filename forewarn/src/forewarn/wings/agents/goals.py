"""Goals that clients send to action servers: what the rules say of one before it is passed on.

A goal arrives as a message on a topic of its own does, at the next moment that is evaluated. That
moment is evaluated with the goal and without: what only the goal brings about speaks against it. If
it is not passed on it has not arrived, and what is remembered stays as it was.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING

from forewarn.config.actions import ACTIONS, REPLAN, SEVERITY, WARN
from forewarn.errors import DecodeError
from forewarn.monitoring.evaluate import EvaluatedTick, evaluate
from forewarn.monitoring.intervention import reason_of
from forewarn.monitoring.policy import Level
from forewarn.monitoring.risk_rows import RiskRow, compared
from forewarn.monitoring.session_events import GoalDecided, encode
from forewarn.states.inputs import verdicts
from forewarn.wings.agents.proposals import Judge, Judgement, RuleState, violated
from forewarn.wings.agents.steps import Progress
from forewarn.wings.agents.unknowns import possibly_broken

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.monitoring.live_session import LiveSession

NOW = "this goal breaks the rule"
WHATEVER = "this goal breaks the rule, whatever happens next"
PASSING = ("none", "tell", "limit")
"""Effects of what is asked for that no goal has to wait for: a limit of speed is for others."""
LARGEST = 1_000_000
"""Bytes of a goal that is judged, and recorded with its judgement."""
LONGEST = 500


def refuses(judgement: Judgement) -> bool:
    """Tell whether a goal is not to be passed on."""
    effect = ACTIONS[judgement.action].effect
    return judgement.active and (judgement.certain or effect not in PASSING)


def judge_goal(watch: LiveSession, tick: int, topic: str, payload: bytes) -> Judgement:
    """Say what the rules have against a goal that would arrive at a tick, and remember nothing.

    `watch`: the session, before the tick.
    `tick`: the next tick.
    `topic`: the goal's topic, `GuardSpec.topic`.
    `payload`: the goal, serialized.

    Raises DecodeError if the goal is too large, or cannot be read.
    """
    if len(payload) > LARGEST:
        raise DecodeError(f"a goal of {len(payload)} bytes (accepted: up to {LARGEST})")
    monitor, feed = watch.monitor, watch.feed
    judge, memory = Judge(monitor), watch.memory
    snapshot = feed.snapshot(tick)
    without = evaluate(monitor, judge.chains, memory, snapshot)
    proposed, given = feed.proposing(snapshot, topic, payload)
    evaluated = evaluate(monitor, judge.chains, memory, proposed)
    nothing = [None] * len(given)
    ahead = _broken(judge, evaluated, given, WHATEVER)
    anyway = _broken(judge, without, nothing, "")
    silent = {*anyway, *watch.muted}
    broken = {name: why for name, why in ahead.items() if name not in silent}
    after = RuleState(Progress(), evaluated.memory)
    values = dict(zip(monitor.abstraction.signals, evaluated.result.verdict.values, strict=True))
    possible = _unknown(judge, evaluated)
    unknown = {name: why for name, why in possible.items() if name not in silent}
    for name in _unknown(judge, without):
        unknown.pop(name, None)
    found = judge.judgement(evaluated, broken, values, after, unknown)
    for row, before in zip(evaluated.result.rows, without.result.rows, strict=True):
        if _acts(judge, row) and not _acts(judge, before) and row.property not in broken:
            found = _with_risk(judge, found, row)
    findings = verdicts(monitor.spec, monitor.abstraction.signals, evaluated.result.verdict.values)
    facts = tuple(f"{name}: {text}" for name, text in findings.items() if text)
    return found._replace(evidence=tuple(dict.fromkeys((*found.evidence, *facts))))


def decision(guard: str, topic: str, tick: int, payload: bytes, found: Judgement) -> GoalDecided:
    """Return what was decided about a goal, for records."""
    return GoalDecided(
        guard,
        topic,
        tick,
        b64encode(payload).decode(),
        not refuses(found),
        found.action,
        found.active,
        found.property,
        found.certain,
        found.risk,
        found.reason,
    )


def undecided(
    guard: str, topic: str, tick: int, payload: bytes, failure: str, *, passes: bool
) -> GoalDecided:
    """Return what becomes of a goal that could not be judged."""
    goal = b64encode(payload).decode() if len(payload) <= LARGEST else ""
    action, reason = (WARN if passes else REPLAN), "the guard could not judge the goal"
    return GoalDecided(
        guard, topic, tick, goal, passes, action, True, "", False, nan, reason, failure
    )


def again(watch: LiveSession, event: GoalDecided) -> list[str]:
    """Judge a goal of a record once more, and return what is not as it was, to the last bit.

    Where the type of processor has a part in conditions nothing is judged: the record holds what
    was observed at ticks, and a goal is judged before its tick.
    """
    if event.failure is not None or watch.monitor.abstraction.by_platform:
        return []
    payload = b64decode(event.goal)
    found = judge_goal(watch, event.tick, event.topic, payload)
    same = decision(event.guard, event.topic, event.tick, payload, found)
    if encode(same) == encode(event):
        return []
    return [f"what guards.{event.guard} decided about a goal"]


def goal_reason(spec: MonitorSpec, found: Judgement) -> str:
    """Return in words why a goal is refused: the reason, the rule, what rests on plans."""
    section = spec.properties.get(found.property)
    says = "" if section is None else section.description or section.formula
    parts = (found.reason, says and f"the rule: {says.rstrip('.')}", *found.evidence)
    return "; ".join(part for part in parts if part)[:LONGEST]


def _broken(
    judge: Judge, evaluated: EvaluatedTick, values: Sequence[object], whatever: str
) -> dict[str, str]:
    """Return what is violated now, or one moment later whatever else is observed then."""
    later = judge.monitor.broken_by(evaluated.memory.state, values)
    now = violated(evaluated.result.verdict)
    return {**dict.fromkeys(later, whatever), **dict.fromkeys(now, NOW)}


def _unknown(judge: Judge, evaluated: EvaluatedTick) -> dict[str, str]:
    return possibly_broken(judge.monitor, evaluated.result.verdict, gap=False)


def _acts(judge: Judge, row: RiskRow) -> bool:
    """Tell whether a risk asks to act: at once, for a goal is decided about once."""
    section = judge.monitor.spec.properties[row.property]
    if row.muted:
        return False
    if not row.in_model and judge.monitor.model is not None:
        by_scores = section.risk_measure == "risk" and row.probability >= section.thresholds.act
        return section.out_of_model == "act" or by_scores
    return compared(row) >= section.thresholds.act


def _with_risk(judge: Judge, found: Judgement, row: RiskRow) -> Judgement:
    action = judge.monitor.spec.properties[row.property].intervention
    properties = tuple(dict.fromkeys((*found.properties, row.property)))
    if SEVERITY.index(action) <= SEVERITY.index(found.action):
        return found._replace(properties=properties)
    return found._replace(
        action=action,
        active=judge.monitor.spec.mode == "act",
        property=row.property,
        properties=properties,
        risk=compared(row),
        reason=reason_of(row._replace(level=Level.ACT), judge.monitor.clock),
        evidence=(f"state: {row.state}",),
    )
