"""Graph analysis against the definition by powers of the matrix."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from forewarn.checking.reachability import backward_reachable, certain, closed_classes

N = 6


@st.composite
def graphs(draw: st.DrawFn) -> np.ndarray:
    cells = draw(st.lists(st.booleans(), min_size=N * N, max_size=N * N))
    return np.array(cells).reshape(N, N)


def reaches(edges: np.ndarray) -> np.ndarray:
    """Reflexive transitive closure (Warshall)."""
    closure = edges | np.eye(N, dtype=bool)
    for k in range(N):
        closure |= closure[:, k, None] & closure[k]
    return closure


@given(graphs(), st.lists(st.booleans(), min_size=N, max_size=N))
def test_reachability_equals_the_transitive_closure(edges: np.ndarray, marks: list[bool]) -> None:
    targets = np.array(marks)
    found = backward_reachable(sparse.csr_matrix(edges.astype(float)), targets)
    np.testing.assert_array_equal(found, (reaches(edges) & targets).any(axis=1))


@given(graphs(), st.lists(st.sampled_from("ptx"), min_size=N, max_size=N))
def test_probability_zero_and_one_equal_many_steps_of_the_chain(
    edges: np.ndarray, kinds: list[str]
) -> None:
    targets = np.array([kind == "t" for kind in kinds])
    through = np.array([kind == "p" for kind in kinds])
    matrix = edges / np.maximum(edges.sum(axis=1, keepdims=True), 1)
    values = targets.astype(float)
    for _ in range(2000):
        values = np.where(targets, 1.0, np.where(through, matrix @ values, 0.0))
    # A node without edges stays where it is; it reaches nothing.
    sure = certain(sparse.csr_matrix(matrix), targets, through)
    np.testing.assert_array_equal(sure.zero, values < 1e-9)
    np.testing.assert_array_equal(sure.one, values > 1 - 1e-9)


@given(graphs())
def test_closed_classes_are_what_cannot_be_left(edges: np.ndarray) -> None:
    closure = reaches(edges)
    found = closed_classes(sparse.csr_matrix(edges.astype(float)))
    recurrent = np.array([(closure[i] <= closure[:, i]).all() for i in range(N)])
    np.testing.assert_array_equal(found.label >= 0, recurrent)
    for i in np.flatnonzero(recurrent):
        np.testing.assert_array_equal(found.label == found.label[i], closure[i] & recurrent)
    assert found.number == len(set(found.label[recurrent].tolist()))
