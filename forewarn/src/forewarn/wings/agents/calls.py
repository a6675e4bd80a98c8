"""Parser of one run of an agent: its goal, its calls with their results, and other fields."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from forewarn.recordings.traces import LARGEST, decoder, short
from forewarn.wings.agents.chats import (
    Came,
    Made,
    Misread,
    UserMessage,
    has_calls,
    is_message,
    said_in,
)
from forewarn.wings.agents.texts import json_of, leaves, says_failed, text_of

GOALS = ("task", "instruction", "goal", "query", "question", "prompt", "request")
"""Fields that say what the agent was asked to do; the first that is there becomes `task`."""

ACCEPTED = 'a run like {"task": "...", "steps": [{"action": "send", "args": {...}}]}'
MOST_CALLS = 1_000
MOST_FIELDS = 200
MEMBERS_OF_A_CALL = ("args", "arguments", "observation", "error", "success", "errorMessage")
TAKEN = frozenset(
    {"run", "step", "task", "calls", "last_action", "observation", "inputs", "outputs", "errors",
     "failed", "action", "proposed", "args", "past_args", "arguments", "argument_names", "t",
     "t_ns"}
)  # fmt: skip
"""Names that other fields of a run cannot have: those of the signals of a step, and of times."""


class WrongRunError(ValueError):
    """An object is no run. It has the problem, the key path and what would be accepted."""

    def __init__(self, problem: str, key: str, accepted: str = ACCEPTED) -> None:
        super().__init__(problem)
        self.key = key
        self.accepted = accepted


class Call(NamedTuple):
    """A call of a tool, and its result.

    `arguments` (tuple of (str, str)): names and texts of the arguments: see `arguments_of`.
    `args`: the arguments as a JSON object: numbers stay numbers.
    `user_message`: what the user said before it, where the run is a chat.
    """

    action: str
    arguments: tuple[tuple[str, str], ...]
    observation: str
    failed: bool
    user_message: str = ""
    args: str = "{}"

    @classmethod
    def of(
        cls,
        action: str,
        given: Any,
        observation: str = "",
        failed: bool = False,
        *,
        user_message: str = "",
        strict: bool = False,
    ) -> Call:
        """Return a call with its arguments as they were given; a text may be JSON.

        `strict`: refuse a text that begins as JSON, and in which another reader may find something
            else: a key comes twice, or it is cut short.

        Raises ValueError if it is refused.
        """
        read = _read(given, strict) if isinstance(given, str) else given
        return cls(action, _named(read), observation, failed, user_message, json_of_arguments(read))


class Run(NamedTuple):
    """One run: its goal, its calls, what the user said after the last one, and other fields."""

    task: str
    calls: list[Call]
    user_message: str
    fields: dict[str, Any]


def key_of_calls(record: Mapping[str, Any]) -> str | None:
    """Return which field holds the calls; one with an empty list only if its name says so.

    Of several lists of messages it is that with calls: the input of a chat may be repeated.
    Where more than one has calls, it is the longest.
    """
    lists = {k: v for k, v in record.items() if isinstance(v, list) and v and all(map(_is_part, v))}
    if len(lists) > 1:
        calls = {name: sum(map(has_calls, parts)) for name, parts in lists.items()}
        return max(calls, key=lambda name: (calls[name], len(lists[name])))
    for name in (*lists, "steps", "intermediate_steps", "traj", "messages"):
        if name in lists or record.get(name) == []:
            return name
    return None


def _is_part(part: Any) -> bool:
    """Tell whether an element of a list is a call, or a message of a chat."""
    if not isinstance(part, dict):
        return False
    action = part.get("action")
    if isinstance(action, dict):
        return "tool" in action
    return (action is not None and any(n in part for n in MEMBERS_OF_A_CALL)) or is_message(part)


def parse_run(record: Any) -> Run:
    """Return what an object of JSON says as a run; raises WrongRunError."""
    try:
        return _run(record)
    except RecursionError as error:
        raise WrongRunError("is nested too deeply", "") from error


def _run(record: Any) -> Run:
    if not isinstance(record, dict):
        raise WrongRunError(f"is {short(record)}, no run", "")
    key = key_of_calls(record)
    if key is None:
        raise WrongRunError(*_what_is_wrong(record))
    parts = record[key]
    fields: dict[str, Any] = {}
    rest = {name: value for name, value in record.items() if name not in (key, "task")}
    _flatten(rest, "", fields)
    calls, user_message = _parts(parts, key)
    task = "" if parts and is_message(parts[0]) else _goal(record)
    if len(calls) > MOST_CALLS:
        raise WrongRunError(f"has {len(calls)} calls", key, f"at most {MOST_CALLS}")
    return Run(task, calls, user_message, fields)


def _what_is_wrong(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return why no list of a record holds calls, and where the first wrong element is."""
    for name, value in record.items():
        if isinstance(value, list) and any(map(_is_part, value)):
            at = next(at for at, part in enumerate(value) if not _is_part(part))
            return f"{short(value[at])} is no call", f"{name}[{at}]"
    return "has no list of calls", ", ".join(list(record)[:5])


