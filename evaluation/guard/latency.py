"""What the guard adds to a step of a LangChain agent, against middleware that does nothing.

    python -m evaluation.guard.latency [--rounds 60] [--write]

An agent with a scripted model makes 20 calls of a tool that returns 200 characters. A step is a
twentieth of that run: model node, tool node, all that LangChain does. The arms take turns; the time
is that of the processor, of all threads, and an arm's figure the median over its rounds. Other work
on the machine makes processor time longer, too: the least round tells more where there is any. One
arm has the hooks, the state and the messages of the guard, and decides nothing: what LangChain
itself takes for a middleware of that kind.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.types import Command

from agent_guard import Guard
from agent_guard.middleware import KEY, GuardMiddleware, GuardState
from evaluation.guard.replays import HERE, RULES, opened
from evaluation.harness.command import command
from evaluation.harness.page import Row, publish, rounded

CALLS = 20
TITLE = "What the guard costs"
COMMAND = "python -m evaluation.guard.latency --write"


class Fake(GenericFakeChatModel):
    """A model that says what was written for it."""

    def bind_tools(self, tools: Any, **options: Any) -> Fake:
        """Return itself."""
        return self


class Empty(AgentMiddleware):
    """Hands every call on."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Hand a call on."""
        return handler(request)


class Idle(AgentMiddleware):
    """Has the hooks and the state of a guard, and decides nothing."""

    state_schema = GuardState

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Hand a call on, and leave a little in the state."""
        result = handler(request)
        kept = {"base": {}, "turn": result.tool_call_id, "done": {}}
        return Command(update={"messages": [result], KEY: kept})

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Hand a call on."""
        return handler(request)

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Leave a little in the state."""
        return {KEY: {"base": {}, "turn": "", "done": {}}}


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"{at}: " + "nothing new " * 16


def once(middleware: list[Any]) -> float:
    """Return the processor time of one run by step, in microseconds."""
    script = [
        AIMessage("", tool_calls=[{"name": "look", "args": {"at": f"x{i}"}, "id": f"call {i}"}])
        for i in range(CALLS)
    ]
    model = Fake(messages=iter([*script, AIMessage("done")]))
    agent = create_agent(model, [look], middleware=middleware)
    began = time.process_time()
    agent.invoke({"messages": [("user", "Look at x1 and x2.")]}, {"recursion_limit": 200})
    return (time.process_time() - began) / CALLS * 1e6


def calls(middleware: list[Any]) -> float:
    """Return how many functions one run calls by step, in all threads: the same on any machine."""
    counted = [0]

    def count(frame: Any, event: str, argument: Any) -> None:
        counted[0] += event in ("call", "c_call")

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        once(middleware)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return counted[0] / CALLS


def arms(folder: Path) -> dict[str, list[Any]]:
    """Return what is compared."""
    return {
        "none": [],
        "empty": [Empty()],
        "empty, with the guard's hooks and state": [Idle()],
        "guard, rules on names of calls": [GuardMiddleware(Guard.open(folder / "plain.yaml"))],
        "the same, no limit of time": [
            GuardMiddleware(Guard.open(folder / "plain.yaml", timeout=None))
        ],
        "guard, `config/guard/foreign_orders.yaml`": [GuardMiddleware(opened(RULES))],
        "guard, `config/guard/ready.yaml`": [
            GuardMiddleware(Guard.open(RULES.with_name("ready.yaml")))
        ],
    }


def main(rounds: int = 60, write: bool = False) -> None:
    """Measure and print a table."""
    compared = arms(HERE)
    times: dict[str, list[float]] = {name: [] for name in compared}
    for number in range(rounds + 3):
        for name, middleware in compared.items():
            spent = once(middleware)
            if number >= 3:  # the first rounds fill caches
                times[name].append(spent)
    base = float(np.median(times["empty"]))
    functions = {name: calls(middleware) for name, middleware in compared.items()}
    found = [
        {
            "middleware": name,
            "p50": rounded(float(np.median(spent))),
            "p95": rounded(float(np.percentile(spent, 95))),
            "above_p50": rounded(float(np.median(spent)) - base),
            "above_least": rounded(min(spent) - min(times["empty"])),
            "calls_above": rounded(functions[name] - functions["empty"]),
        }
        for name, spent in times.items()
    ]
    publish(TITLE, COMMAND, list(map(row_of, found)), found, Path("out/guard/latency"), write=write)


def row_of(one: Mapping[str, Any]) -> Row:
    """Return what an arm costs, in words."""
    return Row(
        one["middleware"],
        f"p50 {one['p50']:.0f} us, p95 {one['p95']:.0f} us; above empty "
        f"{one['above_p50']:.0f} us, least {one['above_least']:.0f} us, "
        f"{one['calls_above']:.0f} function calls",
    )


if __name__ == "__main__":
    command(main)
