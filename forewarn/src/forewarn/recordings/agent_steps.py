"""The signals of each step of an agent's run: what is known before a call is made.

Readers of files and guards that watch live runs both use this module, so that a monitor file has
the same meaning for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from forewarn.recordings.agent_calls import Call
from forewarn.recordings.agent_texts import text_of

KEY = "run"
"""Signal that names the run, or numbers those of a file from 0."""

PROPOSED = "proposed"
"""Signal that names the call that is about to be made; the key `action` says the same."""

OF_CALL = (PROPOSED, "arguments", "argument_names", "inputs")
"""Signals that tell of this call."""

LONGEST_TEXT = 20_000
KEPT_OUTPUTS = 200_000

Note = Callable[[str], None]
"""Is told what was left out."""


def unheard(text: str) -> None:
    """Ignore a warning about what was left out."""


class Progress(NamedTuple):
    """What is known of a run before its next call.

    Attributes
    ----------
    step : int
        Number of the next step, from 0.
    task : str
        What the agent was asked to do.
    calls : tuple of str
        Names of the calls so far.
    inputs : tuple of tuple of str
        Texts of the arguments of each of these calls, the oldest empty where they are too long.
    outputs : tuple of str
        Texts of the results so far, the oldest empty where they are too long.
    errors : int
        How many calls failed so far.
    failed : bool
        The last call that was answered failed.
    """

    step: int = 0
    task: str = ""
    calls: tuple[str, ...] = ()
    inputs: tuple[tuple[str, ...], ...] = ()
    outputs: tuple[str, ...] = ()
    errors: int = 0
    failed: bool = False

    def told(self, text: str, note: Note = unheard) -> Progress:
        """Return what is known once the user has said more."""
        task = "\n".join(filter(None, (self.task, text)))
        return self._replace(task=cut(task, "task", note))

    def proposing(self, run: object, call: Call, note: Note = unheard) -> dict[str, Any]:
        """Return the signals of the step before a call: it can still be stopped."""
        arguments = [cut(text, "arguments", note) for _, text in call.arguments]
        return {
            **self._known(run, [*map(list, self.inputs), arguments]),
            "action": call.action,
            PROPOSED: call.action,
            "arguments": arguments,
            "argument_names": [name for name, _ in call.arguments],
        }

    def closing(self, run: object) -> dict[str, Any]:
        """Return the signals of the step after the last call: it proposes nothing."""
        return {
            **self._known(run, [*map(list, self.inputs)]),
            "action": None,
            PROPOSED: "",
            "arguments": [],
            "argument_names": [],
        }

    def made(self, name: str, arguments: Sequence[str] = (), note: Note = unheard) -> Progress:
        """Return what is known once a call is made, and its result is not known yet.

        Parameters
        ----------
        arguments : sequence of str
            As the signal `arguments` had them before the call.
        """
        inputs = [*self.inputs, tuple(arguments)]
        total = sum(map(len, chain.from_iterable(inputs)))
        if total > KEPT_OUTPUTS:
            _empty_oldest(inputs, total, lambda texts: sum(map(len, texts)), (), "inputs", note)
        return Progress(self.step + 1, self.task, (*self.calls, name), tuple(inputs), *self[4:])

    def answered(
        self, text: str, failed: bool, note: Note = unheard, *, call: int | None = None
    ) -> Progress:
        """Return what is known once a call has been answered.

        Parameters
        ----------
        text : str
            The result.
        failed : bool
            Whether the call failed.
        note : callable
            Is told what was left out.
        call : int, optional
            Number of the call, from 0; by default the one after the last that was answered.
            Calls before it that have no answer yet have an empty output.
        """
        at = len(self.outputs) if call is None else call
        outputs = [*self.outputs, *[""] * (at + 1 - len(self.outputs))]
        outputs[at] = cut(text, "observation", note)
        total = sum(map(len, outputs))
        if total > KEPT_OUTPUTS:
            _empty_oldest(outputs, total, len, "", "outputs", note)
        return Progress(*self[:4], tuple(outputs), self.errors + failed, failed)

    def _known(self, run: object, inputs: list[list[str]]) -> dict[str, Any]:
        return {
            KEY: run,
            "step": self.step,
            "task": self.task,
            "calls": list(self.calls),
            "last_action": self.calls[-1] if self.calls else "",
            "observation": self.outputs[-1] if self.outputs else "",
            "inputs": inputs,
            "outputs": list(self.outputs),
            "errors": self.errors,
            "failed": self.failed,
        }


KNOWN_AFTERWARDS = (KEY, "step", "calls", "inputs", "last_action")
"""Signals of the step after a call that the call alone determines, whatever comes of it."""


T = TypeVar("T")


def _empty_oldest(
    parts: list[T], total: int, size: Callable[[T], int], empty: T, name: str, note: Note
) -> None:
    """Empty the oldest parts of too many characters: each part keeps the number of its call."""
    at = 0
    while total > KEPT_OUTPUTS:
        total -= size(parts[at])
        parts[at], at = empty, at + 1
        note(f"the {name} have more than {KEPT_OUTPUTS} characters; the oldest are left out")


def cut(text: str, name: str, note: Note) -> str:
    """Return the beginning of a text that is too long, and say so."""
    if len(text) <= LONGEST_TEXT:
        return text
    note(f"{name} has {len(text)} characters; those after {LONGEST_TEXT} are left out")
    return text[:LONGEST_TEXT]


def text_of_result(value: object) -> str:
    """Return what a tool returned as a text, of which the beginning counts."""
    return text_of(value, LONGEST_TEXT)
