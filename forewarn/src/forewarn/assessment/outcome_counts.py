"""What followed the moments of a recording, gathered while it is learned from.

The live monitor itself watches, without a model: so each moment is in the state, with the
automaton, in which the monitor would have been. Moments at which either is not known for certain
are left out, and outcomes are judged as `reliability` judges those of predictions. What happens
under an intervention is not what would have happened: nothing is judged across it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.censoring import concluded, run_ends
from forewarn.assessment.history import UNKNOWN_STATE, History, Track
from forewarn.assessment.reliability import UNDECIDED, outcomes, waits
from forewarn.config.file import MonitorSpec
from forewarn.learning.recording_report import ObservedOutcomes
from forewarn.logic.specification import CompiledSpec
from forewarn.models.run_ends import RunEnd
from forewarn.models.score_bins import bin_of
from forewarn.models.shards import ENDED, VIOLATED, AtEnd, Outcomes, PropertyKey
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.estimated import asks_what_followed, judged_property
from forewarn.monitoring.step import MAX_GAP
from forewarn.monitoring.tables import CompiledProperty
from forewarn.signals.snapshots import Snapshot
from forewarn.states.abstraction import Abstraction
from forewarn.states.interface import Observed

LAGS = (1, 2, 3, 5, 10)
MULTI_STEP = frozenset({"multi_step", "ensemble"})
UNWATCHED: Mapping[str, Any] = {
    **dict.fromkeys(
        ("model", "mode", "guards", "actuators", "black_box", "shield", "anomaly"), True
    ),
    "properties": {"__all__": {"thresholds"}},
}
"""Keys of the monitor file that say nothing of what follows a moment."""

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Place = tuple[tuple[int, ...], bool]


@dataclass(frozen=True)
class PropertyObservers:
    """Makes watchers for a monitor file; travels between processes."""

    compiled: CompiledSpec

    @property
    def key(self) -> str:
        """A text that decides, with its states, what is counted in a recording."""
        spec = self.compiled.spec
        if not asked_of(spec):  # how runs end depends on the automata alone
            return json.dumps({name: section.formula for name, section in spec.properties.items()})
        return spec.model_dump_json(exclude=UNWATCHED)

    def __call__(self, abstraction: Abstraction) -> OutcomeObserver | EndObserver:
        """Return a watcher of one recording, which is read through `abstraction`."""
        compiled = replace(self.compiled, abstraction=abstraction)
        return OutcomeObserver(compiled) if asked_of(compiled.spec) else EndObserver(compiled)


def asked_of(spec: MonitorSpec) -> bool:
    """Tell whether the risk of any property needs what followed in each recording."""
    return any(asks_what_followed(spec, name) for name in spec.properties)


def watch_for(compiled: CompiledSpec) -> PropertyObservers | None:
    """Return what observes recordings while they are counted; None if no risk needs it."""
    return PropertyObservers(compiled) if asked_of(compiled.spec) else None


class EndObserver:
    """Lets the automata alone step through a recording, and tells how runs end in violations."""

    def __init__(self, compiled: CompiledSpec) -> None:
        self._walks = [_Walk(one) for one in build_monitor(compiled, None).properties]
        self._nothing = compiled.abstraction.vocabulary.nothing_known
        self._length = 0
        self._tick: int | None = None

    def add(self, snapshot: Snapshot, observation: Observed) -> None:
        """Take in a moment, and those that repeat it."""
        missed = snapshot.tick - self._tick - 1 if self._tick is not None else 0
        if observation.active is False or missed:
            self._close()
        self._tick = snapshot.tick + snapshot.repeats
        if observation.active is False:
            for walk in self._walks:
                walk.begin()
            return
        for walk in self._walks:
            for _ in range(min(missed, MAX_GAP)):
                walk.step(self._nothing)
        for left in reversed(range(snapshot.repeats + 1)):
            changed = [walk.enter(observation, self._length) for walk in self._walks]
            self._length += 1
            if not any(changed):  # and so it goes on
                self._length += left
                break

    def _close(self) -> None:
        """End a run, and begin another one."""
        if self._length:
            for walk in self._walks:
                walk.close(self._length)
        self._length = 0

    def result(self) -> ObservedOutcomes:
        """Return how runs end, once the recording is over."""
        self._close()
        return ObservedOutcomes((), {}, {walk.name: tuple(walk.runs) for walk in self._walks})


class _Walk:
    """The way of one property through a recording.

    `runs`: those that are over.
    """

    def __init__(self, compiled: CompiledProperty) -> None:
        self.name = compiled.name
        self.runs: list[RunEnd] = []
        self._compiled = compiled
        self._steps: dict[Any, tuple[Place, bool]] = {}
        self._violations: list[int] = []
        self._violated = False
        self.begin()

    def begin(self) -> None:
        """Stand where the automaton begins."""
        self._place: Place = (self._compiled.automaton.initial,), False

    def step(self, observation: Observed) -> bool:
        """Advance, and tell whether the property is violated for certain."""
        key = self._place, observation.state
        found = None if observation.state is None else self._steps.get(key)
        if found is None:
            step = self._compiled.after(*self._place, observation)
            found = (step.branches, step.latched), step.violation
            self._steps[key] = found
        self._place, violated = found
        return violated

    def enter(self, observation: Observed, at: int) -> bool:
        """Advance by a tick of a run, and tell whether that changed anything."""
        before = self._place, self._violated
        violated = self.step(observation)
        if violated and not self._violated:
            self._violations.append(at)
        self._violated = violated
        return before != (self._place, self._violated)

    def close(self, length: int) -> None:
        """End a run."""
        self.runs.append(RunEnd(length, tuple(self._violations)))
        self._violations.clear()
        self._violated = False


class OutcomeObserver:
    """Lets the monitor step through a recording, and counts what followed."""

    def __init__(self, compiled: CompiledSpec) -> None:
        self._compiled = compiled
        self._monitor = build_monitor(compiled, None)
        self._state = self._monitor.start()
        self._history = History(self._monitor)
        self._intervened: list[bool] = []
        names = {n for name in compiled.spec.properties for n in compiled.spec.scores_of(name)}
        slots = {name: i for i, name in enumerate(compiled.abstraction.signals) if name in names}
        self._slots = slots
        self._scores: dict[str, list[float]] = {name: [] for name in slots}

    def add(self, snapshot: Snapshot, observation: Observed) -> None:
        """Take in a moment, and those that repeat it."""
        for state, verdict in self._monitor.through(self._state, snapshot):
            self._state = state
            self._history.add(verdict)
            times = verdict.repeats + 1
            self._intervened += [verdict.observation.intervened is not False] * times
            for name, slot in self._slots.items():
                value = verdict.values[slot]
                known = isinstance(value, (int, float))  # texts and lists are no probabilities
                self._scores[name] += [float(value) if known else np.nan] * times

    def result(self) -> ObservedOutcomes:
        """Return what followed, for each property whose risk or bounds need it."""
        found: dict[PropertyKey, Outcomes] = {}
        ends: dict[str, tuple[RunEnd, ...]] = {}
        spec = self._compiled.spec
        for (name, section), automaton, track in zip(
            spec.properties.items(),
            self._compiled.automata,
            self._history.tracks(),
            strict=True,
        ):
            ends[name] = run_ends(track)
            if not asks_what_followed(spec, name):
                continue
            scores = [np.array(self._scores[signal]) for signal in spec.scores_of(name)]
            lags = LAGS if section.estimator in MULTI_STEP else ()
            intervened = np.array(self._intervened, dtype=bool)
            judged = judged_property(spec, name, automaton)
            found[judged] = outcomes_of(track, intervened, scores, lags)
        return ObservedOutcomes(self._history.known_states, found, ends)


def outcomes_of(
    track: Track, intervened: Bools, scores: Sequence[Floats] = (), lags: Sequence[int] = ()
) -> Outcomes:
    """Count what followed the moments of one run.

    `intervened` (shape (n,)): an intervention was active, or may have been.
    `scores` (shape (n,)): scores at each moment, NaN where unknown.
    `lags`: ticks after which to look where the run has got to, as far as the horizon has so many.
    """
    run = replace(track, possible=track.possible | intervened)
    here = ~run.unsure & (run.state != UNKNOWN_STATE) & np.isin(run.status, UNDECIDED)
    horizon = run.horizon
    lags = [lag for lag in lags if horizon is not None and lag <= horizon]
    sure = concluded(run)
    known = outcomes(run)[1]
    later = {lag: here & ~outcomes(replace(run, horizon=lag))[1] for lag in lags}
    return Outcomes(
        _visits(run, here, scores),
        {lag: _steps(run, here, lag) for lag in lags},
        AtEnd(
            run_ends(track),
            _visits(sure, here & ~known, scores),
            {lag: _steps(sure, rows, lag) for lag, rows in later.items()},
        ),
    )


def _visits(run: Track, here: Bools, scores: Sequence[Floats]) -> NDArray[np.int64]:
    followed, known = outcomes(run)
    judged = here & known
    about = np.column_stack([run.state, run.automaton, *map(bin_of, scores)])[judged]
    cells, where = _distinct(about)
    visits = np.bincount(where, minlength=len(cells))
    violations = np.bincount(where[followed[judged]], minlength=len(cells))
    return np.column_stack([cells[:, :2], visits, violations, cells[:, 2:]]).astype(np.int64)


def _steps(run: Track, here: Bools, lag: int) -> NDArray[np.int64]:
    short = replace(run, horizon=lag)
    found = waits(short)
    followed, known = outcomes(short)
    rows = np.flatnonzero(here & known)
    later = np.minimum(rows + lag, len(run.ticks) - 1)
    over = found.over[rows] < run.ticks[rows] + lag
    whole = ~followed[rows] & ~over & ~run.terminal[later]
    arrived = ~whole | here[later]
    state = np.where(followed[rows], VIOLATED, np.where(whole, run.state[later], ENDED))
    automaton = np.where(whole, run.automaton[later], 0)
    table = np.column_stack([run.state[rows], run.automaton[rows], state, automaton])[arrived]
    cells, where = _distinct(table)
    return np.column_stack([cells, np.bincount(where, minlength=len(cells))]).astype(np.int64)


def _distinct(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct rows, rising, and which of them each row is."""
    cells, where = np.unique(rows.astype(np.int64), axis=0, return_inverse=True)
    return cells, where.reshape(-1)
