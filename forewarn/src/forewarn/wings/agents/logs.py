"""Logs that agent frameworks write, as runs: SWE-agent, Inspect, OpenHands, OpenTelemetry.

Each becomes a run as `agents` reads it. What a tool returned never becomes a word of the user,
though some frameworks send it to the model under the user's role.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.files.inputs import open_plain
from forewarn.recordings.traces import LONGEST, decoder, open_text
from forewarn.wings.agents.calls import key_of_calls
from forewarn.wings.agents.inspect_files import BEGIN, is_inspect_file, read_samples

NO_CALLS = frozenset({"message", "system", "null", "recall", "change_agent_state"})
"""Actions of OpenHands that are no calls of tools."""
ATTACHED = "attachment://"


class Log(NamedTuple):
    """What a log holds.

    `runs`: its runs, as `agents` reads them.
    `broken`: number of the first line that is no JSON; 0 without one.
    `is_cut`: whether that line is the last one, and has no end.
    """

    runs: list[dict[str, Any]]
    broken: int = 0
    is_cut: bool = False


def read_log(path: Path) -> Log | None:
    """Return what a log holds; None if the file is no log.

    The file is one JSON document, or one a line. A document over several lines may also be a run.
    Inspect's own format is an archive of them.
    """
    with open_plain(path) as file:
        head = file.read(len(BEGIN))
    if is_inspect_file(path, head):
        return Log(list(map(_of_sample, read_samples(path))))
    with open_text(path) as file:
        texts = enumerate(iter(lambda: file.readline(LONGEST + 1), ""), 1)
        lines = ((number, line) for number, line in texts if line.strip())
        _, first = next(lines, (0, ""))
        document = _decoded(first)
        if document is None:
            document = _decoded(first + file.read(LONGEST))
            runs = _runs([document])
            if runs is None and isinstance(document, dict) and key_of_calls(document):
                runs = [document]
            return None if runs is None else Log(runs)
        if _runs([document]) is None:
            return None
        documents = [document]
        for number, line in lines:
            if (document := _decoded(line)) is None:
                rest = next(lines, None)
                runs = _runs(documents)
                is_cut = rest is None and not line.endswith("\n")
                return None if runs is None else Log(runs, number, is_cut)
            documents.append(document)
        runs = _runs(documents)
        return None if runs is None else Log(runs)


def _decoded(text: str) -> Any:
    try:
        return decoder.decode(text) if len(text) <= LONGEST else None
    except (ValueError, RecursionError):
        return None


def _runs(documents: list[Any]) -> list[dict[str, Any]] | None:
    try:
        return _found(documents)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # it looks like a log and is another thing: other readers say what is wrong


def _found(documents: list[Any]) -> list[dict[str, Any]] | None:
    spans = [span for document in documents for span in _spans(document)]
    if spans:
        return _of_spans(spans)
    found = [run for document in documents for run in _of_document(document)]
    return found or None


def _of_document(document: Any) -> Iterator[dict[str, Any]]:
    if isinstance(document, list):
        if document and all(map(_is_event, document)):
            yield {"steps": list(_of_events(document))}
    elif isinstance(document, dict):
        samples, events = document.get("samples"), document.get("history")
        if isinstance(document.get("trajectory"), list) and _is_swe(document["trajectory"]):
            yield _of_trajectory(document)
        elif isinstance(document.get("eval"), dict) and isinstance(samples, list):
            yield from map(_of_sample, filter(_has_messages, samples))
        elif isinstance(events, list) and events and all(map(_is_event, events)):
            rest = {key: value for key, value in document.items() if key != "history"}
            yield {**rest, "steps": list(_of_events(events))}


def _is_swe(steps: list[Any]) -> bool:
    return bool(steps) and all(
        isinstance(step, dict) and isinstance(step.get("action"), str) and "observation" in step
        for step in steps
    )


def _of_trajectory(document: dict[str, Any]) -> dict[str, Any]:
    """Return a run of SWE-agent: the first word of a command is the action."""
    user_messages = [
        message
        for message in document.get("history") or ()
        if isinstance(message, dict) and message.get("role") == "user"
        and not message.get("is_demo") and message.get("message_type") != "observation"
    ]  # fmt: skip
    steps = [
        {
            "action": words[0],
            "args": {"command": step["action"]},
            "observation": step["observation"],
        }
        for step in document["trajectory"]
        if (words := step["action"].split(maxsplit=1))
    ]
    task = [{"role": "user", "content": user_messages[0].get("content")}] if user_messages else []
    return {**_fields(document, "trajectory", "history"), "steps": [*task, *steps]}


def _fields(document: dict[str, Any], *without: str) -> dict[str, Any]:
    """Return what else a log says of a run: plain values, and the objects that are its outcome."""
    kept = (str, int, float, bool)
    return {
        key: value
        for key, value in document.items()
        if key not in without and (isinstance(value, kept) or key in ("info", "scores"))
    }


def _has_messages(sample: Any) -> bool:
    return isinstance(sample, dict) and isinstance(sample.get("messages"), list)


def _of_sample(sample: dict[str, Any]) -> dict[str, Any]:
    """Return a run of Inspect, with the attachments of its log put in their places."""
    attached = sample.get("attachments") or {}
    messages = _attached(sample["messages"], attached if isinstance(attached, dict) else {})
    return {**_fields(sample, "messages"), "messages": messages}


def _attached(value: Any, attached: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _attached(item, attached) for key, item in value.items()}
    if isinstance(value, list):
        return [_attached(item, attached) for item in value]
    if isinstance(value, str) and value.startswith(ATTACHED):
        return attached.get(value[len(ATTACHED) :], value)
    return value


def _is_event(event: Any) -> bool:
    return (
        isinstance(event, dict)
        and event.get("source") in ("user", "agent", "environment")
        and ("action" in event or "observation" in event)
    )


def _of_events(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield calls and words of the user from events of OpenHands."""
    results: dict[Any, dict[str, Any]] = {}
    for event in events:
        if "observation" in event and event["observation"] != "agent_state_changed":
            results.setdefault(event.get("cause"), event)
    for event in events:
        fields = event.get("args")
        args: dict[str, Any] = fields if isinstance(fields, dict) else {}
        action = event.get("action")
        if action == "message" and event["source"] == "user":
            yield {"role": "user", "content": args.get("content")}
        if not isinstance(action, str) or event["source"] != "agent" or action in NO_CALLS:
            continue
        name, given = action, event.get("args")
        if action == "call_tool_mcp" and isinstance(args.get("name"), str):
            name, given = args["name"], args.get("arguments")
        result = results.get(event.get("id"), {})
        output = result.get("content")
        error = (output or "error") if result.get("observation") == "error" else None
        yield {
            "action": name,
            "args": given,
            "observation": output,
            "error": error,
        }


