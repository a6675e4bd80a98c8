"""Counting transitions: which pairs of ticks make a transition, and which do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from forewarn.config.fields import Rate
from forewarn.models.counts import (
    END_LABEL,
    CountModel,
    EndRule,
    Provenance,
    Smoothing,
    state_order,
)
from forewarn.models.process import Step, ordered
from forewarn.states.interface import StateSpace, is_terminal, terminal_code


class Counts(NamedTuple):
    """What a `TransitionCounter` has counted.

    `transitions`: number of each (state, next state).
    `triples`: number of each (state, next, next but one): second-order counts for the Markov test.
    `starts`: how many episodes began in each state.
    `intervened`: ticks left out because an intervention was active.
    `refused`: transitions that a declared rule forbids, though the recording has them; not counted.
    `steps`: number of each (action, imposed or not, state, next state). What was recorded is among
        `transitions` as well, what Forewarn imposed is not.
    """

    transitions: Counter[tuple[int, int]]
    triples: Counter[tuple[int, int, int]]
    starts: Counter[int]
    ticks: int
    unknown: int
    intervened: int
    gaps: int
    refused: Counter[tuple[int, int]]
    steps: Counter[Step]


class TransitionCounter:
    """Counts transitions tick by tick, over any number of recordings.

    A transition joins two consecutive ticks of one recording whose states are both fully known
    and free of interventions. One whose first tick is under an intervention of a known name counts
    for the decision process only. Nothing is counted out of a terminal state; the first tick that
    is not terminal starts a new episode.

    `vocabulary`: the states of the abstraction.
    `end`: whether the end of a recording without a terminal label is no transition, or one to an
        explicit state ``end``, which then joins the terminal labels.
    `is_valid`: tells whether a rule allows (state, next state).
    """

    def __init__(
        self,
        vocabulary: StateSpace,
        end: EndRule = "drop",
        is_valid: Callable[[int, int], bool] | None = None,
    ) -> None:
        self.end = end
        self.vocabulary = vocabulary.with_terminal(END_LABEL) if end == "absorb" else vocabulary
        self._is_valid = is_valid
        self._transitions: Counter[tuple[int, int]] = Counter()
        self._triples: Counter[tuple[int, int, int]] = Counter()
        self._starts: Counter[int] = Counter()
        self._refused: Counter[tuple[int, int]] = Counter()
        self._steps: Counter[Step] = Counter()
        self._imposed: tuple[str, int] | None = None
        self._action: str | None = None
        self._ticks = self._unknown = self._intervened = self._gaps = 0
        self._tick: int | None = None
        self._state: int | None = None
        self._before: int | None = None
        self._fresh = True

    def add(
        self, tick: int, state: int | None, intervened: bool = False, action: str | None = None
    ) -> bool:
        """Take in one tick and tell whether it ended a counted transition.

        `state`: state code, None if anything in it is unknown or monitoring is inactive.
        `action`: what was done in this state and is in force until the next tick; with
            `intervened`, the intervention. None or empty if it is not known.

        Raises ValueError if `tick` does not grow.
        """
        if self._tick is not None and tick <= self._tick:
            raise ValueError(f"tick {tick} after tick {self._tick}: ticks must grow")
        self._ticks += 1
        gap = self._tick is not None and tick != self._tick + 1
        self._gaps += gap
        self._unknown += state is None
        self._intervened += intervened
        if gap:
            self._forget()
        self._tick = tick
        self._end_imposed(state)
        if state is None or intervened:
            self._forget()
            if state is not None and not is_terminal(state) and action:
                self._imposed = action, state
            return False
        counted = self._enter(state)
        self._action = action
        return counted

    def _end_imposed(self, state: int | None) -> None:
        if self._imposed is None or state is None:
            return
        action, before = self._imposed
        self._imposed = None
        if self._is_valid is None or self._is_valid(before, state):
            self._steps[Step(action, True, before, state)] += 1
        else:
            self._refused[before, state] += 1

    def _enter(self, state: int) -> bool:
        previous = self._state
        over = previous is not None and is_terminal(previous)
        if (self._fresh or over) and not is_terminal(state):
            self._starts[state] += 1
            self._fresh = False
        if previous is None or over:
            self._before, self._state = None, state
            return False
        counted = self._is_valid is None or self._is_valid(previous, state)
        if counted:
            self._transitions[previous, state] += 1
            if self._action:
                self._steps[Step(self._action, False, previous, state)] += 1
            if self._before is not None:
                self._triples[self._before, previous, state] += 1
        else:
            self._refused[previous, state] += 1
        self._before, self._state = (previous if counted else None), state
        return counted

    def _forget(self) -> None:
        self._state = self._before = self._imposed = self._action = None

    def end_recording(self) -> None:
        """Close a recording: nothing joins its last tick to the next recording's first."""
        if self.end == "absorb":
            code = terminal_code(self.vocabulary.terminals.index(END_LABEL))
            self._end_imposed(code)
            if self._state is not None and not is_terminal(self._state):
                self._enter(code)
        self._forget()
        self._tick = None
        self._fresh = True

    def include(self, counted: Iterable[Counts]) -> None:
        """Add what other counters counted, from recordings that are closed."""
        for counts in counted:
            self._transitions.update(counts.transitions)
            self._triples.update(counts.triples)
            self._starts.update(counts.starts)
            self._refused.update(counts.refused)
            self._steps.update(counts.steps)
            self._ticks += counts.ticks
            self._unknown += counts.unknown
            self._intervened += counts.intervened
            self._gaps += counts.gaps

    @property
    def entries(self) -> int:
        """How many different things have been counted."""
        pairs = len(self._transitions) + len(self._refused) + len(self._starts)
        return pairs + len(self._triples) + len(self._steps)

    @property
    def result(self) -> Counts:
        """Everything counted so far."""
        return Counts(
            Counter(self._transitions),
            Counter(self._triples),
            Counter(self._starts),
            self._ticks,
            self._unknown,
            self._intervened,
            self._gaps,
            Counter(self._refused),
            Counter(self._steps),
        )


