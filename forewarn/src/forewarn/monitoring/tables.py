"""Everything about a property that is computed before the first tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from forewarn.checking.interface import RiskTable
from forewarn.checking.labels import ENDED, label_states
from forewarn.config import PropertySpec
from forewarn.monitoring.policy import Rules
from forewarn.monitoring.verdict import Status
from forewarn.predicates import Observation
from forewarn.properties import Automaton
from forewarn.vocabulary import Vocabulary, terminal_code

MAX_MEMO = 1 << 16


@dataclass(frozen=True)
class LoadedModel:
    """The states a model knows, indexed for look-up.

    Attributes
    ----------
    digest : str
        Digest of the model's counts, for messages and records.
    rows : dict
        Row of every state code.
    states : ndarray of object
        State codes in row order; Python integers, for masks have any width.
    """

    digest: str
    rows: Mapping[int, int]
    states: tuple[int, ...]


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
        Deterministic monitor; `delta` holds its transitions flattened, row by row, and `certain`
        the status of each of its states.
    rules : Rules
        Policy.
    table : RiskTable or None
        Risk of all product states; None without a model.
    row_classes : ndarray of int
        Letter class of each model state.
    """

    name: str
    spec: PropertySpec
    automaton: Automaton
    rules: Rules
    vocabulary: Vocabulary
    table: RiskTable | None
    row_classes: NDArray[np.int64]
    delta: tuple[int, ...] = ()
    width: int = 1
    violated: int = -1
    certain: tuple[Status, ...] = ()
    values: memoryview | None = None
    lower: memoryview | None = None
    upper: memoryview | None = None
    _classes: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def classes_of(self, state: int) -> tuple[int, ...]:
        """Return the letter class of a state code, known to the model or not."""
        found = self._classes.get(state)
        if found is None:
            found = (int(label_states(self.automaton, self.vocabulary, (state,))[0]),)
            if len(self._classes) < MAX_MEMO:
                self._classes[state] = found
        return found

    def compatible_classes(self, observation: Observation, terminals: int) -> tuple[int, ...]:
        """Return the letter classes that agree with what is known of the state.

        Parameters
        ----------
        observation : Observation
            Not fully known.
        terminals : int
            How many terminal labels there are.
        """
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
        letters = [mask]
        subset = free
        while subset:
            letters.append(mask | subset)
            subset = (subset - 1) & free
        classes = {int(self.automaton.letter_class[letter]) for letter in letters}
        for i in range(terminals):
            if observation.open_terminals >> i & 1:
                classes.update(self.classes_of(terminal_code(i)))
        return tuple(sorted(classes))

    def successors(self, states: tuple[int, ...], classes: tuple[int, ...]) -> tuple[int, ...]:
        """Return where the automaton may be after one of `classes`."""
        initial = self.automaton.initial
        found = {
            initial if c == ENDED else self.delta[q * self.width + c]
            for q in states
            for c in classes
        }
        return tuple(sorted(found))


def compile_property(
    name: str,
    spec: PropertySpec,
    automaton: Automaton,
    rules: Rules,
    vocabulary: Vocabulary,
    table: RiskTable | None,
    row_classes: NDArray[np.int64],
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
        delta=tuple(int(q) for q in automaton.transitions.ravel()),
        width=automaton.transitions.shape[1],
        violated=-1 if automaton.violated is None else automaton.violated,
        certain=tuple(
            Status.CANNOT_BE_VIOLATED if q == automaton.satisfied else Status.SATISFIED_SO_FAR
            for q in range(len(automaton.transitions))
        ),
        values=None if table is None else view(table.values),
        lower=None if table is None else view(table.lower),
        upper=None if table is None else view(table.upper),
    )
