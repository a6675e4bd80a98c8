"""Messages of a chat: who says them, the calls in them, and what tools returned.

Known are the messages of OpenAI (also the older `function_call` and the items of Responses), of
Anthropic (blocks `tool_use` and `tool_result`), of LangChain (`type: human`) and of Inspect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from forewarn.wings.agents.texts import text_of

SPEAKERS = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "model"), "model"),
    **dict.fromkeys(("tool", "function", "function_call_output"), "tool"),
    **dict.fromkeys(("system", "developer", "reasoning"), "system"),
    "function_call": "model",
}
"""Who says a message, by its role or, in LangChain and Responses, by its type."""
TYPES = frozenset({"human", "ai", "tool", "system", "function_call", "function_call_output"})
CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "function_call"})
"""Types of blocks that are calls."""
ROLES = "user, assistant, tool, function, system or developer"
CALL = '{"function": {"name": "send", "arguments": ...}}'


class Misread(ValueError):
    """A message says something that is not understood."""

    def __init__(self, problem: str, key: str, accepted: str) -> None:
        super().__init__(problem)
        self.key = key
        self.accepted = accepted


class UserMessage(NamedTuple):
    """What the user says."""

    text: str


class Made(NamedTuple):
    """A call of a tool, with its id, if it has one."""

    name: str
    arguments: Any
    id: str


class Came(NamedTuple):
    """A result of a tool, with the id and the tool of its call, as far as they are given."""

    result: Any
    id: str
    name: str


def is_message(part: Mapping[str, Any]) -> bool:
    """Tell whether an object is a message of a chat."""
    return isinstance(part.get("role"), str) or part.get("type") in TYPES


def has_calls(part: Any) -> bool:
    """Tell whether a part of a run is a call, or a message with calls."""
    if not isinstance(part, dict) or "action" in part:
        return isinstance(part, dict)
    try:
        return any(isinstance(part_in, Made) for part_in in said_in(part))
    except Misread:
        return True


def said_in(part: Mapping[str, Any]) -> Iterator[UserMessage | Made | Came]:
    """Yield what a message says, in its order; raises Misread."""
    role = part.get("role") if isinstance(part.get("role"), str) else part.get("type")
    speaker = SPEAKERS.get(str(role).lower())
    data = part.get("data")
    if "role" not in part and isinstance(data, dict):
        part = data  # LangChain's `messages_to_dict`
    content = part.get("content")
    if speaker is None:
        raise Misread(f"{role!r} is no role of a chat that is known", "role", ROLES)
    if speaker == "tool":
        yield _result(part)
        return
    words, blocks = split(content)
    if speaker == "user" and (words := text_of(words)):
        yield UserMessage(words)
    if speaker == "system":
        return
    seen: set[str] = set()
    for call in _calls(part):
        seen.add(call.id)
        yield call
    for at, block in blocks:
        if _is_result(block):
            yield _result(block)
        elif not (call := _call(block, f"content[{at}]")).id or call.id not in seen:
            yield call


def split(content: Any) -> tuple[Any, list[tuple[int, Mapping[str, Any]]]]:
    """Return the content of a message without calls and results of tools, and these by place."""
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, (list, tuple)):
        return content, []
    of_tools = [(i, b) for i, b in enumerate(content) if _is_call(b) or _is_result(b)]
    places = {i for i, _ in of_tools}
    return [block for i, block in enumerate(content) if i not in places], of_tools


def _is_call(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") in CALLS


def _is_result(block: Any) -> bool:
    kind = block.get("type") if isinstance(block, Mapping) else None
    return isinstance(kind, str) and kind.endswith(("tool_result", "call_output"))


def _result(part: Mapping[str, Any]) -> Came:
    names = ("tool_call_id", "tool_use_id", "call_id")
    identity = next((part[n] for n in names if isinstance(part.get(n), str)), "")
    name = part.get("name") or part.get("function")
    result = next((part[n] for n in ("content", "output") if part.get(n) is not None), None)
    wrong = {n: part[n] for n in ("error", "is_error", "status") if n in part}
    if part.get("error") or part.get("is_error") is True or part.get("status") == "error":
        result = {**wrong, "content": result}
    return Came(result, identity, name if isinstance(name, str) else "")


def _calls(part: Mapping[str, Any]) -> Iterator[Made]:
    if part.get("type") == "function_call":
        yield _call(part, "")
    if part.get("function_call"):
        yield _call(part["function_call"], "function_call")
    made = part.get("tool_calls") or []
    if not isinstance(made, list):
        raise Misread(f"{str(made)[:40]!r} is no list", "tool_calls", "a list")
    for number, call in enumerate(made):
        yield _call(call, f"tool_calls[{number}]")


def _call(call: Any, key: str) -> Made:
    inner = call if isinstance(call, Mapping) else {}
    given: Any = inner
    for name in ("function", "custom"):  # Inspect has the name of the tool there
        if isinstance(inner.get(name), Mapping):
            given = inner[name]
    name = given.get("name") or given.get("function")
    if not isinstance(name, str) or not name.strip():
        raise Misread(f"{str(call)[:40]!r} names no tool", key, CALL)
    arguments = next((given[k] for k in ("arguments", "args", "input") if k in given), None)
    identity = inner.get("call_id") or inner.get("id")
    return Made(name, arguments, identity if isinstance(identity, str) else "")