def build_model(
    counter: TransitionCounter,
    *,
    rate: Rate,
    digest: str,
    smoothing: Smoothing | None = None,
    admissible: Iterable[int] = (),
    forbid: Callable[[Sequence[int]], sparse.spmatrix] | None = None,
    provenance: tuple[Provenance, ...] = (),
    state_source_recordings: Iterable[str] = (),
    sections: Mapping[str, tuple[Any, ...]] | None = None,
) -> CountModel:
    """Return the model of what `counter` has counted.

    All terminal labels are among its states, seen or not: what they mean is known.

    `admissible`: states to add to those observed (for ``candidates: admissible``).
    `forbid`: gives the matrix of forbidden transitions, shape (n, n), for a sequence of n states.
    `state_source_recordings`, `sections`: see `CountModel`.
    """
    counted = counter.result
    seen = {state for pair in counted.transitions for state in pair} | set(counted.starts)
    terminals = {terminal_code(i) for i in range(len(counter.vocabulary.terminals))}
    states = state_order(seen | terminals | set(admissible))
    shape = (len(states), len(states))
    return CountModel(
        vocabulary=counter.vocabulary,
        rate=rate,
        digest=digest,
        states=states,
        counts=count_matrix(counted.transitions, {state: i for i, state in enumerate(states)}),
        starts=np.array([counted.starts[state] for state in states], dtype=np.int64),
        smoothing=smoothing or Smoothing(),
        forbidden=sparse.csr_matrix(forbid(states) if forbid else shape, dtype=bool),
        provenance=provenance,
        intervened=counted.intervened,
        end=counter.end,
        steps=ordered(counted.steps),
        state_source_recordings=tuple(sorted({*state_source_recordings})),
        sections=sections or {},
    )


def count_matrix(transitions: Counter[tuple[int, int]], index: dict[int, int]) -> sparse.csr_matrix:
    """Return counts as a matrix of int64, shape (n, n), over the positions in `index`."""
    places = [index[i] for i, _ in transitions], [index[j] for _, j in transitions]
    values = np.array(list(transitions.values()), dtype=np.int64)
    return sparse.csr_matrix((values, places), shape=(len(index), len(index)))
