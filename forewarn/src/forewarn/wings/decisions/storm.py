"""Risk tables and queries through Storm, which is imported when one of them is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.checking import ctl
from forewarn.checking.interface import RiskTable, where_holds
from forewarn.checking.numeric import check_arguments, mark_unseen, product_graph
from forewarn.wings.decisions.storm_api import Mask, Storm, Values

if TYPE_CHECKING:
    from forewarn.logic.automaton import Automaton
    from forewarn.models.chain import Chain, Floats
    from forewarn.models.counts import CountModel
    from forewarn.states.interface import StateSpace

EXACT_NODES = 2000
PRECISION = 1e-9


def risk_table(
    chain: Chain,
    automaton: Automaton,
    classes: NDArray[np.int64],
    horizon: int | None,
    *,
    exact: bool | None = None,
) -> RiskTable:
    """Return what `numeric.risk_table` returns, computed by Storm on the explicit product.

    `exact`, the default without a horizon for products of up to 2,000 nodes, is rational
    arithmetic; otherwise Storm's sound methods reach a relative precision of 1e-9. Raises
    CheckingError.
    """
    check_arguments(chain, automaton, classes, horizon)
    n, m = chain.size, automaton.transitions.shape[0]
    graph, violated = product_graph(chain.flat(), automaton, classes)
    if exact is None:
        exact = horizon is None and graph.shape[0] <= EXACT_NODES
    storm = Storm()
    model = storm.dtmc(staying(graph), {"violated": violated}, automaton.initial, exact)
    bound = "" if horizon is None else f"<={horizon}"
    values = storm.check(model, f'P=? [F{bound} "violated"]', PRECISION)
    table: Floats = np.array(values[: n * m], dtype=np.float64).reshape(n, m)
    if chain.unseen.any():
        table = mark_unseen(chain, automaton, table)
    return RiskTable(values=table, horizon=horizon)


def staying(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return `matrix` with a self-loop on every empty row."""
    empty = (np.diff(matrix.indptr) == 0).astype(np.float64)
    return sparse.csr_matrix(matrix + sparse.diags(empty))


@dataclass(frozen=True, eq=False)
class QueryResult:
    """Answer to a query: for each state a probability, or whether the formula holds, shape (n,)."""

    query: str
    values: Values
    notes: tuple[str, ...] = ()
    act: float | None = None

    @property
    def is_truth(self) -> bool:
        """Whether the query is a formula that holds or does not."""
        return self.values.dtype == bool

    @property
    def fine(self) -> Mask:
        """States in which nothing is found fault with: a risk is below its threshold `act`."""
        if self.is_truth:
            return np.asarray(self.values, dtype=bool)
        return ~(self.values >= (np.inf if self.act is None else self.act))


def check_query(model: CountModel, chain: Chain, query: str) -> QueryResult:
    """Answer a PCTL or CTL query about the states of a model; raises CheckingError.

    Names of predicates and terminal labels stand in double quotes; in CTL they may stand bare. PCTL
    goes to Storm; CTL, with bounds in steps, is found on the graph, for which Storm need not be
    there.
    """
    matrix = staying(chain.to_csr())
    notes: tuple[str, ...] = ()
    if chain.unseen.any():
        notes = (
            f"states without data are taken to stay as they are: {int(chain.unseen.sum())} of them",
        )
    if ctl.is_ctl(query):
        formula = ctl.parse(query)

        def leaf(name: str) -> Mask:
            return where_holds(name, model.vocabulary, model.states, query)

        return QueryResult(query, ctl.evaluate(formula, leaf, matrix), notes)
    storm = Storm()
    text, labels = named_for_storm(query, model.vocabulary, model.states)
    starts = model.starts > 0
    made = storm.dtmc(matrix, labels, starts if starts.any() else 0)
    return QueryResult(query, storm.check(made, text, PRECISION), notes)


def named_for_storm(
    text: str, space: StateSpace, states: Sequence[int]
) -> tuple[str, dict[str, Mask]]:
    """Return a query with identifiers for names that may hold any character, and their states."""
    labels: dict[str, Mask] = {}

    def label(found: re.Match[str]) -> str:
        if found[1] == "init":
            return found[0]
        name = f"label{len(labels)}"
        labels[name] = where_holds(found[1], space, tuple(states), text)
        return f'"{name}"'

    return re.sub(r'"([^"]*)"', label, text), labels
