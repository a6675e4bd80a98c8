"""Expressions over many messages at once, against the extractor that takes them singly."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

import numpy as np
import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.errors import DecodeError, ExpressionError, FieldError
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.messages.blocks import BlockExtractor, block_extractor
from forewarn.messages.definitions import message_type
from forewarn.messages.extraction import Extractor, compile_extractor

LINE = "=" * 80
SCENE = message_type(
    "my_msgs/msg/Scene",
    f"""\
float64 speed
int32 mode
bool on
int64 stamp
uint64 count
Object[] objects
float32[] ranges
Object[2] pair
{LINE}
MSG: my_msgs/Object
uint8 CAR=1
string name
float32 x
int16 kind
float64[] path
""",
    "ros2msg",
)

NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -2.5, float("inf"), float("nan")]) | st.floats(-9, 9)
OBJECTS = st.tuples(
    st.sampled_from(["", "car", "man"]),
    NUMBERS.map(lambda x: np.float32(x).item()),
    st.integers(-3, 3),
    st.lists(NUMBERS, max_size=2),
)
STAMPS = st.integers(-9, 9) | st.sampled_from([2**53 + 1, -(2**62)])
SCENES = st.tuples(
    NUMBERS,
    st.integers(-3, 3),
    st.booleans(),
    STAMPS,
    st.integers(0, 2**64 - 1),
    st.lists(OBJECTS, max_size=3),
    st.lists(NUMBERS.map(lambda x: np.float32(x).item()), max_size=3),
    st.lists(OBJECTS, min_size=2, max_size=2),
)


def cdr(scene: Any, order: str) -> bytes:
    """Write a scene as `order` ("<" or ">") wants it."""
    body = bytearray()

    def put(form: str, *values: Any) -> None:
        body.extend(bytes(-len(body) % struct.calcsize(form[-1])))
        body.extend(struct.pack(order + form, *values))

    def put_object(name: str, x: float, kind: int, path: list[float]) -> None:
        put("I", len(name) + 1)
        body.extend(name.encode() + b"\0")
        put("f", x)
        put("h", kind)
        put("I", len(path))
        if path:
            put(f"{len(path)}d", *path)

    speed, mode, on, stamp, count, objects, ranges, pair = scene
    put("d", speed)
    put("i", mode)
    put("?", on)
    put("q", stamp)
    put("Q", count)
    put("I", len(objects))
    for each in objects:
        put_object(*each)
    put("I", len(ranges))
    if ranges:
        put(f"{len(ranges)}f", *ranges)
    for each in pair:
        put_object(*each)
    return bytes([0, order == "<", 0, 0]) + bytes(body)


def message(scene: Any, order: str, damage: int) -> bytes:
    data = cdr(scene, order)
    return data[:-9] if damage == 0 else data


MESSAGES = st.builds(message, SCENES, st.sampled_from("<>"), st.integers(0, 30))

ATOMS = st.sampled_from(
    ["speed", "mode", "on", "stamp", "count", "len(objects)", "objects[0].x", "objects[-1].kind",
     "pair[1].x", "(objects[0].name == 'car')", "(pair[0].name in ('car', 'man'))", "2", "0.5",
     "inf", "len(pair[0].path)", "objects[1].path[0]"]
)  # fmt: skip
OF_EACH = st.sampled_from(
    ["o.x", "o.kind", "(o.name == 'car')", "(o.name in ('', 'man'))", "o.path[0]", "len(o.path)",
     "speed", "(o.kind == o.CAR)", "1", "max(o.path, default=-1)", "o.name"]
)  # fmt: skip
ONE = ("-{0}", "abs({0})", "(not {0})", "sqrt({0})", "isnan({0})", "({0} > 1)", "({0} in (1, 2))")
TWO = ("({0} + {1})", "({0} / {1})", "({0} < {1})", "({0} and {1})", "max({0}, {1})", "({0} ** 2)")
THREE = ("({1} if {0} else {2})", "where({0}, {1}, {2})")


def grown(atoms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.builds(str.format, st.sampled_from(ONE), inner),
            st.builds(str.format, st.sampled_from(TWO), inner, inner),
            st.builds(str.format, st.sampled_from(THREE), inner, inner, inner),
        ),
        max_leaves=3,
    )


LISTS = st.one_of(
    st.sampled_from(["ranges", "objects[0].path", "[r * 2 for r in ranges]", "pair[0].path"]),
    st.builds("[{0} for o in objects]".format, grown(OF_EACH)),
    st.builds("[{0} for o in pair]".format, grown(OF_EACH)),
    st.builds("[{0} for o in objects if o.x > 0]".format, OF_EACH),
)
REDUCED = st.builds(
    str.format,
    st.sampled_from(
        ["min({0}, default=inf)", "max({0})", "any({0})", "all({0})", "count({0})", "sum({0})",
         "mean({0})", "len({0})", "{0}", "({0} > 1)", "(2 * {0})", "{0}[0]"]
    ),
    LISTS,
)  # fmt: skip
EXPRESSIONS = REDUCED | grown(ATOMS | REDUCED)


@cache
def singly(*sources: str) -> Extractor | None:
    try:
        made = compile_extractor(SCENE, [parse_expression(source) for source in sources])
    except (FieldError, ExpressionError):
        return None  # it does not fit the message
    assert isinstance(made, Extractor)
    return made


@cache
def at_once(*sources: str) -> BlockExtractor | None:
    return block_extractor(SCENE, [parse_expression(source) for source in sources])


def exactly(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return type(value), repr(value)


@settings(max_examples=examples(200), deadline=None)
@given(EXPRESSIONS, EXPRESSIONS, st.lists(MESSAGES, min_size=1, max_size=5))
def test_blocks_give_the_bits_of_the_extractor(
    first: str, second: str, messages: list[bytes]
) -> None:
    for sources in ((first,), (first, second)):
        one = singly(*sources)
        many = None if one is None else at_once(*sources)
        if one is None or many is None:
            continue
        for data, values in zip(messages, many(messages), strict=True):
            if values is not None:
                assert list(map(exactly, values)) == list(map(exactly, one(data)))


SOME = (1.5, 2, True, 7, 8, [("car", 1.0, 1, [2.0]), ("man", 2.0, 2, [3.0, 4.0])], [1.0, 4.0],
        [("a", 1.0, 1, []), ("b", 2.0, 0, [])])  # fmt: skip


@pytest.mark.parametrize(
    "source",
    ["speed", "mode", "on", "hypot(speed, mode)", "speed if on else inf", "objects[1].x",
     "[o.x - speed for o in objects]", "[o.path[0] for o in objects]", "len(objects)", "ranges",
     "[o.name == 'car' for o in objects]", "objects[0].name == 'car'", "min(ranges, default=inf)",
     "any(o.kind == o.CAR for o in objects)", "[len(o.path) for o in pair]", "pair[1].x > 1"],
)  # fmt: skip
def test_what_works_element_by_element_runs_at_once(source: str) -> None:
    messages = [cdr(SOME, "<"), cdr(SOME, ">")]
    found, one = at_once(source), singly(source)
    assert found is not None and one is not None
    for data, values in zip(messages, found(messages), strict=True):
        assert values is not None
        assert list(map(exactly, values)) == list(map(exactly, one(data)))


@pytest.mark.parametrize(
    "source",
    ["objects[0].name", "count", "[o.name for o in objects]", "ranges[mode]", "1 + 1",
     "[o.x for o in objects if o.kind == 1]", "[max(o.path) for o in objects]", "speed ** mode",
     "[p for o in objects for p in o.path]", "[1 for o in objects]"],
)  # fmt: skip
def test_what_does_not_is_read_singly(source: str) -> None:
    assert at_once(source) is None


def test_a_message_without_a_value_is_read_singly_and_others_are_not() -> None:
    empty = cdr((*SOME[:5], [], *SOME[6:]), "<")
    found = at_once("objects[0].x", "speed")
    assert found is not None
    assert found([cdr(SOME, "<"), empty]) == [(1.0, 1.5), None]
    one = singly("objects[0].x")
    assert one is not None
    (value,) = one(empty)
    assert isinstance(value, Unknown)


def test_a_damaged_message_is_told_by_the_extractor() -> None:
    damaged = cdr(SOME, "<")[:-9]
    found, one = at_once("speed"), singly("speed")
    assert found is not None and one is not None
    assert found([cdr(SOME, "<"), damaged]) == [None, None]
    with pytest.raises(DecodeError):
        one(damaged)
