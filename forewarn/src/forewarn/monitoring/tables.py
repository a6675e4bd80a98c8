"""The tables of a property, which are computed before the first tick."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.checking.interface import ENDED, letter_class
from forewarn.monitoring.branches import LiveAutomaton, Step, advance
from forewarn.monitoring.policy import BY_KEY, RiskMeasure
from forewarn.monitoring.scored import Scored, fields_of, view_of
from forewarn.states.interface import Admission, Observed, StateSpace, is_terminal, terminal_index

if TYPE_CHECKING:
    from forewarn.checking.interface import ProcessRisk, RiskOfActions, RiskTable
    from forewarn.config.sections import PropertySpec
    from forewarn.logic.automaton import Automaton
    from forewarn.models.estimates import Estimate
    from forewarn.monitoring.likely_path import HittingTimes
    from forewarn.monitoring.policy import Rules
    from forewarn.states.condition import Condition

MAX_MEMO = 1 << 12
BOUNDS = {"none": 0, "credible": 1, "sound": 2, "clustered": 3}


class Compatible(NamedTuple):
    """The model's states that agree with an observation."""

    # Their rows, and a zero for each terminal label: what it means is known without a model
    rows: NDArray[np.int64]
    # -1 for each of the former, which come first, and the numbers of the labels
    labels: NDArray[np.int64]
    complete: bool  # No other admissible state agrees with it


@dataclass(frozen=True)
class LoadedModel:
    """The states a model knows, indexed for look-up."""

    digest: str
    vocabulary: StateSpace
    index: Mapping[int, int]  # Row of every state code
    states: tuple[int, ...]  # State codes in row order
    validity: Admission  # Which other states could occur
    _memo: dict[Observed, Compatible] = field(default_factory=dict)

    @cached_property
    def codes(self) -> NDArray[Any]:
        """State codes in row order, shape (n,); Python's own numbers if any needs over 62 bits."""
        wide = any(state.bit_length() > 62 for state in self.states)
        return np.array(self.states, dtype=object if wide else np.int64)

    def prepare(self) -> None:
        """Compute what the first state that is partly known needs, rather than in its tick."""
        _ = self.codes

    def compatible(self, observation: Observed) -> Compatible:
        """Return the states that agree with what is known."""
        found = self._memo.get(observation)
        if found is None:
            agrees = self.vocabulary.agreeing(self.codes, observation) & (self.codes >= 0)
            rows = np.flatnonzero(agrees)
            opened = [*map(terminal_index, self.vocabulary.terminal_candidates(observation))]
            found = Compatible(
                np.append(rows, np.zeros(len(opened), dtype=np.int64)),
                np.append(np.full(len(rows), -1), np.array(opened, dtype=np.int64)),
                self._is_complete(observation),
            )
            if len(self._memo) < MAX_MEMO:
                self._memo[observation] = found
        return found

    def _is_complete(self, observation: Observed) -> bool:
        """Look for an admissible state that agrees and is not in the model."""
        candidates = self.vocabulary.candidates(observation)
        if candidates is None:
            return False
        return all(code in self.index or not self.validity.admits(code) for code in candidates)


class Announced(NamedTuple):
    """Some fields of a Risk message, in its order; see there for meanings."""

    bounds_kind: int
    bounds_confidence: float
    horizon: float
    threshold_warn: float
    threshold_act: float
    risk_measure: RiskMeasure


