"""The signals of each step of an agent's run: what is known before a call is made.

Readers of files and guards that watch live runs both use this module, so that a monitor file has
the same meaning for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from forewarn.config.agent_signals import PROPOSED, RUN
from forewarn.wings.agents.calls import Call
from forewarn.wings.agents.texts import text_of

LONGEST_TEXT = 200_000
"""Characters of a text that is judged; a longer one is unknown, for its end may say anything."""
KEPT_OUTPUTS = 1_000_000
"""Characters of all outputs, or all inputs, of a run; beyond that the oldest are unknown."""

Note = Callable[[str], None]
"""Called with what was left out."""


def unheard(text: str) -> None:
    """Ignore a warning about what was left out."""


class Progress(NamedTuple):
    """What is known of a run before its next call.

    `step`: number of the next step, from 0.
    `task`: what the agent was asked to do; None where it is too long.
    `calls`: names of the calls so far.
    `inputs` (tuple of (tuple of (str or None), or None)): texts of the arguments of each of these
        calls. A text that is too long is None, and so are the oldest where they are too long
        together.
    `outputs` (tuple of (str or None)): texts of the results so far, in the same way.
    `errors`: how many calls failed so far.
    `failed`: the last call that was answered failed.
    `past_args` (tuple of (str or None)): the arguments of each of these calls by name, as JSON;
        forgotten like `inputs`.
    """

    step: int = 0
    task: str | None = ""
    calls: tuple[str, ...] = ()
    inputs: tuple[tuple[str | None, ...] | None, ...] = ()
    outputs: tuple[str | None, ...] = ()
    errors: int = 0
    failed: bool = False
    past_args: tuple[str | None, ...] = ()

    def with_user_message(self, text: str, note: Note = unheard) -> Progress:
        """Return what is known once the user has said more."""
        if self.task is None:
            return self
        task = "\n".join(filter(None, (self.task, text)))
        return self._replace(task=bounded(task, "task", note))

    def proposing(self, run: object, call: Call, note: Note = unheard) -> dict[str, Any]:
        """Return the signals of the step before a call: it can still be stopped."""
        arguments = [bounded(text, "arguments", note) for _, text in call.arguments]
        return {
            **self._known(run, [*self._inputs(), arguments]),
            "action": call.action,
            PROPOSED: call.action,
            "args": bounded(call.args, "args", note),
            "arguments": arguments,
            "argument_names": [name for name, _ in call.arguments],
        }

    def closing(self, run: object) -> dict[str, Any]:
        """Return the signals of the step after the last call: it proposes nothing."""
        return {
            **self._known(run, self._inputs()),
            "action": None,
            PROPOSED: "",
            "args": "{}",
            "arguments": [],
            "argument_names": [],
        }

    def made(
        self,
        name: str,
        arguments: Sequence[str | None] | None = (),
        note: Note = unheard,
        *,
        args: str | None = "{}",
    ) -> Progress:
        """Return what is known once a call is made, and its result is not known yet.

        `arguments`: as the signal `arguments` had them before the call; None if that is forgotten.
        `args`: as the signal `args` had them.
        """
        given = None if arguments is None else tuple(arguments)
        inputs: list[tuple[str | None, ...] | None] = [*self.inputs, given]
        _forget_oldest(inputs, lambda texts: sum(map(_size, texts)), "inputs", note)
        past: list[str | None] = [*self.past_args, args]
        _forget_oldest(past, len, "past_args", note)
        calls, rest = (*self.calls, name), self[4:-1]
        return Progress(self.step + 1, self.task, calls, tuple(inputs), *rest, tuple(past))

    def answered(
        self, text: str, failed: bool, note: Note = unheard, *, call: int | None = None
    ) -> Progress:
        """Return what is known once a call has been answered.

        `text`: the result.
        `failed`: whether the call failed.
        `note`: called with what was left out.
        `call`: number of the call, from 0; by default the one after the last that was answered.
            Calls before it that have no answer yet have an empty output.
        """
        at = len(self.outputs) if call is None else call
        outputs = [*self.outputs, *[""] * (at + 1 - len(self.outputs))]
        outputs[at] = bounded(text, "observation", note)
        _forget_oldest(outputs, len, "outputs", note)
        errors = self.errors + failed
        return Progress(*self[:4], tuple(outputs), errors, failed, self.past_args)

    def _inputs(self) -> list[list[str | None] | None]:
        return [None if texts is None else list(texts) for texts in self.inputs]

    def _known(self, run: object, inputs: list[list[str | None] | None]) -> dict[str, Any]:
        return {
            RUN: run,
            "step": self.step,
            "task": self.task,
            "calls": list(self.calls),
            "last_action": self.calls[-1] if self.calls else "",
            "observation": self.outputs[-1] if self.outputs else "",
            "inputs": inputs,
            "past_args": list(self.past_args),
            "outputs": list(self.outputs),
            "errors": self.errors,
            "failed": self.failed,
        }


KNOWN_AFTERWARDS = (RUN, "step", "calls", "inputs", "past_args", "last_action")
"""Signals of the step after a call that the call alone determines, whatever comes of it."""


T = TypeVar("T")


def _size(text: str | None) -> int:
    return 0 if text is None else len(text)


def _forget_oldest(parts: list[T | None], size: Callable[[T], int], name: str, note: Note) -> None:
    """Forget the oldest parts of too many characters: each part keeps the number of its call."""
    sizes = [0 if part is None else size(part) for part in parts]
    total, at = sum(sizes), 0
    while total > KEPT_OUTPUTS:
        if sizes[at]:
            total -= sizes[at]
            parts[at] = None
            note(f"the {name} have more than {KEPT_OUTPUTS} characters; the oldest are unknown")
        at += 1


def bounded(text: str, name: str, note: Note) -> str | None:
    """Return a text, or None if it is too long to be judged, and say so."""
    if len(text) <= LONGEST_TEXT:
        return text
    note(f"{name} has more than {LONGEST_TEXT} characters: it is unknown")
    return None


def text_of_result(value: object) -> str:
    """Return what a tool returned as a text, of which the beginning counts."""
    return text_of(value, LONGEST_TEXT)
