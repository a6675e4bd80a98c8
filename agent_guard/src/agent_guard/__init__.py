"""Forewarn's guard for agents that call tools. No framework is imported here."""

from agent_guard.decisions import Decision, GuardStopError, Proposal, by_shield
from agent_guard.guard import Guard
from agent_guard.hook import GuardedRun
from agent_guard.options import Options
from agent_guard.outcomes import GuardError, RunState

__all__ = [
    "Decision",
    "Guard",
    "GuardError",
    "GuardStopError",
    "GuardedRun",
    "Options",
    "Proposal",
    "RunState",
    "by_shield",
]
