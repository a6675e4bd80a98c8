"""Ways out: whether a robot that is being stopped may move out of its place.

This module only decides which ways are clear. The gate decides which of the planner's commands
pass, and for how far. All ways are denied if anything about the stop or the moment is unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from forewarn.config.actions import ACTIONS
from forewarn.config.actuators import Ways
from forewarn.monitoring.policy import Level
from forewarn.monitoring.risk_rows import UNKNOWN, RiskRow

if TYPE_CHECKING:
    from forewarn.monitoring.intervention import Intervention
    from forewarn.monitoring.verdict import Verdict
    from forewarn.states.condition import Condition

SAID = {"reverse": "back away", "turn": "turn in place"}


def with_way_out(
    request: Intervention,
    conditions: Mapping[str, Condition],
    before: int | None,
    verdict: Verdict,
    rows: Sequence[RiskRow],
    muted: Collection[str],
) -> Intervention:
    """Return the request with which ways out are clear, and why not; others as they are.

    `before`: the tick that was evaluated before; None if there was none.
    """
    action = ACTIONS[request.action]
    if not action.stops or action.drives_on:
        return request
    denial = _denial(before, verdict, rows, muted)
    if denial:
        return request._replace(evidence=(*request.evidence, f"no way out: {denial}"))
    clear, reasons = Ways(), []
    for name, condition in conditions.items():
        denial = condition.denial(verdict.values)
        may = f"may {'not ' if denial else ''}{SAID[name]}"
        reasons.append(f"{may}: {denial or condition.text}")
        clear = clear._replace(**{name: request.active and not denial})
    return request._replace(escape=clear, evidence=(*request.evidence, *reasons))


def _denial(
    before: int | None, verdict: Verdict, rows: Sequence[RiskRow], muted: Collection[str]
) -> str:
    """Return the first reason against any way out; empty without one."""
    if muted:
        return f"{', '.join(sorted(muted))} is muted"
    if before is None or verdict.tick != before + 1:
        return "the tick before is missing"
    observation = verdict.observation
    if observation.active is not True or observation.state is None or observation.ended:
        return "the state is not known"
    for row in rows:
        if row.level != Level.ACT:
            continue
        if not row.in_model:
            return f"{row.property}: the model has never seen this state"
        if row.verdict == UNKNOWN:
            return f"{row.property}: pending obligations are not known"
    return ""
