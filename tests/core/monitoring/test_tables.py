from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.tables import LoadedModel
from forewarn.states.predicates.validity import build_validity
from forewarn.states.vocabulary import Observation

TEXT = """
rate: 10
signals: {x: {timeout: 1}, y: {timeout: 1}}
predicates: {a: x > 1, b: y > 1}
bins: {x: [0, 1]}
terminal: {crashed: x > 9, over: x < -9}
properties: {p: {formula: always(a)}}
"""
COMPILED = compile_spec(parse_spec(parse_document(TEXT)))
VALIDITY = build_validity(COMPILED.spec, COMPILED.abstraction)
ADMISSIBLE = VALIDITY.states()


@given(
    st.sets(st.sampled_from([*ADMISSIBLE, -1, -2])),
    st.integers(0, 15),
    st.integers(0, 15),
    st.integers(0, 3),
)
def test_compatible_states_are_those_that_agree_one_by_one(
    states: set[int], known: int, mask: int, opened: int
) -> None:
    ordered = tuple(sorted(states, key=lambda s: (s < 0, s)))
    index = {s: i for i, s in enumerate(ordered)}
    model = LoadedModel("", COMPILED.abstraction.vocabulary, index, ordered, VALIDITY)
    found = model.compatible(Observation(None, known, mask, opened, True))

    def agrees(state: int) -> bool:
        return (state ^ mask) & known == 0

    possible = {s for s in ADMISSIBLE if agrees(s)}
    plain = found.labels < 0
    assert {ordered[row] for row in found.rows[plain]} == possible & states
    assert found.labels[~plain].tolist() == [i for i in range(2) if opened >> i & 1]
    assert found.complete == (possible <= states)
    assert np.array_equal(
        found.rows, model.compatible(Observation(None, known, mask, opened, True)).rows
    )
