"""Forewarn's guard for agents that call tools. No framework is imported here."""

from agent_guard.decisions import Decision, GuardStopError, Proposal
from agent_guard.guard import Guard, GuardError, Options, RunState
from agent_guard.hook import GuardedRun

__all__ = [
    "Decision",
    "Guard",
    "GuardError",
    "GuardStopError",
    "GuardedRun",
    "Options",
    "Proposal",
    "RunState",
]
