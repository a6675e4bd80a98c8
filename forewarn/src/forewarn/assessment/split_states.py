"""The states of recordings, split by conditions that a monitor file does not have yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.checking.interface import label_states
from forewarn.checking.numeric import risk_table
from forewarn.learning.counting import Counts, TransitionCounter, build_model
from forewarn.learning.thresholds import written
from forewarn.logic.automaton import Automaton
from forewarn.models.counts import CountModel, EndRule, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.states.interface import PREDICATES, Admission, StateSpace, is_terminal
from forewarn.states.kinds import parse_states

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Recorded(NamedTuple):
    """One recording, tick by tick (n of them).

    `ticks` (shape (n,)): their numbers.
    `states` (tuple of (int or None), length n): state code; None where it is not known, invalid, or
        the monitor not active.
    `intervened` (shape (n,)): an intervention shapes what follows.
    `automaton` (shape (n,)): where the property's automaton is.
    `followed`, `judged` (shape (n,)): a violation followed within the horizon; it is known whether
        one did, and nothing is violated yet.
    `values` (shape (n,)): what may be cut, by the text of its expression; NaN where unknown.
    `group`: name of the group of recordings that it belongs to; empty if it is in none.
    """

    name: str
    digest: str
    ticks: NDArray[np.int64]
    states: tuple[int | None, ...]
    intervened: Bools
    automaton: NDArray[np.int64]
    followed: Bools
    judged: Bools
    values: dict[str, Floats]
    group: str = ""

    @property
    def cluster(self) -> str:
        """What is left out and drawn as a whole: the group, or the recording alone."""
        return self.group or self.digest


class Cut(NamedTuple):
    """A condition ``source > threshold``."""

    source: str
    threshold: float

    @property
    def text(self) -> str:
        """The condition as the monitor file has it."""
        return f"{self.source} > {written(self.threshold)}"


@dataclass(frozen=True)
class Setting:
    """What does not change while predicates are tried.

    `vocabulary`: the states as they are.
    `automaton`: the property's monitor.
    `horizon`: ticks; None is unbounded.
    `smoothing`: how counts become a chain; only observed states are candidates.
    `end`: what the end of a recording is taken for.
    `validity`: which transitions are declared to be impossible.
    """

    vocabulary: StateSpace
    automaton: Automaton
    horizon: int | None
    smoothing: Smoothing
    end: EndRule
    validity: Admission


class Split:
    """The states of recordings, split by some conditions.

    `setting`: what does not change.
    """

    def __init__(self, setting: Setting, recorded: Sequence[Recorded], cuts: Sequence[Cut]) -> None:
        self.setting = setting
        self.recorded = tuple(recorded)
        known = {s for one in recorded for s in one.states if s is not None and not is_terminal(s)}
        self._plain = sorted(known)
        self._place = {state: i for i, state in enumerate(self._plain)}
        self._shift = len(cuts)
        bits = len(self._plain).bit_length() + len(cuts)
        terminals = setting.vocabulary.terminals
        names = tuple(f"bit{i}" for i in range(bits))
        self._space = parse_states(PREDICATES, names, terminals, {})
        self._codes = [self._split(one, cuts) for one in recorded]
        self._counts = [
            self._counted(one, codes) for one, codes in zip(recorded, self._codes, strict=True)
        ]

    def _split(self, one: Recorded, cuts: Sequence[Cut]) -> list[int | None]:
        added, known = np.zeros(len(one.ticks), dtype=np.int64), np.ones(len(one.ticks), dtype=bool)
        for bit, cut in enumerate(cuts):
            values = one.values[cut.source]
            added |= (values > cut.threshold).astype(np.int64) << bit
            known &= ~np.isnan(values)
        return [
            state
            if state is not None and is_terminal(state)
            else None
            if state is None or not sure
            else self._place[state] << self._shift | more
            for state, more, sure in zip(one.states, added.tolist(), known.tolist(), strict=True)
        ]

    def _base(self, code: int) -> int:
        return code if is_terminal(code) else self._plain[code >> self._shift]

    def _allows(self, source: int, target: int) -> bool:
        return self.setting.validity.allows(self._base(source), self._base(target))

    def _counted(self, one: Recorded, codes: Sequence[int | None]) -> Counts:
        counter = TransitionCounter(self._space, self.setting.end, self._allows)
        rows = zip(one.ticks.tolist(), codes, one.intervened.tolist(), strict=True)
        for tick, code, intervened in rows:
            counter.add(tick, code, intervened)
        counter.end_recording()
        return counter.result

    def learned(self, places: Sequence[int]) -> tuple[CountModel, Floats]:
        """Return the model of some recordings, and the risks of its product states."""
        setting = self.setting
        counter = TransitionCounter(self._space, setting.end)
        counter.include(self._counts[i] for i in places)
        forbid = setting.validity.forbidden_matrix
        model = build_model(
            counter,
            rate="steps",
            digest="",
            smoothing=setting.smoothing,
            forbid=lambda states: forbid([self._base(state) for state in states]),
        )
        vocabulary = setting.vocabulary
        for label in model.vocabulary.terminals:
            vocabulary = vocabulary.with_terminal(label)
        classes = label_states(setting.automaton, vocabulary, map(self._base, model.states))
        table = risk_table(estimate_chain(model), setting.automaton, classes, setting.horizon)
        return model, table.values

    def risks(self, place: int, model: CountModel, table: Floats) -> Floats:
        """Return the risk at the judged ticks of a recording; NaN where there is none."""
        one = self.recorded[place]
        rows = [-1 if code is None else model.index.get(code, -1) for code in self._codes[place]]
        row = np.array(rows, dtype=np.int64)
        found = np.where(row < 0, np.nan, table[row, np.maximum(one.automaton, 0)])
        return np.asarray(found[one.judged])

    def share(self, places: Sequence[int]) -> float:
        """Return how often a violation followed a judged tick of some recordings."""
        judged = sum(int(self.recorded[i].judged.sum()) for i in places)
        hits = sum(int((r.followed & r.judged).sum()) for r in (self.recorded[i] for i in places))
        return hits / max(judged, 1)
