"""Record what an agent written in Python sees and does, as a trace of steps.

Functions that say something about the agent's state are marked as observed variables, functions
that are its tools as actions. Each call of an action writes one line, before the call: the values
of all observed variables, and the signals that `agent_steps` knows of a call. So one monitor file
serves for what is recorded here and for files of runs::

    trace = Trace("runs.jsonl")

    @trace.observed(role="checkpoint")
    def tests_passed() -> bool: ...

    @trace.action
    def write_file(path: str, text: str) -> str: ...

    with trace.run("a17", task="mend the parser") as run:
        work()
        run.label(solved=True)

`Trace.sections` writes the sections of a monitor file that read them.
"""

from __future__ import annotations

import functools
import inspect
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, overload

from forewarn.errors import RecordingError, located
from forewarn.recordings.traces import line_value
from forewarn.wings.agents.calls import TAKEN, Call
from forewarn.wings.agents.steps import Progress, text_of_result

Role = Literal["goal", "checkpoint", "state", "ignored"]
Reads = TypeVar("Reads", bound=Callable[[], Any])
Tool = TypeVar("Tool", bound=Callable[..., Any])

ROLES = get_args(Role)


class Run:
    """One run while it is recorded; `Trace.run` makes it.

    `name`: what the lines say under ``run``.
    `goals`, `labels`: variables that stay the same all through it, and what came of it.
    `progress`: what is known of its calls.
    """

    def __init__(self, name: str, task: str, goals: Mapping[str, Any]) -> None:
        self.name = name
        self.goals = dict(goals)
        self.labels: dict[str, Any] = {}
        self.progress = Progress().with_user_message(task)

    def label(self, **labels: Any) -> None:
        """Say what came of the run: on its last line alone, so that no state can know it."""
        self.labels.update(labels)


