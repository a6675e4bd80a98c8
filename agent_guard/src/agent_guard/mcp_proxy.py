"""A guard before an MCP server: messages go through, calls of tools are judged on their way.

Only `tools/call` and its results are looked at; all else passes as it is, whatever version of the
protocol client and server agree on. A call that is not made is answered here. Up to 2025-11-25 a
person is asked by a request to the client (`elicitation/create`), from 2026-07-28 on by a result
that says what is still needed (`input_required`), which the client answers with the call again.
"""

from __future__ import annotations

import json
import logging
import uuid
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    encode_header_value,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    INVALID_PARAMS,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
)

from agent_guard.decisions import Decision, Proposal, plain
from agent_guard.hook import GuardedRun
from agent_guard.human_response import question
from agent_guard.outcomes import Settled

log = logging.getLogger("agent_guard")
NAME = "agent_guard"
FORM = {
    "type": "object",
    "properties": {"allow": {"type": "boolean", "title": "Make this call?"}},
    "required": ["allow"],
}
Streams = AbstractAsyncContextManager[Any]


class _Held(NamedTuple):
    """A call that waits for a person: what was proposed, and what was asked."""

    proposal: Proposal
    asked: Decision


class Proxy:
    """One client and one server, and the run between them.

    `run`: the run. What the user says does not come this way: its task is what it was given.
    `client`, `server`: where messages to the client, and to the server, are sent.
    """

    def __init__(self, run: GuardedRun, client: Any, server: Any) -> None:
        self.run, self.client, self.server = run, client, server
        self._elicits = False
        self._version = ""
        self._count = 0
        self._calls: dict[Any, Proposal] = {}
        self._open: dict[tuple[str, str, Any], str] = {}
        self._questions: dict[Any, tuple[JSONRPCRequest, _Held]] = {}
        self._held: dict[str, _Held] = {}

    async def from_client(self, message: Any) -> None:
        """Pass a message of the client on, or answer it."""
        if isinstance(message, JSONRPCRequest) and message.method == "tools/call":
            await self._called(message)
            return
        if isinstance(message, JSONRPCRequest) and message.method == "initialize":
            self._elicits = "elicitation" in ((message.params or {}).get("capabilities") or {})
        if isinstance(message, (JSONRPCResponse, JSONRPCError)) and message.id in self._questions:
            request, held = self._questions.pop(message.id)
            given = message.result if isinstance(message, JSONRPCResponse) else None
            await self._attempted(request, held.proposal, held.asked, _answer(given))
            return
        await self._forward(message)

    async def from_server(self, message: Any) -> None:
        """Take note of the result of a call, and pass a message of the server on."""
        if isinstance(message, (JSONRPCResponse, JSONRPCError)) and message.id in self._calls:
            self._answered(self._calls.pop(message.id), message)
        elif isinstance(message, JSONRPCResponse) and not self._version:
            self._version = str(message.result.get("protocolVersion", ""))
        await self.client.send(SessionMessage(message))

    async def _called(self, request: JSONRPCRequest) -> None:
        params = request.params or {}
        tool, given = params.get("name"), params.get("arguments") or {}
        if not isinstance(tool, str) or not tool or not isinstance(given, dict):
            error = ErrorData(
                code=INVALID_PARAMS, message="the call names no tool, or no arguments"
            )
            await self._send(JSONRPCError(jsonrpc="2.0", id=request.id, error=error))
            return
        token = params.get("requestState")
        state = token if isinstance(token, str) else None
        held = None if state is None else self._held.pop(state, None)
        if held is not None and (held.proposal.tool, held.proposal.arguments) == (tool, given):
            responses = params.get("inputResponses") or {}
            rest = {k: v for k, v in params.items() if k not in ("requestState", "inputResponses")}
            request = request.model_copy(update={"params": rest})
            await self._attempted(request, held.proposal, held.asked, _answer(responses.get(NAME)))
            return
        known = self._open.pop(_key(Proposal(tool, given), state), None)
        if known is not None and "inputResponses" in params:  # the server has asked, not we
            self._calls[request.id] = Proposal(tool, given, known)
            await self._forward(request)
            return
        self._count += 1
        await self._attempted(request, Proposal(tool, given, f"call {self._count}"))

    async def _attempted(
        self,
        request: JSONRPCRequest,
        proposal: Proposal,
        asked: Decision | None = None,
        answer: object = None,
    ) -> None:
        """Decide about a call; ask, refuse or make it."""
        modern = _capabilities(request)
        asks = self._elicits if modern is None else "elicitation" in modern
        found = self.run.attempt(proposal, asked, answer, asks=asks)
        if isinstance(found, Decision):
            await self._ask(request, _Held(proposal, found), modern is not None)
        elif found.call is None:
            await self._refused(request, found)
        else:
            made = Proposal(found.call.tool, found.call.arguments, proposal.id)
            self._calls[request.id] = made
            params = {**(request.params or {}), "name": made.tool, "arguments": made.arguments}
            await self._forward(request.model_copy(update={"params": params}))

    async def _ask(self, request: JSONRPCRequest, held: _Held, modern: bool) -> None:
        asked = {"mode": "form", "message": _question_text(held.asked), "requestedSchema": FORM}
        token = f"{NAME} {uuid.uuid4()}"
        if modern:
            self._held[token] = held
            needed = {NAME: {"method": "elicitation/create", "params": asked}}
            result = {
                "resultType": "input_required", "inputRequests": needed, "requestState": token,
            }  # fmt: skip
            await self._send(JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result))
            return
        self._questions[token] = (request, held)
        created = JSONRPCRequest(jsonrpc="2.0", id=token, method="elicitation/create", params=asked)
        await self._send(created)

    async def _refused(self, request: JSONRPCRequest, settled: Settled) -> None:
        result: dict[str, Any] = {
            "content": [{"type": "text", "text": settled.message}],
            "isError": True,
        }
        if _capabilities(request) is not None:
            result["resultType"] = "complete"
        await self._send(JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result))

    def _answered(self, made: Proposal, message: JSONRPCResponse | JSONRPCError) -> None:
        if isinstance(message, JSONRPCError):
            self.run.after(message.error.message, True, made.id)
            return
        result = message.result
        if result.get("resultType") == "input_required":
            self._open[_key(made, result.get("requestState"))] = made.id
            return
        content = [
            part for part in (result.get("content"), result.get("structuredContent")) if part
        ]
        self.run.after(content, True if result.get("isError") else None, made.id)

    async def _forward(self, message: Any) -> None:
        """Send a message to the server, with the headers that HTTP wants."""
        headers = {}
        params = getattr(message, "params", None) or {}
        meta = params.get("_meta") or {}
        version = meta.get(PROTOCOL_VERSION_META_KEY) or self._version
        if version:
            headers[MCP_PROTOCOL_VERSION_HEADER] = str(version)
        if PROTOCOL_VERSION_META_KEY in meta:
            headers[MCP_METHOD_HEADER] = message.method
            name = params.get("name") or params.get("uri")
            if isinstance(name, str):
                headers[MCP_NAME_HEADER] = encode_header_value(name)
        await self.server.send(SessionMessage(message, ClientMessageMetadata(headers=headers)))

    async def _send(self, message: Any) -> None:
        await self.client.send(SessionMessage(message))


