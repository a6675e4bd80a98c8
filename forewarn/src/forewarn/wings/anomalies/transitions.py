"""What one recording went through, transition by transition, as learning counts them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from forewarn.learning.observing import observe
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import END_LABEL
from forewarn.recordings.registry import open_recording
from forewarn.states.interface import Observed, is_terminal, terminal_code


class Transition(NamedTuple):
    """A state, what was done in it, and the state that followed.

    `tick`: moments from the first one of the recording to the one of `state`; live, its number.
    `state`, `following`: state codes.
    `action`: None if it is not known.
    """

    tick: int
    state: int
    action: str | None
    following: int


class Walk(NamedTuple):
    """Where a recording, or a live session, stands after a moment.

    `tick`: the last moment; None before the first.
    `state`: state code then, None if it was not known or an intervention shaped it.
    `action`: what was done in it.
    `episode`: number of the episode, from 0.
    `over`: a terminal label has ended it.
    """

    tick: int | None = None
    state: int | None = None
    action: str | None = None
    episode: int = 0
    over: bool = False

    def enter(
        self, tick: int, observation: Observed, action: str | None
    ) -> tuple[Walk, Transition | None]:
        """Take in a moment, and return the transition that it ended, if it ended one.

        Transitions are those that learning counts, and those that a constraint excludes: what
        cannot be is no less of a surprise. Unknown states and interventions break the walk.
        """
        episode, over = self.episode, self.over or observation.ended
        state = observation.state if observation.active is True else None
        if state is not None and not is_terminal(state) and over:
            episode, over = episode + 1, False
        if observation.intervened is not False:
            state = None
        found = None
        joined = self.state is not None and self.tick == tick - 1 and not is_terminal(self.state)
        if joined and state is not None:
            assert self.state is not None
            found = Transition(tick - 1, self.state, self.action, state)
        return Walk(tick, state, action, episode, over), found

    def broken(self) -> Walk:
        """Return the walk where the next state is not the robot's own doing."""
        return self._replace(state=None)


def read_transitions(
    path: Path,
    compiled: CompiledSpec,
    progress: Callable[[float], None] | None = None,
    *,
    allow_missing: bool = False,
) -> list[list[Transition]]:
    """Return the transitions of each episode of a recording, without episodes that have none.

    Raises RecordingError if the recording cannot be read or lacks a topic.
    """
    spec, abstraction = compiled.spec, compiled.abstraction
    episodes: dict[int, list[Transition]] = {}
    first: int | None = None
    walk = Walk()
    with open_recording(path) as recording:
        for snapshot, seen, action, _ in observe(
            recording, spec, abstraction, progress, allow_missing=allow_missing
        ):
            first = snapshot.tick if first is None else first
            walk, found = walk.enter(snapshot.tick - first, seen.observation, action)
            if found is not None:
                episodes.setdefault(walk.episode, []).append(found)
    if (
        spec.learning.recording_end == "absorb"
        and walk.state is not None
        and not is_terminal(walk.state)
    ):
        assert walk.tick is not None
        space = abstraction.vocabulary.with_terminal(END_LABEL)
        end = terminal_code(space.terminals.index(END_LABEL))
        last = Transition(walk.tick, walk.state, walk.action, end)
        episodes.setdefault(walk.episode, []).append(last)
    return list(episodes.values())


def transitions_of(
    path: Path,
    compiled: CompiledSpec,
    allow_missing: bool,
    progress: Callable[[float], None] | None = None,
) -> tuple[list[list[Transition]], str]:
    """Return what `read_transitions` does, and the digest of the recording."""
    episodes = read_transitions(path, compiled, progress, allow_missing=allow_missing)
    with open_recording(path) as recording:
        return episodes, recording.digest()
