"""What every checker promises; each one passes the same tests by inheritance.

The chains and automata are made by Hypothesis, and the answer is written out: backward induction
over the explicit product, state by state, with a horizon that is long enough where there is none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from extent import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from small_chains import bounded_response

from forewarn.checking import numeric
from forewarn.checking.credible import RiskQuery, credible_tables
from forewarn.checking.interface import ENDED, RiskTable
from forewarn.checking.sound import sound_table
from forewarn.errors import CheckingError
from forewarn.logic.automaton import Automaton
from forewarn.models.chain import Chain
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.states.vocabulary import Vocabulary
from forewarn.wings.decisions import storm

EXAMPLES = settings(
    max_examples=examples(30), deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
LONG = 4000
"""Steps after which nothing changes any more in chains as small as these."""


class Case(NamedTuple):
    """A model, a property, and the letters that the states are read as."""

    model: CountModel
    automaton: Automaton
    classes: NDArray[np.int64]
    horizon: int | None

    @property
    def chain(self) -> Chain:
        return estimate_chain(self.model)


@st.composite
def automata(draw: st.DrawFn) -> Automaton:
    """Return bounded responses, and any automaton whose last state is `violated`."""
    if draw(st.booleans()):
        return bounded_response(draw(st.integers(0, 3)))
    size = draw(st.integers(2, 4))
    row = st.lists(st.integers(0, size - 1), min_size=3, max_size=3)
    moves = np.array([draw(row) for _ in range(size)], dtype=np.int32)
    moves[-1] = size - 1
    names = tuple(map(str, range(size)))
    letters = np.array([0, 1, 2, 2], dtype=np.int32)
    return Automaton(("a", "b"), letters, moves, 0, size - 1, None, names)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Return models of up to five states, the last one terminal, some never seen."""
    n = draw(st.integers(2, 5))
    cell = st.integers(0, 6)
    counts = np.array([[draw(cell) for _ in range(n)] for _ in range(n)], dtype=np.int64)
    counts[-1] = 0
    model = CountModel(
        Vocabulary(("a", "b", "c"), ("end",)),
        10.0,
        "digest",
        (*range(n - 1), -1),
        sparse.csr_matrix(counts),
        np.zeros(n, dtype=np.int64),
        Smoothing(draw(st.sampled_from(["sparse", 1.0, "none"]))),
    )
    classes = np.array([draw(st.integers(0, 2)) for _ in range(n)])
    classes[-1] = draw(st.sampled_from([ENDED, 0, 1, 2]))
    horizon = draw(st.sampled_from([0, 1, 2, 5, 20, None]))
    return Case(model, draw(automata()), classes, horizon)


def by_induction(case: Case) -> NDArray[np.float64]:
    """Return the risk of each product state, from the definition; unseen states violate nothing."""
    chain, automaton, classes = case.chain, case.automaton, case.classes
    n, m = chain.size, len(automaton.transitions)
    matrix = np.array([chain.row(s) for s in range(n)])
    stays = chain.absorbing | chain.unseen
    values = np.zeros((n, m))
    values[:, automaton.violated] = 1.0
    for _ in range(LONG if case.horizon is None else case.horizon):
        after = np.zeros((n, m))
        for t in range(n):
            if classes[t] != ENDED:
                after[t] = values[t, automaton.transitions[:, classes[t]]]
        following = matrix @ after
        following[stays] = 0.0
        following[:, automaton.violated] = 1.0
        values = following
    values[np.ix_(chain.unseen, np.arange(m) != automaton.violated)] = np.nan
    return values


class CheckerContract:
    """Tests of whatever computes a risk table."""

    def table(self, case: Case) -> RiskTable:
        """Return the risk table of a case."""
        raise NotImplementedError

    @EXAMPLES
    @given(case=cases())
    def test_the_risk_is_what_induction_over_the_product_gives(self, case: Case) -> None:
        found = self.table(case)
        assert found.horizon == case.horizon
        np.testing.assert_allclose(found.values, by_induction(case), rtol=0, atol=1e-7)

    @EXAMPLES
    @given(case=cases())
    def test_a_longer_horizon_is_no_safer(self, case: Case) -> None:
        short, longer, ever = (
            np.nan_to_num(self.table(case._replace(horizon=horizon)).values)
            for horizon in (3, 9, None)
        )
        assert (short <= longer + 1e-8).all()
        assert (longer <= ever + 1e-8).all()

    @EXAMPLES
    @given(case=cases())
    def test_bounds_hold_the_estimate(self, case: Case) -> None:
        found = self.table(case)
        assert (found.kind == "none") == (found.lower is None) == (found.upper is None)
        assert (found.kind == "none") == (found.confidence is None)
        if found.lower is None or found.upper is None:
            return
        known = ~np.isnan(found.values)
        assert (found.lower[known] <= found.values[known] + 1e-12).all()
        assert (found.values[known] <= found.upper[known] + 1e-12).all()
        assert ((found.lower >= 0) & (found.upper <= 1)).all()
        assert (found.lower[~known] == 0).all() and (found.upper[~known] == 1).all()

    @pytest.mark.parametrize(("classes", "horizon"), [([0], 3), ([0, 3], 3), ([0, 1], -1)])
    def test_arguments_that_do_not_fit_are_refused(self, classes: list[int], horizon: int) -> None:
        model = CountModel(
            Vocabulary(("a", "b")),
            10.0,
            "",
            (0, 1),
            sparse.csr_matrix(np.array([[1, 1], [1, 1]])),
            np.zeros(2, dtype=np.int64),
            Smoothing("none"),
        )
        with pytest.raises(CheckingError):
            self.table(Case(model, bounded_response(1), np.array(classes), horizon))


class TestNumeric(CheckerContract):
    """Our own solver."""

    def table(self, case: Case) -> RiskTable:
        return numeric.risk_table(case.chain, case.automaton, case.classes, case.horizon)


class TestStorm(CheckerContract):
    """Storm, over the explicit product."""

    @pytest.fixture(autouse=True)
    def stormpy(self) -> None:
        pytest.importorskip("stormpy", reason="Storm's Python package is the oracle here")

    def table(self, case: Case) -> RiskTable:
        return storm.risk_table(case.chain, case.automaton, case.classes, case.horizon)


class TestSound(CheckerContract):
    """Bounds that hold whatever was never seen."""

    def table(self, case: Case) -> RiskTable:
        return sound_table(case.model, case.automaton, case.classes, case.horizon)


class TestCredible(CheckerContract):
    """Bounds from the posterior."""

    def table(self, case: Case) -> RiskTable:
        question = RiskQuery(case.automaton, case.classes, case.horizon)
        (found,) = credible_tables(case.model, [question], samples=20)
        return found
