"""What one recording went through, transition by transition, as learning counts them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from forewarn.learning.counting import TransitionCounter
from forewarn.learning.pipeline import observe
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import END_LABEL
from forewarn.recordings import open_recording
from forewarn.states.interface import is_terminal, terminal_code


class Transition(NamedTuple):
    """A state, what was done in it, and the state that followed.

    Attributes
    ----------
    tick : int
        Moments from the first one of the recording to the one of `state`.
    state, following : int
        State codes.
    action : str or None
        None if it is not known.
    """

    tick: int
    state: int
    action: str | None
    following: int


def read_transitions(
    path: Path,
    compiled: CompiledSpec,
    progress: Callable[[float], None] | None = None,
    *,
    allow_missing: bool = False,
) -> list[Transition]:
    """Return the transitions of a recording.

    They are those that learning counts, and those that a constraint excludes: what cannot be is
    no less of a surprise. Unknown states and interventions break the run.

    Raises
    ------
    RecordingError
        If the recording cannot be read or lacks a topic.
    """
    spec, abstraction = compiled.spec, compiled.abstraction
    counter = TransitionCounter(abstraction.vocabulary, spec.learning.end)
    found: list[Transition] = []
    first: int | None = None
    before: tuple[int, int, str | None] | None = None
    with open_recording(path) as recording:
        for snapshot, seen, action, _ in observe(
            recording, spec, abstraction, progress, allow_missing=allow_missing
        ):
            first = snapshot.tick if first is None else first
            observation = seen.observation
            state = observation.state if observation.active is True else None
            intervened = observation.intervened is not False
            counted = counter.add(snapshot.tick, state, intervened)
            if counted and before is not None and state is not None:
                found.append(Transition(*before, state))
            known = state is not None and not intervened
            before = (snapshot.tick - first, state, action) if known and state is not None else None
    if spec.learning.end == "absorb" and before is not None and not is_terminal(before[1]):
        end = terminal_code(counter.vocabulary.terminals.index(END_LABEL))
        found.append(Transition(*before, end))
    return found
