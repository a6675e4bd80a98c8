"""Which conditions held when, one lane each: what the picture of the state is drawn from."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.history import Track
from forewarn.config.actions import SEVERITY, WARN
from forewarn.config.file import MonitorSpec
from forewarn.config.sections import PropertySpec
from forewarn.monitoring.intervention import answers_of
from forewarn.monitoring.policy import Level
from forewarn.signals.clock_kinds import Grid
from forewarn.states.interface import Observed, StateSpace, is_terminal

OFF, UNKNOWN, ON, TERMINAL = range(4)
"""What a lane shows; of the ticks behind one pixel the greatest wins, so that nothing is lost."""

WARNING = "warning only"
"""Lane of ticks at the level of a warning, with no alert; WARN is an action of alerts."""


class Lanes(NamedTuple):
    """Conditions over a run.

    `names`: one for each lane, from the top.
    `position` (shape (n,)): row of `table` for every tick.
    `table`: `OFF`, `UNKNOWN`, `ON` or `TERMINAL` for each lane.
    """

    names: tuple[str, ...]
    position: NDArray[np.int32]
    table: tuple[tuple[int, ...], ...]


class StateLog:
    """Collects what was known of the state, tick by tick.

    `vocabulary`: its present predicates and its terminal labels have a lane each.
    """

    def __init__(self, vocabulary: StateSpace) -> None:
        self._vocabulary = vocabulary
        self._seen: dict[Observed, int] = {}
        self._position = array("i")

    def add(self, observation: Observed, times: int = 1) -> None:
        """Take in some ticks that show the same."""
        place = self._seen.setdefault(observation, len(self._seen))
        self._position.extend((place,) * times)

    def lanes(self) -> Lanes:
        """Return what was collected."""
        table = tuple(map(self._lane, self._seen))
        names = (*self._vocabulary.present, *self._vocabulary.terminals)
        return Lanes(names, np.array(self._position, dtype=np.int32), table)

    def _lane(self, observation: Observed) -> tuple[int, ...]:
        state, shown = observation.state, {True: ON, False: OFF, None: UNKNOWN}
        if state is not None and is_terminal(state):
            predicates = [OFF] * len(self._vocabulary.present)
        else:
            predicates = [
                shown[self._vocabulary.truth(name, observation)]
                for name in self._vocabulary.present
            ]
        shown[True] = TERMINAL
        labels = [
            shown[self._vocabulary.truth(name, observation)] for name in self._vocabulary.terminals
        ]
        return (*predicates, *labels)


def requests(spec: MonitorSpec, tracks: Sequence[Track]) -> Lanes:
    """Return a lane for each action that was asked for, the strongest at the bottom.

    The strongest answer of all alerts wins at each tick, as in `monitoring.intervention.advise`.
    What only warns, for its risk is above `warn`, has a lane of its own, `WARNING`: live it is
    published as the action WARN, too, but no rule asked for that.

    `spec`: what each property asks for, and after which time it asks for more.
    """
    count = len(tracks[0].ticks) if tracks else 0
    urgency = np.zeros(count, dtype=np.int32)
    for track in tracks:
        np.maximum(urgency, _urgency(spec.properties[track.name], track), out=urgency)
    position = urgency % len(SEVERITY)
    names = (*SEVERITY, WARNING)
    position[urgency // len(SEVERITY) == Level.WARN] = names.index(WARNING)
    order = (names.index(WARNING), *range(1, len(SEVERITY)))
    present = [i for i in order if (position == i).any()]
    table = tuple(tuple(ON if i == row else OFF for row in present) for i in range(len(names)))
    return Lanes(tuple(names[i] for i in present), position, table)


def _urgency(section: PropertySpec, track: Track) -> NDArray[np.int32]:
    """Return level and severity of one property's answer as a number, for every tick."""
    level = track.level.astype(np.int32)
    begins = np.diff(level, prepend=-1) != 0
    lasted = track.ticks - np.maximum.accumulate(np.where(begins, track.ticks, track.ticks.min()))
    severity = np.zeros(len(level), dtype=np.int32)
    for answer in answers_of(section, Grid(track.rate)):
        severity[lasted >= answer.after] = SEVERITY.index(answer.intervention)
    severity[level == Level.WARN] = SEVERITY.index(WARN)
    severity[level == Level.NONE] = 0
    return level * len(SEVERITY) + severity