class Trace:
    """A file of JSON lines to which runs are appended.

    `path`: the file; what it holds already stays.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._variables: dict[str, tuple[Role, Callable[[], Any]]] = {}
        self._goals: dict[str, None] = {}
        self._labels: dict[str, None] = {}
        self._kinds: dict[str, str] = {}
        self._run: Run | None = None
        self._lock = threading.RLock()

    @overload
    def observed(self, read: Reads) -> Reads: ...
    @overload
    def observed(
        self, *, name: str | None = None, role: Role = "state"
    ) -> Callable[[Reads], Reads]: ...
    def observed(
        self, read: Reads | None = None, *, name: str | None = None, role: Role = "state"
    ) -> Reads | Callable[[Reads], Reads]:
        """Mark a function without arguments: its value is a variable of every step.

        `name`: name of the variable; that of the function if left out.
        `role`: ``state``, ``checkpoint`` (a flag of the workflow), ``goal`` or ``ignored``.

        Raises RecordingError if the name is taken, or no role is of that name.
        """

        def mark(function: Reads) -> Reads:
            called = name or function.__name__
            self._check_name(called)
            if called in self._variables:
                raise RecordingError(
                    f"there is a variable {called!r} already", accepted="a name of its own"
                )
            if role not in ROLES:
                raise RecordingError(f"{role!r} is no role", accepted=", ".join(ROLES))
            self._variables[called] = (role, function)
            return function

        return mark if read is None else mark(read)

    def action(self, tool: Tool) -> Tool:
        """Mark a tool, a function or a coroutine function: each call of it in a run is a step.

        Outside of a run it does what it did before. An exception of the tool is noted as an error
        of the step and passes on.
        """
        signature, called = inspect.signature(tool), tool.__name__

        if inspect.iscoroutinefunction(tool):

            @functools.wraps(tool)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                step = self._begin(called, signature, args, kwargs)
                try:
                    result = await tool(*args, **kwargs)
                except BaseException as error:
                    self._came(step, None, error)
                    raise
                self._came(step, result)
                return result

            return awaited  # type: ignore[return-value]

        @functools.wraps(tool)
        def call(*args: Any, **kwargs: Any) -> Any:
            step = self._begin(called, signature, args, kwargs)
            try:
                result = tool(*args, **kwargs)
            except BaseException as error:
                self._came(step, None, error)
                raise
            self._came(step, result)
            return result

        return call  # type: ignore[return-value]

    @contextmanager
    def run(self, name: str, task: str = "", **goals: Any) -> Iterator[Run]:
        """Record a run.

        `name`: what tells it from others.
        `task`: what the agent is asked to do.
        `**goals`: goal variables: they stay the same all through the run.

        Raises RecordingError if a run goes on already, or a value is of no type that a trace can
        hold.
        """
        for goal in goals:
            self._check_name(goal)
        with self._lock:
            if self._run is not None:
                raise RecordingError(
                    f"the run {self._run.name!r} goes on already",
                    file=self.path,
                    accepted="one run at a time; a Trace of its own for another thread of work",
                )
            run = self._run = Run(name, task, goals)
            self._goals.update(dict.fromkeys(goals))
        try:
            yield run
        finally:
            with self._lock:
                self._run = None
                for label in run.labels:
                    self._check_name(label)
                self._labels.update(dict.fromkeys(run.labels))
                self._write(run, {**run.labels, **run.progress.closing(run.name)})

    def sections(self) -> str:
        """Return the sections of a monitor file that read the trace; labels are taken for flags."""
        roles = {name: role for name, (role, _) in self._variables.items()}
        roles.update(dict.fromkeys(self._goals, "goal"))
        lines = ["clock: steps", "signals:"]
        roles.update(dict.fromkeys(("last_action", "errors", "failed"), "state"))
        lines += [f"  {name}: {{}}" for name in (*roles, "proposed")]
        if self._labels:
            lines.append("  # Known on the last line of a run alone:")
        lines += [f"  {name}: {{default: false}}" for name in self._labels]
        lines += ["terminal:"]
        lines += [f"  was_{name}: {name}" for name in self._labels]
        lines += ["  over: proposed == ''", "states:", "  kind: tree", "  variables:"]
        lines += [f"    {name}: {role}" for name, role in roles.items()]
        return "\n".join(lines) + "\n"

    def _check_name(self, name: str) -> None:
        if name in TAKEN:
            raise RecordingError(
                f"a variable cannot have the name {name!r}",
                accepted=f"another name than {', '.join(sorted(TAKEN))}",
            )

    def _begin(
        self, action: str, signature: inspect.Signature, args: Sequence[Any], kwargs: Any
    ) -> tuple[Run, int] | None:
        """Note a call; return its run and its number in it, None outside of a run."""
        with self._lock:
            run = self._run
            if run is None:
                return None
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError:  # the call itself will raise it
                given = {}
            named = {name: value for name, value in given.items() if name != "self"}
            call = Call.of(action, _as_json(named))
            signals = run.progress.proposing(run.name, call)
            self._write(run, signals)
            run.progress = run.progress.made(action, signals["arguments"], args=signals["args"])
            return run, run.progress.step - 1

    def _came(
        self, step: tuple[Run, int] | None, result: Any, error: BaseException | None = None
    ) -> None:
        if step is not None:
            run, number = step
            text = result if error is None else f"{type(error).__name__}: {error}"
            with self._lock:
                run.progress = run.progress.answered(
                    text_of_result(text), error is not None, call=number
                )

    def _write(self, run: Run, of_the_step: Mapping[str, Any]) -> None:
        values = {name: read() for name, (_, read) in self._variables.items()}
        values = {**of_the_step, **run.goals, **values}
        line = {
            name: value if name in TAKEN else self._checked(name, value)
            for name, value in values.items()
        }
        try:
            # An unpaired surrogate, as in names of files that are no UTF-8, becomes JSON's escape.
            with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError as error:
            raise RecordingError(
                f"cannot be written ({error.strerror or error})", file=self.path
            ) from error

    def _checked(self, name: str, value: Any) -> Any:
        """Return a value as JSON has it; raises RecordingError if it is of a wrong type."""
        with located(RecordingError, file=self.path):
            plain, kind = line_value(name, value)
        before = self._kinds.setdefault(name, kind) if kind != "unknown" else kind
        if before != kind:
            raise RecordingError(
                f"changes its type: {kind}, before it was {before}",
                file=self.path,
                key=name,
                accepted="a variable of one type",
            )
        return plain


def _as_json(value: Any) -> Any:
    """Return arguments as JSON has them: what it cannot hold becomes a text."""
    try:
        return json.loads(json.dumps(value, default=str))
    except (ValueError, TypeError, RecursionError):
        return {name: repr(item) for name, item in value.items()}
