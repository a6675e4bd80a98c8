"""Calls of one message of a model, which run side by side: order, memory, and runs begun again.

A framework may run the calls of a message at the same time, in any order, and run one of them again
from its start after a pause. So nothing here is remembered but in the framework's own state, as
plain data: what was remembered before the message (``base``), which message it is (``turn``), and
what has become of each of its calls (``done``). Each call is decided from that alone, as if those
before it in the message had been decided first. What was decided twice is decided alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agent_guard.decisions import NOTHING, Decision, Proposal
from agent_guard.guard import Guard
from agent_guard.outcomes import GuardError, JudgedCall, RunState, Settled
from forewarn.config.actions import REPLAN
from forewarn.wings.agents.steps import text_of_result

Kept = dict[str, Any]


class Turn(NamedTuple):
    """A call among those of its message.

    `base`: what was remembered before the message, as plain data.
    `name`: which message it is.
    `place`: which call of it.
    `state`: what is remembered when the call is decided.
    `within`: call of another agent that the run is a part of; empty without one.
    """

    base: Kept
    name: str
    place: int
    state: RunState
    judged: JudgedCall
    within: str = ""


def gathered(guard: Guard, kept: Mapping[str, Any] | None) -> RunState:
    """Return what is remembered after the last message whose calls are in the state."""
    if not kept:
        return guard.start()
    known = guard.recent.find(kept)
    if known is not None:
        return known
    state = guard.load(kept["base"])
    done = sorted(kept["done"].values(), key=lambda outcome: outcome["index"])
    for outcome in done:
        state = state._replace(
            refused=state.refused + outcome["refused"], stopped=state.stopped or outcome["stopped"]
        )
        if outcome["made"] is not None and state.standing is not None and guard.judge is not None:
            progress = state.standing.progress.made(
                outcome["made"], outcome["inputs"], args=outcome["args"]
            )
            standing = guard.judge.load_memory(progress, outcome["memory"])
            state = state._replace(standing=standing)
    for outcome in done:
        if outcome["made"] is not None:
            state = guard.answered(state, outcome["result"], outcome["failed"])
    return state


def named(kept: Mapping[str, Any] | None, thread: str, within: str) -> tuple[str, str]:
    """Return the name of a run and the call that it is a part of, as at its beginning.

    An agent that a tool calls belongs to the thread of its caller, but its steps are its own: under
    the same name, the record would join them to the caller's.
    """
    within = kept.get("within", "") if kept else within
    return "/".join(filter(None, (thread, within))), within


def merged(before: Kept | None, update: Kept | None) -> Kept:
    """Join what two calls of a message have become; a new message replaces the one before.

    Two messages may have one name. They differ in what was known before them.
    """
    names = ("turn", "base")
    if not before or not update or any(before[name] != update[name] for name in names):
        return update or before or {}
    return {**update, "done": {**before["done"], **update["done"]}}


def begin(
    guard: Guard,
    kept: Mapping[str, Any] | None,
    run: str,
    name: str,
    proposals: Sequence[Proposal],
    index: int,
    messages: Sequence[tuple[str, object]],
    context: Mapping[str, Any] = NOTHING,
    problem: str = "",
) -> Turn:
    """Decide about a call of a message.

    `kept`: what the framework's state holds.
    `run`: name of the run.
    `name`: name of the message.
    `proposals`: all calls of the message.
    `index`: which of them is to be decided.
    `messages` (sequence of (str, object)): names and contents of the user's messages so far.
    `context`: values of other signals that the monitor file names.
    `problem`: why the calls cannot be judged; empty if they can.
    """
    if kept and kept["turn"] == name and str(index) not in kept["done"]:
        base, state = kept["base"], guard.load(kept["base"])
    else:
        state = guard.heard(gathered(guard, kept), messages)
        base = guard.dump(state)
    waits = False

    def judge(proposal: Proposal) -> JudgedCall:
        if problem:
            return guard.failed(state, run, proposal, GuardError(problem))
        return guard.decide(state, run, proposal, context)

    for proposal in proposals[:index]:
        judged = judge(proposal)
        waits = waits or judged.decision.does == "ask"
        state = (
            judged.made if judged.decision.does in ("pass", "warn", "replace") else judged.refused
        )
    judged = judge(proposals[index])
    if waits and judged.decision.does not in ("stop", "reflect"):
        held = judged.decision._replace(action=REPLAN, active=True, held=True)
        judged = judged._replace(decision=held, refused=state)
    return Turn(base, name, index, state, judged)


def ended(guard: Guard, turn: Turn, settled: Settled, result: object, failed: bool) -> Kept:
    """Return the update of the framework's state once a call was made or refused."""
    made, after = settled.call, settled.state
    memory: list[Any] | None = None
    inputs: tuple[str | None, ...] | None = ()
    args: str | None = "{}"
    if made is not None and guard.judge is not None and after.standing is not None:
        memory = guard.judge.dump_memory(after.standing)
        inputs = after.standing.progress.inputs[-1]
        args = after.standing.progress.past_args[-1]
    outcome = {
        "index": turn.place,
        "made": None if made is None else made.tool,
        "inputs": None if inputs is None else list(inputs),
        "args": args,
        "memory": memory,
        "result": text_of_result(result) if made is not None else "",
        "failed": failed,
        "refused": after.refused - turn.state.refused,
        "stopped": after.stopped,
    }
    kept = {
        "base": turn.base,
        "turn": turn.name,
        "within": turn.within,
        "done": {str(turn.place): outcome},
    }
    if turn.place == 0:  # no other call of the message has a part in what is known by now
        guard.recent.keep(
            kept, after if made is None else guard.answered(after, outcome["result"], failed)
        )
    return kept


def over(
    guard: Guard, state: RunState, run: str, context: Mapping[str, Any] = NOTHING
) -> tuple[Kept, Decision | None]:
    """Close what the user asked for last; return the state's update, and what the rules say."""
    judged = guard.close(state, run, context)
    after = state._replace(refused=0, stopped="") if judged is None else judged.made
    update = {"base": guard.dump(after), "turn": "", "done": {}}
    return update, None if judged is None else judged.decision
