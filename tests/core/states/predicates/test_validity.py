"""Admissible states against valuations tried one by one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError
from forewarn.states.predicates.compile import build_abstraction
from forewarn.states.predicates.validity import build_validity

VALUES = [x / 2 for x in range(-3, 8)]  # beyond, on and between all thresholds 0, 1, 2


def build(predicates: dict[str, str], constraints: str = "", extra: str = ""):
    text = (
        "rate: 10\nsignals: {x: {timeout: 1}, y: {timeout: 1}, flag: {timeout: 1}}\n"
        "properties: {p: {formula: always(true)}}\npredicates:\n"
        + "".join(f"  {name}: {body!r}\n" for name, body in predicates.items())
        + constraints
        + extra
    )
    spec = parse_spec(parse_document(text))
    abstraction = build_abstraction(spec)
    return abstraction, build_validity(spec, abstraction)


def reachable(abstraction) -> set[int]:
    found = set()
    for x, y, flag in itertools.product(VALUES, VALUES, [0.0, 1.0]):
        names = {"x": x, "y": y, "flag": flag}
        values, *_ = abstraction.complete([names[s.name] for s in abstraction.sources])
        found.add(abstraction.evaluate(values).state)
    return found


atoms = st.builds(
    lambda s, op, t: f"{s} {op} {t}",
    st.sampled_from(["x", "y"]),
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    st.integers(0, 2),
)
bodies = st.one_of(
    atoms,
    st.just("flag"),
    st.builds(lambda a, b, w: f"{a} {w} not ({b})", atoms, atoms, st.sampled_from(["and", "or"])),
)


@given(st.lists(bodies, min_size=1, max_size=5))
def test_admissible_is_what_some_valuation_gives(texts: list[str]) -> None:
    abstraction, validity = build({f"p{i}": text for i, text in enumerate(texts)})
    expected = reachable(abstraction)
    assert set(validity.states()) == expected
    for state in range(1 << len(texts)):
        assert validity.admits(state) == (state in expected)


def test_a_predicate_over_predicates_follows_them() -> None:
    _, validity = build({"a": "x > 1", "b": "y > 1", "c": "a and b"})
    assert set(validity.states()) == {0b000, 0b001, 0b010, 0b111}


def test_bins_nest() -> None:
    _, validity = build({"a": "flag"}, extra="bins: {x: [1, 2, 3]}\n")
    assert {s >> 1 for s in validity.states()} == {0b000, 0b100, 0b110, 0b111}


def test_declared_constraints_narrow_states_and_transitions() -> None:
    rules = (
        "terminal: {over: flag}\n"
        "constraints:\n  - exclusive: [a, b]\n  - implies: [c, a]\n  - irreversible: c\n"
        "  - forbid: {from: 'b', to: 'a and not c'}\n"
    )
    _, validity = build({"a": "x > 1", "b": "y > 1", "c": "x > 2"}, rules)
    assert set(validity.states()) == {0b000, 0b001, 0b010, 0b101}
    allowed = {
        (s, t) for s in validity.states() for t in [*validity.states(), -1] if validity.allows(s, t)
    }
    states = [*validity.states(), -1]
    matrix = validity.forbidden_matrix(states)
    for i, s in enumerate(states[:-1]):
        for j, t in enumerate(states):
            irreversible = bool(s & 4) and t >= 0 and not t & 4
            rule = bool(s & 2) and t == 0b001
            assert ((s, t) in allowed) == (not (irreversible or rule))
            assert bool(matrix[i, j]) == (irreversible or rule)
    assert validity.allows(-1, -1)
    assert not validity.allows(-1, 0)


def test_a_constraint_over_an_unknown_name_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"constraints\[0\].*'nope'.*accepted: a"):
        build({"a": "x > 1"}, "constraints:\n  - exclusive: [a, nope]\n")


def test_with_history_the_past_of_the_next_state_is_the_present_of_this_one() -> None:
    abstraction, validity = build({"a": "x > 1", "b": "x > 2"}, extra="history: 2\n")
    assert abstraction.vocabulary.predicates == ("a", "b", "a@-1", "b@-1")
    now = [0b00, 0b01, 0b11]
    assert set(validity.states()) == {b << 2 | n for b in now for n in now}
    for source in validity.states():
        for target in validity.states():
            assert validity.allows(source, target) == (target >> 2 == source & 3)
    matrix = validity.forbidden_matrix(validity.states())
    assert matrix.sum() == 9 * 9 - 9 * 3
