"""The guard as middleware of LangChain agents, and as the tool node of a LangGraph.

What is remembered lies in the agent's state, under ``forewarn``, and nowhere else: a checkpointer
keeps it, and threads do not know of each other. `turns` says why a call that is begun again after a
pause does not count twice.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import (
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import AgentState, ModelResponse, PrivateStateAttr
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, convert_to_messages
from langchain_core.runnables.config import set_config_context
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, interrupt
from typing_extensions import NotRequired

from agent_guard.decisions import NOTHING, GuardStopError, Proposal, plain
from agent_guard.guard import SAY, Guard
from agent_guard.human_response import question
from agent_guard.outcomes import RunState, Settled
from agent_guard.turns import Kept, Turn, begin, ended, gathered, merged, named, over
from forewarn.config.actions import ACTIONS
from forewarn.errors import ConfigError
from forewarn.wings.agents.texts import says_failed, text_of

log = logging.getLogger("agent_guard")
KEY = "forewarn"
OF_A_TOOL = "of a tool"
"""Marks a message in a user's name that a tool has returned."""
Context = Callable[[Any], Mapping[str, Any]]


class GuardState(AgentState[Any]):
    """State of an agent with what the guard remembers; plain data."""

    forewarn: NotRequired[Annotated[Kept, PrivateStateAttr, merged]]  # type: ignore[valid-type]


class _GraphStopError(GuardStopError, GraphBubbleUp):
    """A stop that `handle_tool_errors` does not turn into an answer of the tool."""