async def serve(run: GuardedRun, server: Streams) -> None:
    """Pass messages between standard input and output and a server, until one of them ends."""
    async with (
        stdio_server() as (from_client, to_client),
        server as streams,
        anyio.create_task_group() as group,
    ):
        from_server, to_server = streams[:2]
        proxy = Proxy(run, to_client, to_server)

        async def pump(stream: Any, take: Any) -> None:
            async for item in stream:
                if isinstance(item, Exception):
                    log.error("a message could not be read: %s", plain(str(item), 200))
                else:
                    await take(item.message)
            group.cancel_scope.cancel()

        group.start_soon(pump, from_server, proxy.from_server)
        await pump(from_client, proxy.from_client)
    run.close()


def _key(call: Proposal, state: Any) -> tuple[str, str, Any]:
    """Return what a call that the server asks about has in common with its next attempt."""
    return (call.tool, json.dumps(call.arguments, sort_keys=True, default=str), state)


def _capabilities(request: JSONRPCRequest) -> dict[str, Any] | None:
    """Return what the client can do, where each request says so; None before 2026-07-28."""
    meta = (request.params or {}).get("_meta") or {}
    return meta.get(CLIENT_CAPABILITIES_META_KEY) if PROTOCOL_VERSION_META_KEY in meta else None


def _answer(given: Any) -> bool | None:
    """Return a person's answer; None without one."""
    if not isinstance(given, dict) or given.get("action") != "accept":
        return False if isinstance(given, dict) and given.get("action") == "decline" else None
    content = given.get("content")
    return isinstance(content, dict) and content.get("allow") is True


def _question_text(asked: Decision) -> str:
    """Return the question to a person: the call with its arguments, and what is against it."""
    asking = question(asked)
    arguments = plain(json.dumps(asking["args"], ensure_ascii=False, default=str), 1500)
    return f"{asking['question']} {arguments}\n{asking['reason']}: {asked.says}"
