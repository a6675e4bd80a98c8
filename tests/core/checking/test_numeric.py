"""What a risk table says of terminals, unseen states and horizons."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from small_chains import given_chain

from forewarn.checking.interface import ENDED, label_states
from forewarn.checking.numeric import risk_table
from forewarn.errors import CheckingError
from forewarn.logic.automaton import Automaton
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.states.vocabulary import Vocabulary
from forewarn.wings.decisions import storm

Response = Callable[[int], Automaton]

NEVER_CRASH = Automaton(
    ("crash",),
    np.array([0, 1], dtype=np.int32),
    np.array([[0, 1], [1, 1]], dtype=np.int32),
    0,
    1,
    None,
    ("safe", "violated"),
)


def test_a_named_terminal_is_read_and_others_end_the_obligation(response: Response) -> None:
    vocabulary = Vocabulary(("a", "b"), ("crash", "arrived"))
    states = (0, 1, 2, 3, -1, -2)
    assert label_states(NEVER_CRASH, vocabulary, states).tolist() == [0, 0, 0, 0, 1, ENDED]
    assert label_states(response(2), vocabulary, states).tolist() == [0, 1, 2, 2, ENDED, ENDED]


def test_an_atom_the_model_does_not_know_is_named(response: Response) -> None:
    with pytest.raises(CheckingError, match="'b' is not known"):
        label_states(response(1), Vocabulary(("a",)), (0, 1))


def test_a_crash_counts_where_the_formula_names_it() -> None:
    # From state 0: stay 1/2, crash 3/8, arrive 1/8, so the risk is 3/4 and 3/8 at once.
    chain = given_chain([[0.5, 0.375, 0.125], [0, 1, 0], [0, 0, 1]], np.array([False, True, True]))
    classes = np.array([0, 1, ENDED])
    once = risk_table(chain, NEVER_CRASH, classes, 1)
    assert once.values.tolist() == [[0.375, 1], [0, 1], [0, 1]]
    ever = risk_table(chain, NEVER_CRASH, classes, None)
    np.testing.assert_allclose(ever.values, [[0.75, 1], [0, 1], [0, 1]], rtol=1e-15)
    assert not ever.notes


def test_a_terminal_state_ends_a_pending_obligation(response: Response) -> None:
    # Waiting one tick more: the trip may end first, which is no violation.
    chain = given_chain([[0.5, 0.5], [0, 1]], np.array([False, True]))
    table = risk_table(chain, response(1), np.array([0, ENDED]), None)
    assert table.values[0].tolist() == [0, 0.5, 1]
    assert table.values[1].tolist() == [0, 0, 1]


def test_an_unseen_state_is_unknown_and_does_not_spoil_the_others(response: Response) -> None:
    model = CountModel(
        Vocabulary(("a", "b")),
        10.0,
        "",
        (0, 1, 2),
        sparse.csr_matrix(np.array([[1, 1, 0], [0, 1, 1], [0, 0, 0]])),
        np.zeros(3, dtype=np.int64),
        Smoothing("none"),
    )
    chain = estimate_chain(model)
    table = risk_table(chain, response(1), np.array([0, 1, 0]), None)
    assert np.isnan(table.values[2, :2]).all()
    assert table.values[2, 2] == 1
    assert np.isfinite(table.values[:2]).all()
    # From state 1 the trigger holds: again (a violation) or on to the unseen state, which is
    # entered without an answer: a violation as well.
    assert table.values[1, 1] == 1
    assert any("1 state without data" in note and "up to 1 " in note for note in table.notes)


def test_a_horizon_within_the_bound_is_noted(response: Response) -> None:
    chain = given_chain([[0.5, 0.5], [0.5, 0.5]])
    classes = np.array([1, 2])
    assert "no longer than the bound" in risk_table(chain, response(5), classes, 5).notes[0]
    assert not risk_table(chain, response(5), classes, 6).notes


@pytest.mark.parametrize("fast", [True, False])
def test_a_risk_that_the_graph_decides_is_noted(response: Response, fast: bool) -> None:
    automaton = response(2) if fast else replace(response(2), countdown=None)
    closed = given_chain([[0.5, 0.5, 0], [0, 0.5, 0.5], [1, 0, 0]])
    table = risk_table(closed, automaton, np.array([1, 0, 2]), None)
    assert table.values[:, 0].tolist() == [1, 1, 1]
    assert "the risk is 1 in every state" in table.notes[0]
    assert "1 closed class)" in table.notes[0]
    safe = risk_table(closed, automaton, np.array([0, 0, 2]), None)
    assert safe.values[:, 0].tolist() == [0, 0, 0]
    assert "the risk is 0 in every state" in safe.notes[0]


@pytest.mark.parametrize(
    ("classes", "horizon", "said"),
    [
        (np.array([0]), 1, "shape"),
        (np.array([0.0, 1.0]), 1, "float64"),
        (np.array([0, 3]), 1, "from 0 to 3"),
        (np.array([0, -2]), 1, "from -2 to 0"),
        (np.array([0, 1]), -1, "horizon of -1"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    response: Response, classes: np.ndarray, horizon: int, said: str
) -> None:
    with pytest.raises(CheckingError, match=said):
        risk_table(given_chain(np.eye(2)), response(1), classes, horizon)


def test_storm_that_is_not_installed_is_an_error_that_says_what_to_do(
    response: Response, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "stormpy", None)
    with pytest.raises(CheckingError, match="pip install 'stormpy<2'"):
        storm.risk_table(given_chain(np.eye(2)), response(1), np.array([0, 1]), 3)
