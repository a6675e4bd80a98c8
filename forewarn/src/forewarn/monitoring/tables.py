"""Everything about a property that is computed before the first tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.checking.interface import RiskTable
from forewarn.checking.labels import ENDED, label_states
from forewarn.config.sections import PropertySpec
from forewarn.logic import Automaton
from forewarn.monitoring.branches import LiveAutomaton, live_automaton
from forewarn.monitoring.likely_path import Outlook
from forewarn.monitoring.policy import Rules
from forewarn.states.predicates import Observation
from forewarn.states.predicates.validity import Validity
from forewarn.states.vocabulary import Vocabulary, terminal_code

MAX_MEMO = 1 << 12
MAX_FREE = 12


class Compatible(NamedTuple):
    """The model's states that agree with an observation.

    Attributes
    ----------
    rows : ndarray of int
        Their rows.
    complete : bool
        No other admissible state agrees with it.
    """

    rows: NDArray[np.int64]
    complete: bool


@dataclass(frozen=True)
class LoadedModel:
    """The states a model knows, indexed for look-up.

    Attributes
    ----------
    digest : str
        Digest of the model's counts, for messages and records.
    vocabulary : Vocabulary
        Predicates and terminal labels of the model.
    rows : dict
        Row of every state code.
    states : tuple of int
        State codes in row order.
    validity : Validity
        Which other states could occur.
    """

    digest: str
    vocabulary: Vocabulary
    rows: Mapping[int, int]
    states: tuple[int, ...]
    validity: Validity
    _memo: dict[tuple[int, int, int], Compatible] = field(default_factory=dict)

    @property
    def index(self) -> Mapping[int, int]:
        """Row of every state code, as models call it."""
        return self.rows

    @cached_property
    def bits(self) -> NDArray[np.int8]:
        """Predicate values of all states, shape (n, predicates); -1 in terminal rows."""
        width = len(self.vocabulary.predicates)
        bits = np.zeros((len(self.states), width), dtype=np.int8)
        for row, state in enumerate(self.states):
            if state >= 0:
                bits[row] = [state >> i & 1 for i in range(width)]
        return bits

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """Number of the terminal label of all states, shape (n,); -1 without one."""
        return np.array([max(-1 - state, -1) for state in self.states], dtype=np.int64)

    def compatible(self, observation: Observation) -> Compatible:
        """Return the states that agree with what is known."""
        known = observation.known
        key = (known, observation.mask & known, observation.open_terminals)
        found = self._memo.get(key)
        if found is None:
            found = self._compatible(*key)
            if len(self._memo) < MAX_MEMO:
                self._memo[key] = found
        return found

    def _compatible(self, known: int, mask: int, open_terminals: int) -> Compatible:
        width = len(self.vocabulary.predicates)
        columns = [i for i in range(width) if known >> i & 1]
        wanted = np.array([mask >> i & 1 for i in columns], dtype=np.int8)
        plain = np.array([state >= 0 for state in self.states], dtype=bool)
        agrees = plain & (self.bits[:, columns] == wanted).all(axis=1)
        rows = [int(row) for row in np.flatnonzero(agrees)]
        opened = [i for i in range(len(self.vocabulary.terminals)) if open_terminals >> i & 1]
        codes = [self.rows.get(terminal_code(i)) for i in opened]
        rows += [row for row in codes if row is not None]
        complete = None not in codes and self._is_complete(known, mask, len(rows) - len(codes))
        return Compatible(np.array(sorted(rows), dtype=np.int64), complete)

    def _is_complete(self, known: int, mask: int, present: int) -> bool:
        """Count the admissible states that agree, unless they are too many to try."""
        width = len(self.vocabulary.predicates)
        free = [1 << i for i in range(width) if not known >> i & 1]
        if len(free) > MAX_FREE:
            return False
        subsets = (sum(c) for r in range(len(free) + 1) for c in combinations(free, r))
        return sum(self.validity.admits(mask | extra) for extra in subsets) <= present


@dataclass(frozen=True)
class CompiledProperty:
    """One property, ready for the loop.

    Attributes
    ----------
    name : str
        Name in the monitor file.
    spec : PropertySpec
        Its section of the monitor file.
    automaton : Automaton
        Deterministic monitor.
    live : LiveAutomaton
        The same monitor, which goes on after violations and between episodes.
    rules : Rules
        Policy.
    table : RiskTable or None
        Risk of all product states; None without a model.
    row_classes : ndarray of int
        Letter class of each model state.
    outlook : Outlook or None
        What lies ahead of each product state; None without a model.
    raw : RiskTable or None
        What the chain says; `table` itself unless the model calibrates the risk.
    """

    name: str
    spec: PropertySpec
    automaton: Automaton
    rules: Rules
    vocabulary: Vocabulary
    table: RiskTable | None
    row_classes: NDArray[np.int64]
    live: LiveAutomaton
    values: memoryview | None = None
    lower: memoryview | None = None
    upper: memoryview | None = None
    outlook: Outlook | None = None
    raw: RiskTable | None = None
    _letters: dict[int, tuple[int, ...]] = field(default_factory=dict)

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
            if state < 0:
                found = (self.live.letter(state),)
            else:
                found = (int(label_states(self.automaton, self.vocabulary, (state,))[0]),)
            if len(self._letters) < MAX_MEMO:
                self._letters[state] = found
        return found

    def compatible_letters(self, observation: Observation) -> tuple[int, ...]:
        """Return the live letters that agree with what is known of a state."""
        known = mask = free = 0
        for i, atom in enumerate(self.automaton.atoms):
            if atom in self.vocabulary.terminals:
                known |= 1 << i  # a state without terminal label; those follow below
                continue
            bit = 1 << self.vocabulary.index(atom)
            if observation.known & bit:
                known |= 1 << i
                mask |= 1 << i if observation.mask & bit else 0
            else:
                free |= 1 << i
        masks = [mask]
        subset = free
        while subset:
            masks.append(mask | subset)
            subset = (subset - 1) & free
        letters = {int(self.automaton.letter_class[one_mask]) for one_mask in masks}
        for i in range(len(self.vocabulary.terminals)):
            if observation.open_terminals >> i & 1:
                letters.add(self.live.letter(terminal_code(i)))
        return tuple(sorted(letters))

    def row_letters(self, model: LoadedModel, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the live letters of some of the model's states."""
        labels = model.labels[rows]
        return np.where(labels < 0, self.row_classes[rows], self.live.terminals + labels)

    def successors(self, states: tuple[int, ...], classes: tuple[int, ...]) -> tuple[int, ...]:
        """Return where the automaton may be after one of `classes`, violated ones included."""
        initial, delta = self.automaton.initial, self.automaton.transitions
        found = {initial if c == ENDED else int(delta[q, c]) for q in states for c in classes}
        return tuple(sorted(found))


def compile_property(
    name: str,
    spec: PropertySpec,
    automaton: Automaton,
    rules: Rules,
    vocabulary: Vocabulary,
    table: RiskTable | None,
    row_classes: NDArray[np.int64],
    outlook: Outlook | None = None,
    raw: RiskTable | None = None,
) -> CompiledProperty:
    """Flatten automaton and tables for the loop."""

    def view(array: NDArray[np.float64] | None) -> memoryview | None:
        return None if array is None else memoryview(np.ascontiguousarray(array).ravel().data)

    return CompiledProperty(
        name=name,
        spec=spec,
        automaton=automaton,
        rules=rules,
        vocabulary=vocabulary,
        table=table,
        row_classes=row_classes,
        live=live_automaton(automaton, vocabulary),
        values=None if table is None else view(table.values),
        lower=None if table is None else view(table.lower),
        upper=None if table is None else view(table.upper),
        outlook=outlook,
        raw=table if raw is None else raw,
    )
