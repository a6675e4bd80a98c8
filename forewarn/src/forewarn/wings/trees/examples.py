"""Concrete states of recordings, and the classes that a tree is to predict.

A run is what one recording shows: the values of its variables at each moment, what was done then,
which declared predicates held, and where properties were violated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.checking.interface import ENDED, label_states
from forewarn.errors import ConfigError, RecordingError
from forewarn.learning.observing import observe
from forewarn.logic.automaton import Automaton, restart_state
from forewarn.logic.specification import CompiledSpec
from forewarn.recordings.groups import Grouping
from forewarn.recordings.registry import open_recording
from forewarn.states.interface import Observed, StateSpace, is_terminal
from forewarn.wings.trees.candidates import Examples

END = "(end)"
UNKNOWN = "(unknown)"
WAYS = "action, state, suffix:STEPS, violation:PROPERTY:DURATION"


class RunStep(NamedTuple):
    """One moment of a run, and the `action` that was done after it.

    `state` is the key of the state by the monitor file as it is, None if not known; `reached` tells
    that the goal that was asked for holds. Where a terminal label (key `label`) ends the episode
    right after this moment, `ends` are the properties that it violates; none if the recording ends
    there and that is a state (``recording_end: absorb``); else None.
    """

    values: dict[str, Any]
    action: str | None
    state: str | None
    violated: tuple[str, ...]
    reached: bool = False
    ends: tuple[str, ...] | None = None
    label: str | None = None


Run = Sequence[RunStep]
Classify = Callable[[Run, int], Hashable]


def read_run(
    path: Path,
    compiled: CompiledSpec,
    variables: Sequence[str],
    goal: str | None = None,
    *,
    allow_missing: bool = False,
) -> list[list[RunStep]]:
    """Return the episodes of a recording, maybe none: moments that follow one another.

    Moments count at which the monitor is active and no label holds. An episode ends where one does
    not count, with an intervention, where a moment was missed, where a node's record says that the
    session started again, and with the first moment at which `goal` holds, a predicate or label.
    """
    spec, abstraction = compiled.spec, compiled.abstraction
    space = abstraction.vocabulary
    slots = [(name, abstraction.signals.index(name)) for name in variables]
    watched = [
        _Watched(name, automaton, space)
        for name, automaton in zip(spec.properties, compiled.automata, strict=True)
    ]
    episodes = _Episodes()
    with open_recording(path) as recording:
        for snapshot, seen, action, _ in observe(
            recording, spec, abstraction, allow_missing=allow_missing
        ):
            observation = seen.observation
            violated = tuple(one.name for one in watched if one.read(observation))
            reached = goal is not None and space.truth(goal, observation) is True
            state = None if observation.state is None else space.key(observation.state)
            values = {name: seen.values[slot] for name, slot in slots}
            free = observation.active is True and observation.intervened is False
            episodes.add(
                snapshot.tick,
                RunStep(values, action, state, violated, reached),
                counts=free,
                ended=observation.ended,
            )
    if spec.learning.recording_end == "absorb":
        episodes.end()
    return episodes.found


def run_of(
    path: Path,
    compiled: CompiledSpec,
    variables: Sequence[str],
    goal: str | None,
    allow_missing: bool,
    grouping: Grouping | None,
    progress: Callable[[float], None] | None = None,
) -> tuple[list[list[RunStep]], str, str]:
    """Return what `read_run` does, the recording's digest and its group; without episodes no more.

    The group of a recording that is in none is its digest.
    """
    del progress
    episodes = read_run(path, compiled, variables, goal, allow_missing=allow_missing)
    if not episodes:
        return episodes, "", ""
    with open_recording(path) as recording:
        digest = recording.digest()
        return episodes, digest, digest if grouping is None else grouping.of(recording)


class _Episodes:
    """Puts the moments of a recording into episodes."""

    def __init__(self) -> None:
        self.found: list[list[RunStep]] = []
        self._tick: int | None = None
        self._here: list[RunStep] | None = None

    def add(self, tick: int, moment: RunStep, *, counts: bool, ended: bool) -> None:
        """Take in a moment that counts or does not, or at which a label has ended the episode."""
        if self._tick is not None and tick != self._tick + 1:
            self._here = None
        self._tick = tick
        if ended or not counts:
            if self._here and counts and moment.reached and not self._here[-1].reached:
                self._here.append(moment)
            elif self._here and ended and counts:
                last = self._here[-1]
                self._here[-1] = last._replace(ends=moment.violated, label=moment.state)
            elif self._here and moment.violated:
                # A violation that is no moment itself counts for the moment before it.
                last = self._here[-1]
                self._here[-1] = last._replace(violated=(*last.violated, *moment.violated))
            self._here = None
        elif self._here is None:
            self._here = [moment]
            self.found.append(self._here)
        elif not self._here[-1].reached:
            self._here.append(moment)

    def end(self) -> None:
        """Let the end of the recording be a state of its own, which violates nothing."""
        if self._here and not self._here[-1].reached:
            self._here[-1] = self._here[-1]._replace(ends=())


class _Watched:
    """Runs one property over a recording; it starts again after an unknown moment."""

    def __init__(self, name: str, automaton: Automaton, space: StateSpace) -> None:
        self.name = name
        self._automaton = automaton
        self._space = space
        self._state: int | None = automaton.initial
        self._over = False
        self._letters: dict[int, int] = {}

    def read(self, observation: Observed) -> bool:
        """Read one moment; tell whether it violates the property."""
        automaton = self._automaton
        letter = self._letter(observation)
        if letter == ENDED:
            self._state = automaton.initial
            return False
        if self._state is None:
            # A breach counts once until it has cleared.
            self._state = restart_state(automaton, letter)
            return False
        following = int(automaton.transitions[self._state, letter])
        violated = following == automaton.violated
        self._state = restart_state(automaton, letter) if violated else following
        if self._over:
            self._state = automaton.initial
        return violated

    def _letter(self, observation: Observed) -> int:
        """Return the letter of a moment; `ENDED` where no property can be pending after it."""
        state, was_over = observation.state, self._over
        self._over = observation.active is True and state is not None and is_terminal(state)
        # A label that the formula names is read once, however long it is held.
        if state is None or observation.active is not True or (was_over and self._over):
            return ENDED
        if state not in self._letters:
            self._letters[state] = int(label_states(self._automaton, self._space, (state,))[0])
        return self._letters[state]


def classifier(text: str, compiled: CompiledSpec) -> Classify:
    """Return what gives a moment of a run its class; raises ConfigError.

    ``action``: what is done next (the paper's). ``state``: the state that follows, by the monitor
    file as it is. ``suffix:3``: the next three actions. ``violation:calm:2``: whether a violation
    of the property ``calm`` follows within so many seconds or steps, in the same episode; unknown
    where the recording ends before, unless its end is a state of its own.
    """
    what, *rest = text.split(":")
    if what == "action" and not rest:
        return lambda run, i: run[i].action or (END if i + 1 == len(run) else UNKNOWN)
    if what == "state" and not rest:
        return lambda run, i: (
            (run[i].label or END) if i + 1 == len(run) else (run[i + 1].state or UNKNOWN)
        )
    if what == "suffix" and len(rest) == 1 and re.fullmatch(r"[1-9]\d{0,2}", rest[0]):
        length = int(rest[0])
        return lambda run, i: tuple(one.action or END for one in run[i : i + length])
    if what == "violation" and len(rest) == 2 and rest[0] in compiled.spec.properties:
        return _within(rest[0], _steps(rest[1], compiled))
    names = ", ".join(compiled.spec.properties)
    raise ConfigError(f"{text!r} is no class", accepted=f"{WAYS}; properties: {names}")


def _steps(text: str, compiled: CompiledSpec) -> int:
    clock = compiled.abstraction.clock
    try:
        steps = clock.ticks(float(text))
    except ValueError:
        steps = 0
    if steps < 1:
        raise ConfigError(
            f"{text!r} is no duration",
            accepted=f"a number of {clock.unit}, one {clock.noun} or more",
        )
    return steps


def _within(name: str, steps: int) -> Classify:
    def violation(run: Run, i: int) -> str:
        for j in range(i, i + steps):
            ends = run[j].ends
            if ends is not None:
                return "violation" if name in ends else "none"
            if j + 1 == len(run):
                return UNKNOWN
            if name in run[j + 1].violated:
                return "violation"
        return "none"

    return violation


def examples_of(
    recordings: Sequence[Sequence[Run]],
    classify: Classify,
    variables: Sequence[str],
    groups: Sequence[Hashable],
) -> Examples:
    """Return the moments of recordings with their classes, without those whose class is unknown.

    Examples of one group share the number of their run. Raises RecordingError if no class is known.
    """
    number = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    found = [
        (moment, kind, number[group])
        for group, episodes in zip(groups, recordings, strict=True)
        for run in episodes
        for i, moment in enumerate(run)
        if (kind := classify(run, i)) != UNKNOWN
    ]
    if all(kind == END or (isinstance(kind, tuple) and {*kind} == {END}) for _, kind, _ in found):
        raise RecordingError(
            "no moment has a known class: no action is known, or nothing follows",
            accepted="`action:` in the monitor file, the key action of lines, or another class",
        )
    return Examples(
        {name: [moment.values[name] for moment, _, _ in found] for name in variables},
        [kind for _, kind, _ in found],
        [number for _, _, number in found],
    )


def closing_variables(
    recordings: Sequence[Sequence[Run]], variables: Sequence[str]
) -> tuple[str, ...]:
    """Return the variables that are known at the last moment of episodes alone.

    They say what came of an episode, as labels do, and are unknown while it goes on. There are
    none where no episode has two moments.
    """
    running = [moment for runs in recordings for run in runs for moment in run[:-1]]
    last = [run[-1] for runs in recordings for run in runs]
    return tuple(
        name
        for name in variables
        if running
        and all(moment.values[name] is None for moment in running)
        and any(moment.values[name] is not None for moment in last)
    )
