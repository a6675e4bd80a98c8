"""Risk against the meaning of a formula on every path, written out with probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy import sparse

from forewarn.checking.interface import label_states
from forewarn.checking.numeric import risk_table
from forewarn.logic.compilation import compile_formula
from forewarn.logic.parser import parse_formula
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.states.vocabulary import Vocabulary

VOCABULARY = Vocabulary(("a", "b"), ("crash", "end"))
STATES = (0, 1, 2, 3, -1, -2)
HORIZON = 6
Path = tuple[int, ...]


def model() -> CountModel:
    counts = np.array(
        [
            [2, 3, 0, 0, 1, 1],
            [1, 4, 1, 0, 0, 1],
            [3, 0, 1, 1, 0, 0],
            [1, 1, 0, 2, 1, 0],
            [0, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 0],
        ]
    )
    starts = np.zeros(6, dtype=np.int64)
    return CountModel(
        VOCABULARY, 1.0, "", STATES, sparse.csr_matrix(counts), starts, Smoothing("none")
    )


def paths(start: int) -> Iterator[tuple[Path, float]]:
    """Yield every path of HORIZON steps, or up to a terminal state, with its probability."""
    matrix = estimate_chain(model()).to_csr().toarray()
    stack: list[tuple[Path, float]] = [((start,), 1.0)]
    while stack:
        path, weight = stack.pop()
        if len(path) == HORIZON + 1 or STATES[path[-1]] < 0:
            yield path, weight
            continue
        stack.extend(
            ((*path, following), weight * matrix[path[-1], following])
            for following in np.flatnonzero(matrix[path[-1]]).tolist()
        )


def holds(name: str) -> Callable[[int], bool]:
    return lambda index: VOCABULARY.holds(name, STATES[index])


A, B, CRASH = holds("a"), holds("b"), holds("crash")


def response(bound: int, answer: Callable[[int], bool] = B) -> Callable[[Path], bool]:
    """Violated when an obligation's last tick has come and gone on the path without an answer."""
    return lambda path: any(
        A(path[t])
        and t + bound < len(path)
        and not any(answer(s) for s in path[t : t + bound + 1])
        # A terminal state ends what is pending.
        and STATES[path[t + bound]] >= 0
        for t in range(len(path))
    )


FORMULAS: list[tuple[str, Callable[[Path], bool]]] = [
    ("always(a implies eventually[0:0](b))", response(0)),
    ("always(a implies eventually[0:2](b))", response(2)),
    ("always(a implies eventually[0:3](crash))", response(3, CRASH)),
    ("always(not crash)", lambda path: any(CRASH(s) for s in path)),
    ("always(not (a and b))", lambda path: any(A(s) and B(s) for s in path)),
    (
        "always(a implies always[0:2](not b))",
        lambda path: any(
            A(path[t]) and any(B(s) for s in path[t : t + 3]) for t in range(len(path))
        ),
    ),
]


@pytest.mark.parametrize(("formula", "violated"), FORMULAS, ids=[text for text, _ in FORMULAS])
def test_risk_is_the_share_of_paths_that_violate(
    formula: str, violated: Callable[[Path], bool]
) -> None:
    automaton = compile_formula(parse_formula(formula), rate=1.0)
    classes = label_states(automaton, VOCABULARY, STATES)
    table = risk_table(estimate_chain(model()), automaton, classes, HORIZON)
    for start in range(4):
        expected = sum(weight for path, weight in paths(start) if violated(path))
        first = automaton.transitions[automaton.initial, classes[start]]
        assert table.values[start, first] == pytest.approx(expected, abs=1e-12)
