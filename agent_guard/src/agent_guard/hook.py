"""One run of an agent under a guard: what any loop can call before and after a tool."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from agent_guard.answers import question
from agent_guard.decisions import Decision, GuardStopError, Proposal
from agent_guard.guard import Guard
from agent_guard.outcomes import NOTHING, Settled

Ask = Callable[[dict[str, Any]], object]


class GuardedRun:
    """A run, or a thread of a chat.

    Parameters
    ----------
    guard : Guard
        The guard.
    name : str
        Name of the run, for the record.
    task : str
        What the agent was asked to do.
    memory : mapping, optional
        What `memory` of a former life gave: the run goes on there.
    context : mapping
        Values of other signals that the monitor file names.
    ask : callable, optional
        Asks a person: from a question as plain data to an answer. Without it, what is to be asked
        is refused.
    """

    def __init__(
        self,
        guard: Guard,
        name: str,
        task: str = "",
        *,
        memory: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] = NOTHING,
        ask: Ask | None = None,
    ) -> None:
        self.guard = guard
        self.name = name
        self.context = context
        self._ask = ask
        self._state = guard.start() if memory is None else guard.load(memory)
        self._lock = threading.Lock()
        if task:
            self.told(task)

    @property
    def memory(self) -> dict[str, Any]:
        """All that is remembered of the run, as plain data that goes through JSON."""
        return self.guard.dump(self._state)

    def told(self, text: str) -> None:
        """Take note of what the user says: the task, or more of it."""
        with self._lock:
            self._state = self.guard.told(self._state, text)._replace(refused=0)

    def before(self, tool: str, arguments: Mapping[str, Any] | str, call: str = "") -> Settled:
        """Decide about a call, before it is made.

        Returns
        -------
        Settled
            Its `call` is the one to make, maybe another one; None if none is to be made, and
            `message` says why, to the model.
        """
        with self._lock:
            state, proposal = self._state, Proposal(tool, arguments, call)
            judged = self.guard.decide(state, self.name, proposal, self.context)
            answer = None
            if judged.decision.does == "ask" and self._ask is not None:
                answer = self._ask(question(judged.decision))
            settled = self.guard.settle(state, judged, answer, self.context)
            self._state = settled.state
            self.guard.write(settled.decision, settled.values)
            return settled

    def after(self, result: object, failed: bool | None = None) -> None:
        """Take note of what a call returned; by default it failed if it begins with "error"."""
        with self._lock:
            self._state = self.guard.answered(self._state, result, failed)

    def close(self) -> Decision | None:
        """End the run, or the answer to what the user said last; return what the rules say."""
        with self._lock:
            judged = self.guard.close(self._state, self.name, self.context)
            if judged is None:
                return None
            self._state = judged.made
            return judged.decision

    def wrap(self, tool: Callable[..., Any], name: str = "") -> Callable[..., Any]:
        """Return a tool, called with keywords, that is guarded.

        Where its call is not made it returns the message for the model. Where another call is to
        be made in its place, it must be one of the same tool.

        Raises
        ------
        GuardStopError
            When it is called, if the run is to end.
        """
        title = name or tool.__name__

        @wraps(tool)
        def guarded(**arguments: Any) -> Any:
            settled = self.before(title, arguments)
            if settled.stops:
                raise GuardStopError(settled.decision)
            if settled.call is None or settled.call.tool != title:
                return settled.message or f"another call, of {settled.call}, is to be made"
            given = settled.call.arguments
            assert not isinstance(given, str)
            try:
                result = tool(**given)
            except Exception as error:
                self.after(str(error), failed=True)
                raise
            self.after(result)
            return result

        return guarded
