"""Extents and strides, against laying out every byte one by one."""

from __future__ import annotations

import struct

import pytest
from cdr_interpreter import DECODERS
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.errors import DecodeError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.definitions import message_type
from forewarn.messages.extraction import compile_extractor
from forewarn.messages.schema import (
    FORMATS,
    HUGE,
    PHASES,
    ArrayOf,
    FieldType,
    Layouts,
    Primitive,
    SequenceOf,
    Struct,
)

primitives = st.sampled_from([Primitive(name) for name in FORMATS])
parts = st.recursive(
    primitives,
    lambda inner: st.one_of(
        st.builds(ArrayOf, inner, st.integers(1, 9)),
        st.lists(inner, min_size=1, max_size=4).map(
            lambda each: Struct("a/msg/A", {f"f{i}": part for i, part in enumerate(each)})
        ),
    ),
    max_leaves=12,
)


def end(part: FieldType, at: int) -> int:
    """Lay out a part from `at` on, as the specification says."""
    if isinstance(part, Primitive):
        form = FORMATS[part.name]
        while at % form.align:
            at += 1
        return at + form.size
    if isinstance(part, Struct):
        for field in part.fields.values():
            at = end(field, at)
        return at
    assert isinstance(part, ArrayOf)
    for _ in range(part.length):
        at = end(part.element, at)
    return at


@settings(deadline=None)
@given(parts)
def test_extents(part: FieldType) -> None:
    extents = Layouts().extents(part)
    assert extents == tuple(end(part, phase) - phase for phase in range(PHASES))
    assert 1 <= Layouts().least(part) <= min(extents)


def test_what_depends_on_data_has_no_extent() -> None:
    text, numbers = Primitive("string"), SequenceOf(Primitive("int8"), 0)
    for part in (text, Primitive("wstring"), numbers, ArrayOf(text, 2)):
        assert Layouts().extents(part) is None
        assert Layouts().least(part) >= 4


@pytest.mark.timeout(60)
def test_gigantic_arrays_cost_nothing() -> None:
    part: FieldType = Struct("a/msg/A", {"a": Primitive("uint16"), "b": Primitive("uint8")})
    for _ in range(6):
        part = Struct("a/msg/B", {"x": ArrayOf(part, 10**9)})
    extents = Layouts().extents(part)
    assert extents == (HUGE,) * 8
    mtype = message_type("a_msgs/msg/A", "float64[1000000000] x\nuint8 y\n", "ros2msg")
    for source in ("y", "x[5]", "sum(x)"):
        for decoded_by in DECODERS:
            read = compile_extractor(mtype, [parse_expression(source)], decoded_by)
            with pytest.raises(DecodeError):
                read(b"\0\1\0\0" + bytes(1000))


@pytest.mark.parametrize("order", ["<", ">"])
def test_wide_letters_and_long_doubles_are_passed_over(order: str) -> None:
    text = (
        "module a_msgs { module msg { struct A "
        "{ octet a; long double big; wchar letter; sequence<wchar> letters; double x; }; }; };"
    )
    mtype = message_type("a_msgs/msg/A", text, "ros2idl")
    body = b"\7" + bytes(7) + bytes(16) + struct.pack(order + "HxxI3H", 65, 3, 66, 67, 68)
    body += bytes(-len(body) % 8) + struct.pack(order + "d", 2.5)
    data = bytes([0, order == "<", 0, 0]) + body
    for decoded_by in DECODERS:
        expressions = [parse_expression(item) for item in ("a", "letter", "letters[2]", "x")]
        assert compile_extractor(mtype, expressions, decoded_by)(data) == [7, 65, 68, 2.5]
