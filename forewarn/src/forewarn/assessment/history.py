"""The verdicts of a run, tick by tick, in columns: a few dozen bytes for each tick and property."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forewarn.monitoring.composition import violation_values
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.tables import CompiledProperty
from forewarn.monitoring.verdict import PropertyStatus, PropertyVerdict, Verdict
from forewarn.signals.clock import Clock, horizon_ticks
from forewarn.states.condition import Condition

UNKNOWN_STATE = -1


@dataclass(frozen=True, eq=False)
class Track:
    """One property over one run; all arrays have one entry for each tick, shape (n,).

    `horizon`: ticks that its risk looks ahead; None for an unbounded horizon.
    `ticks`: numbers of the ticks, rising.
    `state`: position in `History.states`; -1 where the state is not fully known.
    `status`: a `PropertyStatus`.
    `violation`, `possible`: a violation happened, or may have happened.
    `counted`: a violation happened, and it is the first of its breach.
    `broken`: a `Broken`: whether a breach is open, and lasts.
    `figure`: what the policy compared with its thresholds; NaN where nothing is known.
    `out_of_model`: the policy treated the state as never seen by the model.
    `held`: what `hold_while` of the monitor file says holds, or may hold.
    `probability`, `lower`, `upper`: risk and its bounds in [0, 1]; NaN where there is none.
    `in_model`: the model knows the state.
    `terminal`: a terminal label holds, whether or not the property names it.
    `ambiguous`: with what is known the automaton may be in one of several states.
    `level`: a `Level`.
    `automaton`: the automaton's state, the first of several.
    `min_risk`: least risk over all ways to choose; NaN where there is none.
    `expected`: mean risk over what the state may be; NaN where there is none.
    `prevented`: by an operator's label there was danger, but no violation: one may have been
        prevented. None without labels.
    """

    name: str
    rate: float
    horizon: int | None
    ticks: NDArray[np.int64]
    state: NDArray[np.int32]
    status: NDArray[np.int8]
    violation: NDArray[np.bool_]
    possible: NDArray[np.bool_]
    counted: NDArray[np.bool_]
    broken: NDArray[np.int8]
    figure: NDArray[np.float64]
    out_of_model: NDArray[np.bool_]
    held: NDArray[np.bool_]
    probability: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    in_model: NDArray[np.bool_]
    terminal: NDArray[np.bool_]
    ambiguous: NDArray[np.bool_]
    level: NDArray[np.int8]
    automaton: NDArray[np.int32]
    min_risk: NDArray[np.float64] | None = None
    expected: NDArray[np.float64] | None = None
    prevented: NDArray[np.bool_] | None = None

    @property
    def unsure(self) -> NDArray[np.bool_]:
        """Ticks at which it is not known whether the property is violated or on its way to it."""
        unsure = self.possible | self.ambiguous
        return unsure if self.prevented is None else unsure | self.prevented


class _Columns:
    """The growing columns of one property."""

    def __init__(self, hold_while: Condition | None) -> None:
        self.hold_while = hold_while
        self.small = array("B")  # status, flags, level, broken
        self.risks = array("d")  # probability, lower, upper, min_risk, expected, figure
        self.automaton = array("i")

    def add(self, verdict: PropertyVerdict, values: Sequence[Any], times: int) -> None:
        flags = verdict.violation | verdict.possible_violation << 1 | verdict.in_model << 2
        flags |= (len(verdict.automaton) > 1) << 3 | verdict.counted << 4
        flags |= verdict.shown.out_of_model << 5
        if self.hold_while is not None:  # the step asks only while an alert acts
            flags |= (self.hold_while.truth(values)[0] is not False) << 6
        small = verdict.status, flags, verdict.level, verdict.broken
        risks = (
            verdict.probability,
            verdict.lower,
            verdict.upper,
            verdict.least.probability,
            verdict.expected.probability,
            verdict.shown.figure,
        )
        self.small.extend(small * times)
        self.risks.extend(risks * times)
        self.automaton.extend((verdict.automaton[0] if verdict.automaton else -1,) * times)


class History:
    """Collects the verdicts of one run.

    `monitor`: whose verdicts they are: for names, horizons, rate and automata.

    `states`: position of every state code that occurred, in order of appearance.
    `stale`: ticks for which each signal was stale or had not arrived.
    `failures`: ticks with a failure, for each place (a topic or a signal).
    `reasons`: the first reason given for a failure of each place.
    `seen`: for each violation that counts, by property and tick: the signals that the property
        reads, with their values.
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._ticks = array("q")
        self._states = array("i")
        self._ended = array("b")
        self._columns = tuple(_Columns(prop.hold_while) for prop in monitor.properties)
        self.states: dict[int, int] = {}
        self.stale: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}
        self.seen: dict[tuple[str, int], dict[str, Any]] = {}

    def __len__(self) -> int:
        """Return the number of ticks."""
        return len(self._ticks)

    @property
    def clock(self) -> Clock:
        """Return the clock of the monitor: what a tick is called, and how long it lasts."""
        return self._monitor.clock

    def add(self, verdict: Verdict) -> None:
        """Take in one tick, and those that repeat it."""
        times = verdict.repeats + 1
        self._ticks.extend(range(verdict.tick, verdict.tick + times))
        state = verdict.observation.state
        self._ended.extend((verdict.observation.ended,) * times)
        place = UNKNOWN_STATE
        if state is not None:
            place = self.states.setdefault(state, len(self.states))
        self._states.extend((place,) * times)
        for i, prop in enumerate(verdict.properties):
            self._columns[i].add(prop, verdict.values, times)
            if prop.counted:
                found = violation_values(self._monitor, self._monitor.properties[i], verdict)
                self.seen[prop.name, verdict.tick] = found
        for signal in verdict.stale:
            self.stale[signal.name] += times
        for failure in verdict.failures:
            self.failures[failure.where] += times
            self.reasons.setdefault(failure.where, failure.reason)

    @property
    def ticks(self) -> NDArray[np.int64]:
        """Numbers of the ticks, shape (n,)."""
        return np.array(self._ticks, dtype=np.int64)

    @property
    def unknown(self) -> int:
        """Ticks whose state was not fully known."""
        return self._states.count(UNKNOWN_STATE)

    @property
    def known_states(self) -> Sequence[int]:
        """Codes of the states that occurred; a `Track.state` is a position in it."""
        return tuple(self.states)

    def tracks(self) -> tuple[Track, ...]:
        """Return the columns of every property, in the order of the monitor file."""
        state = np.array(self._states, dtype=np.int32)
        return tuple(
            self._track(compiled, state, columns)
            for compiled, columns in zip(self._monitor.properties, self._columns, strict=True)
        )

    def _track(
        self, compiled: CompiledProperty, state: NDArray[np.int32], columns: _Columns
    ) -> Track:
        small = np.array(columns.small, dtype=np.int8).reshape(-1, 4)
        risks: NDArray[Any] = np.array(columns.risks, dtype=np.float64).reshape(-1, 6)
        status, flags = small[:, 0], small[:, 1]
        clock, section = self._monitor.clock, compiled.spec
        return Track(
            name=compiled.name,
            rate=clock.rate,
            horizon=horizon_ticks(clock, section.horizon),
            ticks=self.ticks,
            state=state,
            status=status,
            violation=(flags & 1) != 0,
            possible=(flags & 2) != 0,
            counted=(flags & 16) != 0,
            broken=small[:, 3],
            figure=risks[:, 5],
            out_of_model=(flags & 32) != 0,
            held=(flags & 64) != 0,
            probability=risks[:, 0],
            lower=risks[:, 1],
            upper=risks[:, 2],
            in_model=(flags & 4) != 0,
            terminal=np.array(self._ended, dtype=bool) | (status == PropertyStatus.ENDED),
            ambiguous=(flags & 8) != 0,
            level=small[:, 2],
            automaton=np.array(columns.automaton, dtype=np.int32),
            min_risk=risks[:, 3],
            expected=risks[:, 4],
        )
