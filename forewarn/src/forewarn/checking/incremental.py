"""Learning while driving: new counts, and risk tables that follow them in the background."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from forewarn.checking.interface import RiskTable
from forewarn.checking.labels import label_states
from forewarn.checking.numeric import risk_table
from forewarn.errors import ModelError
from forewarn.models.chain import Chain
from forewarn.models.counts import CountModel, state_order, with_states
from forewarn.models.estimation import estimate_chain
from forewarn.properties.automaton import Automaton

Property = tuple[Automaton, "int | None"]
TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class Refreshed:
    """Counts, chain and tables that belong together.

    Attributes
    ----------
    model : CountModel
        The counts.
    chain : Chain
        The chain estimated from them.
    tables : tuple of RiskTable
        One for each property.
    """

    model: CountModel
    chain: Chain
    tables: tuple[RiskTable, ...]


def add_counts(model: CountModel, transitions: Mapping[tuple[int, int], int]) -> CountModel:
    """Return `model` with more transitions between state codes; new states are appended in order.

    Raises
    ------
    ModelError
        If a transition leaves a terminal state, or is forbidden.
    """
    if not transitions:
        return model
    codes = {code for pair in transitions for code in pair}
    if not codes <= model.index.keys():
        model = with_states(model, state_order([*model.states, *codes]))
    index, n = model.index, model.size
    pairs = list(transitions)
    rows, columns = [index[i] for i, _ in pairs], [index[j] for _, j in pairs]
    more = sparse.csr_matrix(
        ([transitions[pair] for pair in pairs], (rows, columns)), shape=(n, n), dtype=np.int64
    )
    return replace(model, counts=sparse.csr_matrix(model.counts + more))


def refresh(
    model: CountModel, properties: Sequence[Property], previous: Refreshed | None = None
) -> Refreshed:
    """Return the tables of a model, exact for its counts, starting from those before.

    Parameters
    ----------
    model : CountModel
        The counts.
    properties : sequence of (Automaton, int or None)
        Monitors and horizons.
    previous : Refreshed, optional
        Result for counts close by.
    """
    chain = estimate_chain(model)
    tables = []
    for k, (automaton, horizon) in enumerate(properties):
        classes = label_states(automaton, model.vocabulary, model.states)
        close = None
        if previous is not None and previous.model.states == model.states:
            close = previous.tables[k]
        tables.append(risk_table(chain, automaton, classes, horizon, previous=close))
    return Refreshed(model, chain, tuple(tables))


class OnlineRisk:
    """Takes in transitions tick by tick; solves anew in a thread once they matter.

    The tick only adds to a counter and looks whether a refresh is ready; what it gets is exact for
    all transitions up to the one after which the refresh began.

    Parameters
    ----------
    model : CountModel
        Counts to begin with.
    properties : sequence of (Automaton, int or None)
        Monitors and horizons.
    tolerance : float
        Begin a refresh once a row of the chain has changed by more than this (total variation,
        ``|e_t - P_s| / (n_s + 1)`` for each new count).
    """

    def __init__(
        self, model: CountModel, properties: Sequence[Property], tolerance: float = TOLERANCE
    ) -> None:
        self.current = refresh(model, properties)
        self._properties = tuple(properties)
        self._tolerance = tolerance
        self._pending: Counter[tuple[int, int]] = Counter()
        self._leaving: Counter[int] = Counter()
        self._change = 0.0
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="forewarn-refresh")
        self._running: Future[Refreshed] | None = None

    def add(self, before: int, after: int) -> None:
        """Count one transition between two state codes, not from a terminal state."""
        if before < 0:
            raise ModelError(
                f"a transition out of the terminal state {before}", accepted="a state's mask"
            )
        self._pending[before, after] += 1
        self._leaving[before] += 1
        model = self.current.model
        row = model.index.get(before)
        visits = 0 if row is None else int(model.visits[row])
        more = self._leaving[before]
        self._change = max(self._change, more / (visits + more))

    def poll(self) -> Refreshed | None:
        """Return new tables once they are ready, and begin to solve again if that is due.

        Raises
        ------
        ForewarnError
            If the last refresh failed; its transitions are dropped.
        """
        ready: Refreshed | None = None
        if self._running is not None and self._running.done():
            done, self._running = self._running, None
            ready = done.result()
            self.current = ready
        if self._running is None and self._change > self._tolerance:
            transitions, self._pending = self._pending, Counter()
            self._leaving, self._change = Counter(), 0.0
            self._running = self._worker.submit(self._solve, self.current, transitions)
        return ready

    def _solve(self, before: Refreshed, transitions: Counter[tuple[int, int]]) -> Refreshed:
        return refresh(add_counts(before.model, transitions), self._properties, before)

    def close(self) -> Refreshed:
        """Wait for the thread, take in what is pending, and return the final tables."""
        self._worker.shutdown(wait=True)
        if self._running is not None:
            self.current, self._running = self._running.result(), None
        if self._pending:
            self.current = self._solve(self.current, self._pending)
            self._pending = Counter()
        return self.current