class GuardMiddleware(AgentMiddleware[Any, Any, Any]):
    """Decides about each call of a tool before it is made.

    `context`: from the agent's state to values of other signals that the monitor file names.
    `answers`: judge what the agent says at the end, too: to the rules it is a call of the tool
        `say` with the argument `text`. What is refused is replaced by the message that says why.
    """

    state_schema = GuardState

    def __init__(
        self, guard: Guard, context: Context | None = None, *, answers: bool = False
    ) -> None:
        super().__init__()
        self.guard = guard
        self._context = context
        self._answers = answers
        self.tools: list[Any] = []

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]
    ) -> Any:
        """Decide about a call; make it, another one, or none."""
        turn, context = self._begin(request)
        answer = None
        if turn.judged.decision.does == "ask":
            answer = interrupt(question(turn.judged.decision))
        settled = self._settle(turn, answer, context)
        if settled.call is None:
            return self._refusal(turn, settled, request)
        return self._result(turn, settled, handler(_calling(request, settled.call)), request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Do the same in an event loop."""
        turn, context = self._begin(request)
        answer = None
        if turn.judged.decision.does == "ask":
            # Before Python 3.11 a task does not inherit the context that `interrupt` looks for.
            with set_config_context(request.runtime.config) as inside:
                answer = inside.run(interrupt, question(turn.judged.decision))
        settled = self._settle(turn, answer, context)
        if settled.call is None:
            return self._refusal(turn, settled, request)
        result = await handler(_calling(request, settled.call))
        return self._result(turn, settled, result, request)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Answer in the model's place where the run is to end."""
        stopped = self._stopped(request.state)
        return handler(request) if stopped is None else stopped

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Do the same in an event loop."""
        stopped = self._stopped(request.state)
        return await handler(request) if stopped is None else stopped

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Evaluate the step after the last call."""
        kept, messages = _field(state, KEY), _messages(state)
        info = getattr(runtime, "execution_info", None)
        place = getattr(info, "thread_id", None), getattr(info, "checkpoint_ns", None)
        run, within = _run_of(kept, *place, messages)
        context, problem = self._other_signals(state)
        if problem:
            log.error(
                "run %s: its end is judged without other signals: %s", plain(run, 80), problem
            )
        known = self.guard.heard(gathered(self.guard, kept), _user_messages(messages))
        known, refusal = self._judge_answer(known, run, messages, context)
        update, _ = over(self.guard, known, run, context)
        return {KEY: {**update, "within": within}, "messages": refusal}

    def _judge_answer(
        self, state: RunState, run: str, messages: Sequence[Any], context: Mapping[str, Any]
    ) -> tuple[RunState, list[AIMessage]]:
        """Judge the last message; return what is remembered, and what is said in its place."""
        last = messages[-1] if messages else None
        if not self._answers or not isinstance(last, AIMessage) or last.tool_calls:
            return state, []
        proposal = Proposal(SAY, {"text": text_of(last.content)})
        judged = self.guard.decide(state, run, proposal, context)
        asks = judged.decision.does == "ask"
        answer = interrupt(question(judged.decision)) if asks else None
        settled = self.guard.settle(state, judged, answer, context)
        if settled.stops and ACTIONS[settled.decision.action].hard:
            raise _GraphStopError(settled.decision)
        if settled.call is None:
            return settled.state, [AIMessage(content=settled.message, id=last.id)]
        self.guard.write(settled.decision, settled.values)
        return self.guard.answered(settled.state, "", False), []

    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Do the same in an event loop."""
        return self.after_agent(state, runtime)

    def _begin(self, request: ToolCallRequest) -> tuple[Turn, Mapping[str, Any]]:
        state, call = request.state, request.tool_call
        messages = _messages(state)
        place = _among(messages, call)
        config, kept = request.runtime.config.get("configurable", {}), _field(state, KEY)
        within = config.get("checkpoint_ns")
        run, within = _run_of(kept, config.get("thread_id"), within, messages)
        context, problem = self._other_signals(state)
        turn = begin(
            self.guard, kept, run, place.name, place.proposals, place.number,
            _user_messages(messages), context, place.problem or problem,
        )  # fmt: skip
        return turn._replace(within=within), context

    def _other_signals(self, state: Any) -> tuple[Mapping[str, Any], str]:
        """Return the signals of the function `context`, and its error; empty without one."""
        try:
            return NOTHING if self._context is None else self._context(state), ""
        except Exception as error:
            return NOTHING, f"the function `context` failed: {type(error).__name__}: {error}"

    def _settle(self, turn: Turn, answer: object, context: Mapping[str, Any]) -> Settled:
        settled = self.guard.settle(turn.state, turn.judged, answer, context)
        if settled.stops and ACTIONS[settled.decision.action].hard:
            raise _GraphStopError(settled.decision)
        return settled

    def _refusal(self, turn: Turn, settled: Settled, request: ToolCallRequest) -> Any:
        message = ToolMessage(
            content=settled.message,
            tool_call_id=request.tool_call["id"] or "",
            name=request.tool_call["name"],
            status="error",
        )
        return Command(
            update={"messages": [message], KEY: ended(self.guard, turn, settled, "", True)}
        )

    def _result(self, turn: Turn, settled: Settled, result: Any, request: ToolCallRequest) -> Any:
        self.guard.write(settled.decision, settled.values)
        known = {message.id: message for message in _messages(request.state)}
        given = result if isinstance(result, list) else [result]
        outcomes = [_of_tools(outcome, known) for outcome in given]
        added = [m for m in _all_messages(outcomes) if not _is_known(m, known)]
        answer = _answer(added, request.tool_call["id"])
        contents = [message.content for message in added if message.content]
        content = contents[0] if len(contents) == 1 else contents or ""
        failed = answer is not None and (answer.status == "error" or says_failed(content))
        update = {KEY: ended(self.guard, turn, settled, content, failed)}
        if len(outcomes) == 1 and isinstance(outcomes[0], ToolMessage):
            return Command(update={"messages": outcomes, **update})
        return [*outcomes, Command(update=update)]

    def _stopped(self, state: Any) -> ModelResponse[Any] | None:
        if not is_stopped(state):
            return None
        reason = gathered(self.guard, _field(state, KEY)).stopped
        return ModelResponse(result=[AIMessage(content=reason)])


def guarded_tools(
    guard: Guard, tools: Sequence[Any], context: Context | None = None, **options: Any
) -> ToolNode:
    """Return the node of a graph that makes the calls of tools, under a guard.

    The graph's state must have the key ``forewarn`` as `GuardState` has it. `is_stopped` tells
    whether the run is to end.

    `tools`: as for `ToolNode`.
    `context`: as for `GuardMiddleware`.
    `**options`: as for `ToolNode`, without another ``messages_key``.

    Raises ConfigError if the messages are to lie under another key, where the guard does not look.
    """
    key = options.get("messages_key", "messages")
    if key != "messages":
        raise ConfigError(f"{key!r}", key="messages_key", accepted="messages")
    middleware = GuardMiddleware(guard, context)
    return ToolNode(
        tools,
        wrap_tool_call=middleware.wrap_tool_call,
        awrap_tool_call=middleware.awrap_tool_call,
        **options,
    )


def is_stopped(state: Any) -> bool:
    """Tell whether a guard has stopped the run whose state this is."""
    kept = _field(state, KEY)
    return bool(kept) and any(outcome["stopped"] for outcome in kept["done"].values())


def _field(state: Any, name: str) -> Any:
    return state.get(name) if isinstance(state, Mapping) else getattr(state, name, None)


def _messages(state: Any) -> Sequence[Any]:
    return state if isinstance(state, list) else _field(state, "messages") or []


class Place(NamedTuple):
    """Where a call stands: all calls of its message, which of them it is, the message's name."""

    proposals: list[Proposal]
    number: int
    name: str
    problem: str = ""


def _among(messages: Sequence[Any], call: Mapping[str, Any]) -> Place:
    for message in reversed(messages):
        calls = getattr(message, "tool_calls", None) or []
        at = [i for i, other in enumerate(calls) if _same(other, call)]
        if len(at) > 1:
            problem = f"{len(at)} calls of one message have the id {call.get('id')!r}"
            return Place([_proposal(call)], 0, _name(message, calls), problem)
        if at:
            proposals = [_proposal(other) for other in calls]
            proposals[at[0]] = _proposal(call)  # another middleware may have changed it
            return Place(proposals, at[0], _name(message, calls))
    return Place([_proposal(call)], 0, f"call {call.get('id')}")


def _name(message: Any, calls: Sequence[Mapping[str, Any]]) -> str:
    """Return the name of a message: another one may have its id."""
    calls_text = repr([(call.get("id"), call["name"], call["args"]) for call in calls])
    return f"{message.id} {hashlib.sha256(calls_text.encode(errors='replace')).hexdigest()[:16]}"


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if one.get("id") or other.get("id"):
        return bool(one.get("id") == other.get("id"))
    return bool(one["name"] == other["name"] and one["args"] == other["args"])


def _proposal(call: Mapping[str, Any]) -> Proposal:
    return Proposal(call["name"], call["args"], call.get("id") or "")


def _user_messages(messages: Sequence[Any]) -> list[tuple[str, object]]:
    """Return names and contents of the user's messages.

    Summaries by a model, and messages that a tool has put there, are not the user's.
    """
    return [
        (str(message.id), message.content)
        for message in messages
        if isinstance(message, HumanMessage)
        and message.additional_kwargs.get("lc_source") != "summarization"
        and message.additional_kwargs.get(KEY) != OF_A_TOOL
    ]


def _run_of(
    kept: Any, thread: object, namespace: object, messages: Sequence[Any]
) -> tuple[str, str]:
    """Return the name of the run, and which call of another agent it is a part of."""
    if not thread:
        return str(messages[0].id) if messages else "", ""
    # The last part of a namespace is the node that runs now.
    return named(kept, str(thread), str(namespace or "").rpartition("|")[0])


def _calling(request: ToolCallRequest, call: Proposal) -> ToolCallRequest:
    """Return the request of a call that may be another one than was proposed."""
    asked = request.tool_call
    if (call.tool, call.arguments) == (asked["name"], asked["args"]):
        return request
    other = {**asked, "name": call.tool, "args": call.arguments}
    tool = request.tool
    if call.tool != asked["name"]:
        found = (t for t in request.runtime.tools or () if getattr(t, "name", "") == call.tool)
        tool = next(found, None)
    return request.override(tool_call=other, tool=tool)


def _of_tools(outcome: Any, known: Mapping[Any, Any]) -> Any:
    """Return what a tool has returned, with messages in a user's name marked as those of a tool."""
    update = outcome.update if isinstance(outcome, Command) else None
    if isinstance(update, Mapping) and "messages" in update:
        return replace(outcome, update={**update, "messages": _marked(update["messages"], known)})
    if isinstance(update, (list, tuple)):
        pairs = [(k, _marked(v, known) if k == "messages" else v) for k, v in update]
        return replace(outcome, update=pairs)
    return outcome


def _marked(given: Any, known: Mapping[Any, Any]) -> list[Any]:
    """Return messages as objects; those that are in the state already are whose they were."""
    found: list[Any] = convert_to_messages(given if isinstance(given, list) else [given])
    for message in found:
        if isinstance(message, HumanMessage) and not _is_known(message, known):
            message.additional_kwargs[KEY] = OF_A_TOOL
    return found


def _is_known(message: Any, known: Mapping[Any, Any]) -> bool:
    """Tell whether a message is in the state already: its id alone says nothing of who wrote it."""
    other = known.get(message.id)
    return (
        message.id is not None
        and other is not None
        and (message.type, message.content) == (other.type, other.content)
        and other.additional_kwargs.get(KEY) == message.additional_kwargs.get(KEY)
    )


def _answer(messages: Iterable[Any], identity: str | None) -> ToolMessage | None:
    """Return the message that answers a call, also where it is part of a Command."""
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id == (identity or ""):
            return message
    return None


def _all_messages(outcomes: Sequence[Any]) -> Iterator[Any]:
    for outcome in outcomes:
        if isinstance(outcome, Command):
            update = outcome.update
            pairs = update.items() if isinstance(update, Mapping) else update or ()
            for key, value in pairs if not isinstance(update, str) else ():
                if key == "messages":
                    yield from value if isinstance(value, list) else [value]
        else:
            yield outcome
