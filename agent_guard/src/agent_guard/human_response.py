"""What a person answered, who was asked about a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from agent_guard.decisions import Decision, Proposal, plain

ACCEPTED = "True, False, {'type': 'approve' | 'reject' | 'edit', 'message': ..., 'args': {...}}"


class HumanResponse(NamedTuple):
    """An answer that was understood, or one that was not, which refuses.

    `kind`: ``approve``, ``reject``, or ``edit``.
    `message`: what the person says of it.
    `proposal`: the call as it was edited.
    """

    kind: Literal["approve", "reject", "edit"]
    message: str = ""
    proposal: Proposal | None = None


def question(decision: Decision) -> dict[str, Any]:
    """Return what a person is asked, as plain data."""
    proposal = decision.proposal
    arguments = proposal.arguments
    return {
        "question": f"May the agent call {plain(proposal.tool, 80)}?",
        "tool": proposal.tool,
        "args": arguments if isinstance(arguments, str) else dict(arguments),
        "run": decision.run,
        "step": decision.step,
        "rule": decision.rule,
        "reason": decision.reason,
        "risk": None if decision.risk != decision.risk else decision.risk,
        "evidence": list(decision.evidence),
        "answers": ACCEPTED,
    }


def read_answer(answer: object, proposal: Proposal) -> HumanResponse:
    """Return what an answer means; one that is not understood refuses the call."""
    if answer is None:
        return HumanResponse("reject", "no answer")
    if isinstance(answer, bool):
        return HumanResponse("approve" if answer else "reject")
    fields: Mapping[str, Any] = {"type": answer} if isinstance(answer, str) else {}
    if isinstance(answer, Mapping):
        fields = answer
    decisions = fields.get("decisions")  # as LangChain's HumanInTheLoopMiddleware is answered
    if isinstance(decisions, (list, tuple)) and len(decisions) == 1:
        fields = decisions[0] if isinstance(decisions[0], Mapping) else {}
    kind = fields.get("type")
    if kind in ("approve", "reject"):
        return HumanResponse(kind, str(fields.get("message") or ""))
    if kind == "edit":
        edited = fields.get("edited_action", fields)
        args = edited.get("args") if isinstance(edited, Mapping) else None
        if isinstance(args, Mapping):
            tool = str(edited.get("name") or proposal.tool)
            return HumanResponse("edit", "", Proposal(tool, dict(args), proposal.id))
    return HumanResponse("reject", f"the answer was not understood; accepted: {ACCEPTED}")