def _spans(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the spans in a document: OTLP's JSON, or spans as SDKs print them."""
    if isinstance(document, list):
        for part in document:
            yield from _spans(part)
    if not isinstance(document, dict):
        return
    for name in ("resourceSpans", "scopeSpans", "spans"):
        if isinstance(document.get(name), list):
            for part in document[name]:
                yield from _spans(part)
    attributes = _attributes(document.get("attributes"))
    if any(name.startswith("gen_ai.") for name in attributes):
        context = document.get("context")
        where = context if isinstance(context, dict) else document
        status = document.get("status")
        code = status.get("code", status.get("status_code")) if isinstance(status, dict) else None
        yield {
            "trace": str(where.get("traceId") or where.get("trace_id")),
            "start": _start(document),
            "failed": code in (2, "ERROR", "STATUS_CODE_ERROR"),
            **attributes,
        }


def _start(span: dict[str, Any]) -> tuple[int, str]:
    """Return when a span began; nanoseconds of one length, or a time as ISO 8601 has it."""
    begun = str(span.get("startTimeUnixNano") or span.get("start_time") or "")
    return (len(begun), begun) if begun.isdigit() else (0, begun)


def _attributes(given: Any) -> dict[str, Any]:
    if isinstance(given, dict):
        return given
    pairs = [part for part in given or () if isinstance(part, dict) and "key" in part]
    return {part["key"]: _value(part.get("value")) for part in pairs}


def _value(value: Any) -> Any:
    """Return a value of OTLP as a plain one."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, inner),) = value.items()
    if kind == "arrayValue":
        return [_value(item) for item in inner.get("values", ())]
    if kind == "kvlistValue":
        return _attributes(inner.get("values"))
    return int(inner) if kind == "intValue" else inner


def _of_spans(spans: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    traces: dict[str, list[dict[str, Any]]] = {}
    for span in sorted(spans, key=lambda span: span["start"]):
        traces.setdefault(span["trace"], []).append(span)
    runs = [{"trace": name, "steps": list(_of_trace(some))} for name, some in traces.items()]
    return [run for run in runs if run["steps"]] or None


def _of_trace(spans: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield calls and words of the user from spans, in their order; each word once."""
    tools = any(span.get("gen_ai.tool.name") for span in spans)
    heard: list[Any] = []
    for span in spans:
        sides = [span.get("gen_ai.input.messages"), span.get("gen_ai.output.messages")]
        for message in (m for side in sides for m in _messages(side)):
            if message not in heard and (message["role"] == "user" or not tools):
                heard.append(message)
                yield message
        if isinstance(span.get("gen_ai.tool.name"), str):
            output = span.get("gen_ai.tool.call.result")
            yield {
                "action": span["gen_ai.tool.name"],
                "args": span.get("gen_ai.tool.call.arguments"),
                "observation": output,
                "error": (output or span.get("error.type") or "error") if span["failed"] else None,
            }


def _messages(given: Any) -> Iterator[dict[str, Any]]:
    """Yield messages of a chat from those of OpenTelemetry, whose parts have types."""
    read = _decoded(given) if isinstance(given, str) else given
    for message in read if isinstance(read, list) else ():
        parts = message.get("parts") if isinstance(message, dict) else None
        if not isinstance(parts, list) or not isinstance(message.get("role"), str):
            continue
        parts = [part for part in parts if isinstance(part, dict)]
        results = [part for part in parts if part.get("type") == "tool_call_response"]
        rest = [part for part in parts if part not in results]
        for part in results:
            output = part.get("response", part.get("result"))
            text = output if isinstance(output, str) else json.dumps(output)
            yield {"role": "tool", "tool_call_id": part.get("id"), "content": text}
        if rest and message["role"] != "tool":
            yield {"role": message["role"], "content": rest}
