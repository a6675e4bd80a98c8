"""The command ``agent_guard``: so far the guard before an MCP server."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_guard import Guard, GuardedRun, by_shield
from forewarn.errors import ForewarnError

DESCRIPTION = """\
Guard an MCP server: write this command in place of the server's own. Calls of tools are judged by
the rules before they reach the server; all else passes through."""
EPILOG = "example: agent_guard mcp --rules rules.yaml -- npx -y @org/server-files /home/me"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    at = given.index("--") if "--" in given else len(given)
    own, command = given[:at], given[at + 1 :]
    options = _parser().parse_args(own)
    if bool(command) == bool(options.url):
        _parser().error("either a server's command after --, or its --url, is needed")
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    try:
        guard = Guard.open(
            options.rules,
            options.model,
            record=options.record,
            decisions=options.decisions,
            record_key=options.record_key,
            on_failure=options.on_failure,
            replace=by_shield(dict(options.replace)) if options.replace else None,
        )
    except ForewarnError as error:
        print(f"agent_guard: {error}", file=sys.stderr)
        return 2
    return _serve(GuardedRun(guard, options.name, options.task), command, options.url)


def _serve(run: GuardedRun, command: Sequence[str], url: str | None) -> int:
    try:
        import anyio
        from mcp.client.stdio import StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client

        from agent_guard.mcp_proxy import serve
    except ImportError as error:
        print(f"agent_guard: {error}; pip install 'agent_guard[mcp]'", file=sys.stderr)
        return 2
    if url:
        server: Any = streamable_http_client(url)
    else:
        program, *rest = command
        server = stdio_client(
            StdioServerParameters(command=program, args=rest, env=dict(os.environ))
        )
    try:
        anyio.run(serve, run, server)
    except OSError as error:
        print(f"agent_guard: {' '.join(command) or url}: {error}", file=sys.stderr)
        return 1
    return 0


def _replacement(text: str) -> tuple[str, Mapping[str, Any]]:
    tool, mark, arguments = text.partition("=")
    read = json.loads(arguments or "{}")
    if not tool or not mark or not isinstance(read, dict):
        raise argparse.ArgumentTypeError(f"{text!r}: TOOL={{...}} is needed")
    return tool, read


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="agent_guard", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    usage = "agent_guard mcp --rules FILE [option ...] (-- COMMAND ... | --url URL)"
    mcp = commands.add_parser("mcp", description=DESCRIPTION, epilog=EPILOG, usage=usage)
    mcp.add_argument("--rules", type=Path, required=True, metavar="FILE", help="the monitor file")
    mcp.add_argument("--model", type=Path, metavar="FILE", help="its model, if it needs one")
    mcp.add_argument("--url", help="a server of streamable HTTP, in place of a command after --")
    mcp.add_argument("--task", default="", metavar="TEXT", help="what the user asked for")
    mcp.add_argument("--name", default="mcp", help="name of the run, for the record")
    mcp.add_argument("--record", type=Path, metavar="FILE", help="append all steps to this trace")
    mcp.add_argument(
        "--decisions", type=Path, metavar="FILE", help="append each decision against a call"
    )
    mcp.add_argument("--record-key", type=Path, metavar="FILE", help="key of the chains of both")
    mcp.add_argument("--on-failure", choices=("block", "pass"), default="block")
    mcp.add_argument(
        "--replace",
        type=_replacement,
        action="append",
        metavar="TOOL={...}",
        help="under REPLACE, the tool that the shield advises may be called with these arguments",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
