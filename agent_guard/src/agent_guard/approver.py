"""The guard as an approver of Inspect: it decides about each tool call of an evaluation.

In a policy file its name is ``agent_guard/guard``. What is remembered of a run is its conversation:
each decision goes through it once more, so that samples, epochs and forks do not know of each
other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from inspect_ai.approval import Approval, Approver, approver
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool
from inspect_ai.tool import ToolCall, ToolCallView

from agent_guard.decisions import Proposal
from agent_guard.guard import Guard
from agent_guard.outcomes import GuardError, JudgedCall, RunState


@approver(name="guard")
def guard_approver(
    rules: str, model: str | None = None, record: str | None = None, **options: Any
) -> Approver:
    """Return an approver that keeps to the rules of a monitor file.

    A call that passes is approved, one that a rule gives back is rejected with the reason, one that
    a person is to be asked about goes to the next approver, and a stop ends the sample. Inspect
    lets an approver change arguments, but not the tool: another tool in place of the proposed one
    is a rejection.

    `rules`: path of the monitor file.
    `model`: path of a learned model.
    `record`: a trace that the steps which the guard has approved are appended to.
    `**options`: see `agent_guard.options.Options`.

    Raises ForewarnError if the rules or the model cannot be loaded.
    """
    guard = Guard.open(rules, model, record=record, **options)

    async def approve(
        message: str, call: ToolCall, view: ToolCallView, history: list[ChatMessage]
    ) -> Approval:
        run = str(history[0].id) if history else "run"
        state = before(guard, run, call, history)
        twice = _same_ids(history, call)
        if twice > 1:
            error = GuardError(f"{twice} calls of one message have the id {call.id!r}")
            judged = guard.failed(state, run, _proposal(call), error)
        else:
            judged = guard.decide(state, run, _proposal(call))
        if judged.decision.does == "ask":
            return Approval(decision="escalate", explanation=judged.decision.message)
        settled = guard.settle(state, judged)
        if settled.stops:
            return Approval(decision="terminate", explanation=settled.message)
        if settled.call is None:
            return Approval(decision="reject", explanation=settled.message)
        made = settled.call
        if made.tool != call.function:
            said = f"{judged.decision.reason}; {made.tool!r} may be called instead"
            return Approval(decision="reject", explanation=said)
        guard.write(settled.decision, settled.values)
        if made.arguments == call.arguments:
            return Approval(decision="approve")
        other = ToolCall(call.id, call.function, _mapping(made.arguments))
        return Approval(decision="modify", modified=other, explanation=judged.decision.reason)

    return approve


def before(guard: Guard, run: str, call: ToolCall, history: Sequence[ChatMessage]) -> RunState:
    """Return what is remembered of a conversation before one of its calls.

    Some models give calls of several messages one id: the call is that of the last such message.
    """
    last = _message_of(history, call)
    state = guard.start()
    for number, message in enumerate(history):
        if message.role == "user":
            state = guard.add_user_message(state, message.text)._replace(refused=0)
        elif message.role == "assistant":
            results = _results(history[number + 1 :])
            for past in message.tool_calls or ():
                if number == last and past.id == call.id:
                    return state
                judged = guard.decide(state, run, _proposal(past))
                state = _after(guard, state, judged, results.get(past.id))
    return state


def _message_of(history: Sequence[ChatMessage], call: ToolCall) -> int | None:
    """Return the place of the message that makes a call; None if its last one was answered."""
    for number in reversed(range(len(history))):
        message = history[number]
        if isinstance(message, ChatMessageTool) and message.tool_call_id == call.id:
            return None
        if message.role == "assistant" and any(c.id == call.id for c in message.tool_calls or ()):
            return number
    return None


def _same_ids(history: Sequence[ChatMessage], call: ToolCall) -> int:
    """Return how many calls of the message that makes a call have its id."""
    place = _message_of(history, call)
    message = None if place is None else history[place]
    calls = message.tool_calls if isinstance(message, ChatMessageAssistant) else None
    return sum(other.id == call.id for other in calls or ())


def _results(later: Sequence[ChatMessage]) -> dict[str | None, ChatMessageTool]:
    """Return the results of a message's calls, by id: those before the model's next message."""
    answers = takewhile(lambda message: message.role != "assistant", later)
    return {m.tool_call_id: m for m in answers if isinstance(m, ChatMessageTool)}


def _after(
    guard: Guard, state: RunState, judged: JudgedCall, result: ChatMessageTool | None
) -> RunState:
    """Return what is remembered once a call was made, or not: its result says which."""
    if result is None:  # it runs beside the one in question
        passes = judged.decision.does in ("pass", "warn", "replace")
        return judged.made if passes else judged.refused
    kind = None if result.error is None else result.error.type
    if kind == "parsing":  # no approver was asked, and no tool was called
        return state
    if kind == "approval":
        return judged.refused
    return guard.answered(judged.made, result.text, True if kind else None)


def _proposal(call: ToolCall) -> Proposal:
    return Proposal(call.function, call.arguments, call.id)


def _mapping(arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    assert not isinstance(arguments, str)
    return dict(arguments)