def _goal(record: Mapping[str, Any]) -> str:
    """Return what the agent was asked to do: a field of the run, or of an object in it."""
    for fields in (record, *(value for value in record.values() if isinstance(value, dict))):
        for name in GOALS:
            if isinstance(fields.get(name), str):
                return str(fields[name])
    return ""


def _call(part: Mapping[str, Any], key: str) -> Call:
    action, given = part["action"], part.get("args", part.get("arguments"))
    if isinstance(action, dict):
        action, given = action["tool"], action.get("input", action.get("args"))
    if not isinstance(action, str) or not action.strip():
        raise WrongRunError(f"{short(action)} names no action", f"{key}.action", "a text")
    result = part.get("observation")
    came = part if result is None and "success" in part else result
    failed = bool(part.get("error")) or (
        isinstance(came, dict)
        and (came.get("success") is False or bool(came.get("error") or came.get("errorMessage")))
    )
    if came is part:
        result = part.get("errorMessage") or part.get("message")
    elif "error" not in part:
        failed = failed or says_failed(result)
    observation = "\n".join(filter(None, (text_of(result), text_of(part.get("error")))))
    echoed = came if isinstance(came, dict) and isinstance(came.get("action"), str) else None
    call = Call.of(action, given, observation, failed)
    return _command(call) if echoed is not None and _is_echoed(call, echoed) else call


def _is_echoed(call: Call, result: Mapping[str, Any]) -> bool:
    """Tell whether a result repeats the whole command: ``find cabinet`` given to one robot."""
    texts = [text for _, text in call.arguments] or [call.action]
    return texts == [result["action"]]


def _command(call: Call) -> Call:
    """Return the call whose action is the first word of a command, and its argument the rest."""
    words = (call.arguments[0][1] if call.arguments else call.action).split(maxsplit=1)
    if not words:
        return call
    return Call.of(words[0], words[1] if len(words) > 1 else None, call.observation, call.failed)


def _parts(parts: list[Any], key: str) -> tuple[list[Call], str]:
    """Return the calls of a list of calls and messages, and what the user said after the last one.

    An answer belongs to the last call before it with its id: some models begin to count again. One
    without an id belongs to the first call that waits for one, of the tool that it names.
    """
    calls: list[Call] = []
    messages: list[str] = []
    places: dict[str, int] = {}
    waiting: list[int] = []
    for at, part in enumerate(parts):
        if part.get("action") is not None and not isinstance(part.get("role"), str):
            calls.append(_call(part, f"{key}[{at}]")._replace(user_message="\n".join(messages)))
            messages = []
            continue
        try:
            for content in said_in(part):
                if isinstance(content, UserMessage):
                    messages.append(content.text)
                elif isinstance(content, Made):
                    calls.append(
                        Call.of(content.name, content.arguments, user_message="\n".join(messages))
                    )
                    messages = []
                    waiting.append(len(calls) - 1)
                    if content.id:
                        places[content.id] = len(calls) - 1
                else:
                    place = _place(content, calls, places, waiting)
                    calls[place] = _answered(calls[place], content.result)
        except Misread as error:
            where = f"{key}[{at}]" + (f".{error.key}" if error.key else "")
            raise WrongRunError(str(error), where, error.accepted) from error
    return calls, "\n".join(messages)