@dataclass(frozen=True)
class CompiledProperty:
    """One property, ready for the loop."""

    name: str
    spec: PropertySpec
    automaton: Automaton
    rules: Rules
    vocabulary: StateSpace
    table: RiskTable | None  # Risk of all product states; None without a model
    row_classes: NDArray[np.int64]  # Letter class of each model state
    live: LiveAutomaton  # The same monitor, which goes on after violations and between episodes
    outlook: HittingTimes | None = None
    # What the chain says; `table` itself unless the model calibrates the risk
    raw: RiskTable | None = None
    # Least risk over all ways to choose; None unless it is the property's risk measure
    least: ProcessRisk | None = None
    # Risk of what is being done; None unless it is the property's
    of_actions: RiskOfActions | None = None
    scored: Scored | None = None  # Risk where all scores are known; None without scores
    estimate: Estimate | None = None  # What `table` is made of; None if it is the chain's, unasked
    # An intervention does not end while it holds; None without one, or in mode observe
    hold_while: Condition | None = None
    _letters: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _steps: dict[tuple[tuple[int, ...], bool, Observed], Step] = field(default_factory=dict)
    #: What became of ticks that say the same whenever they come, by row, state and what was before.
    steady: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what was found out meanwhile when it goes to another process."""
        return {**fields_of(self), "_letters": {}, "_steps": {}, "steady": {}}

    @cached_property
    def values(self) -> memoryview | None:
        """The table for the loop."""
        return None if self.table is None else view_of(self.table.values)

    @cached_property
    def lower(self) -> memoryview | None:
        """The lower bounds for the loop."""
        return None if self.table is None else view_of(self.table.lower)

    @cached_property
    def upper(self) -> memoryview | None:
        """The upper bounds for the loop."""
        return None if self.table is None else view_of(self.table.upper)

    @cached_property
    def announced(self) -> Announced:
        """Return the fields of a Risk message that are the same at every tick."""
        kind = "none" if self.table is None else self.table.kind
        confidence = None if self.table is None or kind == "none" else self.table.confidence
        if self.of_actions is not None:
            kind, confidence = "sound", self.of_actions.confidence
        return Announced(
            BOUNDS[kind],
            math.nan if confidence is None else confidence,
            self.spec.horizon,
            self.spec.thresholds.warn,
            self.spec.thresholds.act,
            BY_KEY[self.spec.risk_measure],
        )

    @cached_property
    def lasting(self) -> NDArray[np.bool_]:
        """Tell where a letter that goes on violates the property, shape (states, classes)."""
        jump = self.automaton.transitions
        hit = np.asarray(jump == self.live.violated)
        hit[max(self.live.violated, 0)] |= self.live.violated >= 0
        letters = np.arange(jump.shape[1])
        for _ in range(len(jump).bit_length()):  # 1, 2, 4, ... letters ahead
            hit, jump = np.asarray(hit | hit[jump, letters]), jump[jump, letters]
        return hit

    def letters_of(self, state: int) -> tuple[int, ...]:
        """Return the live letter of a state code, known to the model or not."""
        found = self._letters.get(state)
        if found is None:
            if is_terminal(state):
                found = (self.live.letter(state),)
            else:
                found = (letter_class(self.automaton, self.vocabulary, state),)
            if len(self._letters) < MAX_MEMO:
                self._letters[state] = found
        return found

    def compatible_letters(self, observation: Observed) -> tuple[int, ...]:
        """Return the live letters that agree with what is known of a state."""
        letter_class = self.automaton.letter_class
        found = self.vocabulary.letters(self.automaton.atoms, observation)
        letters = {int(letter_class[letter]) for letter in found}
        letters |= {
            self.live.letter(state) for state in self.vocabulary.terminal_candidates(observation)
        }
        return tuple(sorted(letters))

    def after(self, branches: tuple[int, ...], latched: bool, observation: Observed) -> Step:
        """Return where the branches are after a moment of which so much is known."""
        code = observation.state
        if code is not None:
            return advance(self.live, branches, latched, self.letters_of(code))
        key = branches, latched, observation
        found = self._steps.get(key)
        if found is None:
            letters = self.compatible_letters(observation)
            found = advance(self.live, branches, latched, letters)
            if len(self._steps) < MAX_MEMO:
                self._steps[key] = found
        return found

    def remember(self, key: Hashable, found: Any) -> None:
        """Keep what became of a tick, for others like it."""
        if len(self.steady) < MAX_MEMO:
            self.steady[key] = found

    def letters_in(self, found: Compatible) -> NDArray[np.int64]:
        """Return the live letters of states that agree with an observation."""
        plain = self.row_classes[found.rows]
        return np.where(found.labels < 0, plain, self.live.terminals + found.labels)

    def successors(self, states: tuple[int, ...], classes: tuple[int, ...]) -> tuple[int, ...]:
        """Return where the automaton may be after one of `classes`, violated ones included."""
        initial, delta = self.automaton.initial, self.automaton.transitions
        found = {initial if c == ENDED else int(delta[q, c]) for q in states for c in classes}
        return tuple(sorted(found))
