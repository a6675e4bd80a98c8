"""What is remembered of a run, what a decision leads to, and what became of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from agent_guard.decisions import NOTHING, Decision, Proposal
from forewarn.errors import InputError
from forewarn.wings.agents.proposals import RuleState


class GuardError(InputError):
    """The guard cannot judge a call."""


class RunState(NamedTuple):
    """What a guard remembers of a run; a value.

    `standing`: what the rules remember; None where the guard could not be opened.
    `refused`: calls that were given back to the model since the user spoke last.
    `stopped`: why the run is to end; empty if it is not.
    `heard`: which messages of the user are part of the task, where they have names.
    """

    standing: RuleState | None
    refused: int = 0
    stopped: str = ""
    heard: tuple[str, ...] = ()


class JudgedCall(NamedTuple):
    """A decision, and what is remembered if the call is made, or if it is not."""

    decision: Decision
    made: RunState
    refused: RunState
    values: Mapping[str, Any]


class Settled(NamedTuple):
    """What has become of a proposed call.

    `call`: the call to make: the proposed one, or another in its place; None if none is made.
    `state`: what is remembered of the run from now on.
    `message`: the message to the model where no call is made.
    `decision`: the decision behind that.
    `values`: the signals of the step, for the record; empty if no call is made.
    """

    call: Proposal | None
    state: RunState
    message: str
    decision: Decision
    values: Mapping[str, Any] = NOTHING

    @property
    def stops(self) -> bool:
        """The run ends."""
        return bool(self.state.stopped)
