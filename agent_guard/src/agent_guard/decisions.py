"""What a guard decides about a call, and how it says so."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from forewarn.config.actions import ACTIONS, NO_ACTION

LONGEST_MESSAGE = 2_000
LONGEST_NAME = 80
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Proposal(NamedTuple):
    """A call that an agent wants to make.

    `tool`: name of the tool.
    `arguments`: its arguments; JSON as text is read.
    `id`: tells it from other calls of the run; may be empty.
    """

    tool: str
    arguments: Mapping[str, Any] | str
    id: str = ""


class Decision(NamedTuple):
    """The decision about a proposed call.

    `run`: the run or thread.
    `step`: number of the call in its run, from 0.
    `action`: what is asked for, of the one vocabulary: NONE, WARN, ASK, REPLACE, REPLAN, a stop.
    `active`: it is to be done. False where the monitor file only observes.
    `rule`: the rule that decided; empty if none did.
    `says`: what that rule says: its description, else its formula.
    `rules`: all rules that have something against the call.
    `certain`: the call breaks a rule for certain, whatever it returns.
    `unknown`: why it is not known of some rules whether the call breaks them.
    `risk`: figure of that rule, 0 to 1; NaN where there is none.
    `reason`: why, in one sentence.
    `evidence`: what that rests on.
    `recommendation`: the tool that was safest here, as far as was seen, by the monitor file's
        `shield`.
    `attempt`, `attempts`: how many reflections there were with this one, and how many there may be.
    `failure`: why the guard could not decide; empty if it could.
    `replacement`: the call to make instead.
    `held`: the call may be proposed again: one before it waits for a person.
    `waited`: seconds that the decision waited for each classifier.
    """

    run: str
    step: int
    proposal: Proposal
    action: str = NO_ACTION
    active: bool = False
    rule: str = ""
    says: str = ""
    rules: tuple[str, ...] = ()
    certain: bool = False
    unknown: tuple[str, ...] = ()
    risk: float = math.nan
    reason: str = ""
    evidence: tuple[str, ...] = ()
    recommendation: str = ""
    attempt: int = 0
    attempts: int = 0
    failure: str = ""
    replacement: Proposal | None = None
    held: bool = False
    waited: Mapping[str, float] = NOTHING

    @property
    def account(self) -> str:
        """Return why there is something against the call, or what is unknown, on one line."""
        return plain(self.reason or "; ".join(self.unknown), 500)

    @property
    def does(self) -> str:
        """Return what is done: pass, warn, ask, replace, reflect or stop."""
        return ACTIONS[self.action].agent or "stop" if self.active else "pass"

    @property
    def passes(self) -> bool:
        """Tell whether the proposed call is made as it is, without a question."""
        return self.does in ("pass", "warn")

    @property
    def message(self) -> str:
        """Return the message to the model in place of the result of a call that is not made.

        It quotes no argument and no result: these may hold instructions of a third party.
        """
        tool = plain(self.proposal.tool, LONGEST_NAME)
        parts = [f"Not done: the call of {tool!r} was stopped before it was made."]
        if self.held:
            return (
                f"Not done yet: the call of {tool!r} comes after one that waits for a person. "
                "Propose it again, if it is still wanted."
            )
        if self.failure:
            parts.append(f"The guard could not judge it: {plain(self.failure, 300)}.")
        if self.reason:
            parts.append(f"Why: {plain(self.reason, 500)}.")
        if self.says:
            rule = plain(self.says, 300).rstrip(".")
            parts.append(f"The rule: {rule}.")
        if self.risk == self.risk and not self.failure:
            parts.append(f"Risk: {self.risk:.2f}.")
        if self.evidence:
            parts.append(f"Evidence: {plain('; '.join(self.evidence), 500)}.")
        if self.recommendation:
            parts.append(f"Safest here, as far as was seen: {plain(self.recommendation, 80)!r}.")
        if self.does == "reflect":
            parts.append(
                "Do not repeat it. Find another way to do what the user asked, or tell the user "
                "why it is not done."
            )
            if self.attempts:
                parts.append(f"This is refusal {self.attempt} of {self.attempts}.")
        if self.does == "stop":
            parts.append("The run ends here.")
        return " ".join(parts)[:LONGEST_MESSAGE]


class GuardStopError(Exception):
    """A run was stopped: by an emergency stop, or in a loop that has no softer end.

    `decision`: what stopped it.
    """

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision.message)
        self.decision = decision


def describe(decision: Decision, made: bool) -> str:
    """Return a decision for a log, on one line."""
    what = "made" if made else "not made"
    if decision.replacement is not None:
        what = f"not made, but {plain(decision.replacement.tool, 80)}"
    tool = plain(decision.proposal.tool, 80) or "(end of the run)"
    why = decision.failure or decision.reason or "; ".join(decision.unknown)
    mode = decision.action if decision.active else f"{decision.action}, which is not active"
    return f"run {plain(decision.run, 80)}, step {decision.step}: {tool} {what}: {mode}: {why}"


Replace = Callable[[Decision], "Proposal | None"]
Arguments = Mapping[str, Any] | Callable[[Decision], Mapping[str, Any]]


def by_shield(tools: Mapping[str, Arguments]) -> Replace:
    """Return an option `replace`: the call that the shield recommends is made instead.

    The shield knows names of tools, and nothing of arguments.

    `tools`: tools that may be called so, with their arguments, or a function from decision to
        arguments. Where another tool is recommended, or none, the model gets a message.
    """

    def replace(decision: Decision) -> Proposal | None:
        arguments = tools.get(decision.recommendation)
        if arguments is None:
            return None
        given = arguments(decision) if callable(arguments) else arguments
        return Proposal(decision.recommendation, dict(given))

    return replace


def plain(text: object, most: int) -> str:
    """Return a text on one line, without control characters, cut where it is long."""
    line = re.sub(r"[^\S ]+|[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", str(text)[: 2 * most]).strip()
    return line if len(line) <= most else line[: most - 3] + "..."