def _place(came: Came, calls: list[Call], places: dict[str, int], waiting: list[int]) -> int:
    """Return the number of the call that a result answers; raises Misread."""
    place = places.get(came.id) if came.id else None
    if not came.id:
        fit = [i for i in waiting if not came.name or calls[i].action == came.name]
        place = fit[0] if fit else None
    if place is None:
        whose = f"the id {came.id!r}" if came.id else f"no id, and no call of {came.name!r} waits"
        raise Misread(f"a result has {whose}", "", "the id of a call before it, or one that waits")
    if place in waiting:
        waiting.remove(place)
    return place


def _answered(call: Call, result: Any) -> Call:
    """Return a call with its answer, or with more of it."""
    whole = "\n".join(filter(None, (call.observation, text_of(result))))
    return call._replace(observation=whole, failed=call.failed or says_failed(result))


def arguments_of(given: Any) -> tuple[tuple[str, str], ...]:
    """Return names and texts of the arguments; nested ones get names like ``to.address``.

    An object stands under its own name as well, as JSON; null and what is empty are no argument.
    The whole of them may be JSON as a text.
    """
    return _named(_read(given, strict=False) if isinstance(given, str) else given)


def _named(given: Any) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str]] = []
    _collect(given, "", pairs)
    return tuple((name or "input", text) for name, text in pairs)


def json_of_arguments(given: Any) -> str:
    """Return arguments as a JSON object, whose keys are their names.

    A number that JSON cannot hold is null, what is neither text, number, list nor object a text.
    """
    if given is None:
        return "{}"
    named = given if isinstance(given, Mapping) else {"input": given}
    return json.dumps(_plain(named), ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, (int, float)) and not -LARGEST <= value <= LARGEST:
        return None
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


def _read(text: str, strict: bool) -> Any:
    try:
        parsed = decoder.decode(text)
    except (ValueError, RecursionError) as error:
        if strict and text.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
            raise ValueError("begins as JSON and cannot be read as such") from error
        return text
    return parsed if isinstance(parsed, (dict, list, str)) else text


def _collect(value: Any, name: str, pairs: list[tuple[str, str]]) -> None:
    if isinstance(value, dict):
        if name and value:  # under its own name it is no number, and no plain text
            pairs.append((name, _text(value)))
        for key, item in value.items():
            _collect(item, f"{name}.{key}" if name else str(key), pairs)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, name, pairs)
    elif value is not None:
        pairs.append((name, _text(value)))
        if isinstance(value, str) and (read := json_of(value)) is not None:
            pairs.extend((name, text) for text in leaves(read))  # as results are read


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _flatten(value: Any, name: str, fields: dict[str, Any]) -> None:
    """Put the scalars of a run and its lists of them into `fields`.

    Those of objects get names like ``info_source``.
    """
    if isinstance(value, dict):
        for key, item in value.items():
            _flatten(item, f"{name}_{key}" if name else key, fields)
    elif len(fields) < MOST_FIELDS and all(map(_is_scalar, _items(value))):
        known = re.sub(r"\W+", "_", name).strip("_").lower() or "field"
        for item in _items(value):
            if type(item) is int and not -LARGEST <= item <= LARGEST:
                raise WrongRunError(f"{short(item)} is too large", name, "up to 1.8e308")
        fields.setdefault(f"run_{known}" if known in TAKEN else known, value)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, float, int))
