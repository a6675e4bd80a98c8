"""One run of an agent under a guard: what any loop can call before and after a tool."""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import wraps
from typing import Any, NamedTuple

from agent_guard.decisions import NOTHING, Decision, GuardStopError, Proposal
from agent_guard.guard import SAY, Guard
from agent_guard.human_response import question
from agent_guard.outcomes import GuardError, Settled

Ask = Callable[[dict[str, Any]], object]
PLACES = "places"
"""Key of what is remembered of a run: numbers of calls by their ids, until they are answered."""


class GuardedRun:
    """A run, or a thread of a chat.

    `name`: name of the run, for the record.
    `task`: what the agent was asked to do.
    `memory`: what `memory` of a former life gave: the run goes on there.
    `context`: values of other signals that the monitor file names.
    `ask`: asks a person: from a question as plain data to an answer. Without it, calls that need a
        person are refused. Other calls of the run go on meanwhile; what is known by then counts.
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
        self._places: dict[str, int | None] = {} if memory is None else dict(memory.get(PLACES, {}))
        self._lock = _Alone()
        if task:
            self.add_user_message(task)

    @property
    def memory(self) -> dict[str, Any]:
        """All that is remembered of the run, as plain data that goes through JSON."""
        return {**self.guard.dump(self._state), PLACES: dict(self._places)}

    def add_user_message(self, message: object) -> None:
        """Take note of what the user says, a text or content blocks: the task, or more of it."""
        with self._lock:
            self._state = self.guard.add_user_message(self._state, message)._replace(refused=0)

    def before(self, tool: str, arguments: Mapping[str, Any] | str, call: str = "") -> Settled:
        """Decide about a call, before it is made.

        `tool`: name of the tool.
        `arguments`: its arguments; JSON as text is read.
        `call`: id of the call, if it has one: tells `after` which call was answered.

        The `call` of the outcome is the one to make, maybe another one; None if none is made, and
        `message` says why, to the model.
        """
        proposal = Proposal(tool, arguments, call)
        found = self.attempt(proposal, asks=self._ask is not None)
        while isinstance(found, Decision):
            assert self._ask is not None
            # The person may speak to the run, or wait for one of its other calls.
            found = self.attempt(proposal, found, self._ask(question(found)))
        return found

    def answer(self, text: str) -> Settled:
        """Decide about what the agent says to the user, before it is said.

        To the rules it is a call of the tool `say` with the argument `text`, as in recordings.
        """
        settled = self.before(SAY, {"text": text})
        if settled.call is not None:
            self._after("", False, _place(settled))
        return settled

    def attempt(
        self,
        proposal: Proposal,
        asked: Decision | None = None,
        answer: object = None,
        *,
        asks: bool = True,
    ) -> Settled | Decision:
        """Decide about a call, as `before` does, where the caller asks the person.

        `asked`: what was returned before, and has been answered.
        `answer`: the answer: see `answers.ACCEPTED`.
        `asks`: whether a person can be asked; if not, calls that need one are refused.

        Returns a question where a person is to be asked (`answers.question`): nothing is decided.
        """
        with self._lock:
            state = self._state
            judged = self.guard.decide(state, self.name, proposal, self.context)
            if asked is not None and judged.decision.does in ("pass", "warn", "replace"):
                judged = judged._replace(decision=asked)  # the person's answer counts
            decision = judged.decision
            if decision.does == "ask" and asks and not _same(decision, asked):
                return decision
            settled = self.guard.settle(state, judged, answer, self.context)
            self._state = settled.state
            self.guard.write(settled.decision, settled.values)
            if proposal.id:
                self._places[proposal.id] = _place(settled)
            return settled

    def after(self, result: object, failed: bool | None = None, call: str = "") -> None:
        """Take note of what a call returned.

        `result`: what it returned.
        `failed`: whether it failed; by default, if its result begins with "error".
        `call`: the id that `before` got; needed where calls may run side by side. The answer of a
            framework to a call that was not made is no result of a tool, and is left out. Without
            an id it is the result of the call after the last that was answered.

        Raises GuardError if `before` got no such call, or it has been answered.
        """
        place = None
        if call:
            with self._lock:
                if call not in self._places:
                    raise GuardError(
                        f"no call {call!r} waits for its result",
                        accepted="the id that `before` got, once",
                    )
                place = self._places.pop(call)
            if place is None:
                return
        self._after(result, failed, place)

    def _after(self, result: object, failed: bool | None, place: int | None) -> None:
        with self._lock:
            self._state = self.guard.answered(self._state, result, failed, place)

    def close(self) -> Decision | None:
        """End the run, or the answer to the user's last message; return the rules' decision."""
        with self._lock:
            judged = self.guard.close(self._state, self.name, self.context)
            if judged is None:
                return None
            self._state = judged.made
            return judged.decision

    def wrap(self, tool: Callable[..., Any], name: str = "") -> Callable[..., Any]:
        """Return a tool, called with keywords, that is guarded.

        The tool may be a coroutine function. Where its call is not made it returns the message for
        the model. Where another call is to be made in its place, it must be one of the same tool.

        Raises GuardError if the tool is a generator: the rules would not see what it yields;
        GuardStopError when it is called, if the run is to end.
        """
        title = name or tool.__name__
        if inspect.isgeneratorfunction(tool) or inspect.isasyncgenfunction(tool):
            raise GuardError(
                f"the tool {title!r} yields its result piece by piece",
                accepted="a function, or a coroutine function; or `before` and `after`",
            )

        @wraps(tool)
        def guarded(**arguments: Any) -> Any:
            step = self._begun(title, arguments)
            if step.arguments is None:
                return step.message
            try:
                result = tool(**step.arguments)
                if not inspect.isawaitable(result):
                    _check_whole(result, title)
            except BaseException as error:
                self._failed(error, step.place)
                raise
            if inspect.isawaitable(result):
                return self._awaited(result, title, step.place)
            self._after(result, None, step.place)
            return result

        @wraps(tool)
        async def awaited(**arguments: Any) -> Any:
            found = guarded(**arguments)
            return await found if inspect.isawaitable(found) else found

        return awaited if inspect.iscoroutinefunction(tool) else guarded

    def _begun(self, title: str, arguments: Mapping[str, Any]) -> _Step:
        settled = self.before(title, arguments)
        if settled.stops:
            raise GuardStopError(settled.decision)
        if settled.call is None or settled.call.tool != title:
            message = settled.message or f"another call, of {settled.call}, is to be made"
            return _Step(None, message, None)
        given = settled.call.arguments
        assert not isinstance(given, str)
        return _Step(given, "", _place(settled))

    async def _awaited(self, result: Awaitable[Any], title: str, place: int | None) -> Any:
        try:
            found = await result
            _check_whole(found, title)
        except GeneratorExit:  # its caller gave up, in a thread that is not known
            raise
        except BaseException as error:  # that of a time limit is no Exception
            self._failed(error, place)
            raise
        self._after(found, None, place)
        return found

    def _failed(self, error: BaseException, place: int | None) -> None:
        self._after(str(error) or type(error).__name__, True, place)


class _Alone:
    """A lock of one run, which tells its own thread rather than let it wait for itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0

    def __enter__(self) -> None:
        if self._owner == threading.get_ident():
            raise GuardError(
                "a decision about a call of this run is being made",
                accepted="to speak to a run from outside of `on_decision` and `replace`",
            )
        self._lock.acquire()
        self._owner = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._owner = 0
        self._lock.release()


class _Step(NamedTuple):
    """A call of a wrapped tool: its arguments, None where it is not made; why; its number."""

    arguments: Mapping[str, Any] | None
    message: str
    place: int | None


def _place(settled: Settled) -> int | None:
    """Return the number of a call among those that were made; None if it was not made."""
    if settled.call is None or settled.state.standing is None:
        return None
    return settled.state.standing.progress.step - 1


def _same(decision: Decision, asked: Decision | None) -> bool:
    """Tell whether a person has answered to this already."""
    return asked is not None and (decision.rule, decision.action) == (asked.rule, asked.action)


def _check_whole(result: object, title: str) -> None:
    """Refuse a result that is read piece by piece, unseen by the rules; raises GuardError."""
    if isinstance(result, (Iterator, AsyncIterator)):
        raise GuardError(
            f"the tool {title!r} returned {type(result).__name__}, which gives its result piece "
            "by piece",
            accepted="the whole result",
        )
