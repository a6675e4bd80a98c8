"""From bytes to values: what an extractor gives, reads, notes and refuses."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from cdr_interpreter import DECODERS

from forewarn.errors import DecodeError
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.messages.definitions import MessageType, installed_message_type, message_type
from forewarn.messages.extraction import compile_extractor
from forewarn.messages.inference import infer
from forewarn.messages.vectorise import Lifted, lift

LINE = "=" * 80
OBJECTS = message_type(
    "my_msgs/msg/Objects",
    f"""\
float64 stamp
Object[] objects
uint8 mode
uint64 from
{LINE}
MSG: my_msgs/Object
uint8 CAR=1
string UNIT=m
uint8 kind
string name
float32 x
float64[] path
float64[3] size
""",
    "ros2msg",
)


def extract(mtype: MessageType, source: str, data: bytes) -> Any:
    results = [
        compile_extractor(mtype, [parse_expression(source)], decoded_by)(data)
        for decoded_by in DECODERS
    ]
    assert repr(results[0]) == repr(results[-1])
    return results[0][0]


def cdr(order: str = "<") -> bytes:
    """Write a message of two objects by hand: (1, 'car', 1.5, [7, 8]) and (2, '', nan, [])."""

    def put(form: str, *values: Any) -> None:
        size = struct.calcsize(form[-1])
        body.extend(bytes(-len(body) % size))
        body.extend(struct.pack(order + form, *values))

    def text(value: bytes) -> None:
        put("I", len(value) + 1)
        body.extend(value + b"\0")

    body = bytearray()
    put("d", 12.5)
    put("I", 2)
    put("B", 1)
    text(b"car")
    put("f", 1.5)
    put("I", 2)
    put("2d", 7.0, 8.0)
    put("3d", 4.0, 2.0, 1.0)
    put("B", 2)
    text(b"")
    put("f", math.nan)
    put("I", 0)
    put("3d", 5.0, 2.0, 1.0)
    put("B", 9)
    put("Q", 2**63 + 1)
    return bytes([0, order == "<", 0, 0]) + bytes(body)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("stamp", 12.5),
        ("mode == 9", True),
        ("from_ == 9223372036854775809", True),
        ("msg.mode", 9),
        ("len(objects)", 2),
        ("[o.kind for o in objects]", [1, 2]),
        ("[o.name for o in objects]", ["car", ""]),
        ("index_of([o.name for o in objects], '')", 1),
        ("[o.kind == o.CAR for o in objects]", [True, False]),
        ("objects[0].CAR + objects[0].kind", 2.0),
        ("objects[0].UNIT == 'm'", True),
        ("objects[0].path", [7.0, 8.0]),
        ("[o.size[0] for o in objects]", [4.0, 5.0]),
        ("[norm(o.size[0], o.size[1]) for o in objects]", [math.hypot(4, 2), math.hypot(5, 2)]),
        ("[max(o.path, default=-1) for o in objects]", [8.0, -1.0]),
        ("[s for o in objects for s in o.size if o.kind == 2]", [5.0, 2.0, 1.0]),
        ("min(o.x for o in objects if o.name == 'car')", 1.5),
        ("any(o.x > 1 for o in objects)", True),
        ("objects[1].name == '' and objects[-1].kind == 2", True),
    ],
)
def test_values(order: str, source: str, expected: Any) -> None:
    value = extract(OBJECTS, source, cdr(order))
    if isinstance(expected, list):
        assert (value.tolist() if isinstance(value, np.ndarray) else value) == expected
    else:
        assert type(value) is type(expected)
        assert value == expected


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("objects[2].kind", "there is no objects[2].kind: an index is out of range"),
        ("objects[-3].name == 'car'", "there is no objects[-3].name"),
        ("objects[1].path[0]", "there is no objects[1].path[0]"),
        ("min(objects[1].path)", "min() of an empty array"),
        ("min(min(o.path) for o in objects)", "min() of an empty array"),
        ("objects[mode].kind", "index 9 is out of range"),
    ],
)
def test_no_value_comes_with_its_reason(source: str, reason: str) -> None:
    value = extract(OBJECTS, source, cdr())
    assert isinstance(value, Unknown)
    assert reason in value.reason


def test_unknown_data_make_unknown_results() -> None:
    assert math.isnan(extract(OBJECTS, "min(o.x for o in objects)", cdr()))
    assert math.isnan(extract(OBJECTS, "all(o.x > 1 for o in objects)", cdr()))
    assert isinstance(extract(OBJECTS, "[o.kind for o in objects if o.x > 1]", cdr()), Unknown)
    known = extract(OBJECTS, "[o.kind for o in objects if isfinite(o.x) and o.x > 1]", cdr())
    assert known.tolist() == [1]


def test_elements_without_a_value_are_unknown_in_the_array() -> None:
    assert str(extract(OBJECTS, "[o.path[1] for o in objects]", cdr()).tolist()) == "[8.0, nan]"


def test_vectors_are_contiguous_and_of_few_types() -> None:
    for source, dtype in [
        ("[o.x for o in objects]", np.float64),
        ("[o.kind for o in objects]", np.int64),
        ("[o.kind > 1 for o in objects]", np.bool_),
    ]:
        value = extract(OBJECTS, source, cdr())
        assert value.dtype == dtype
        assert value.flags.c_contiguous


def test_memoryviews_and_bytearrays_are_taken() -> None:
    assert extract(OBJECTS, "mode", memoryview(cdr())) == 9  # type: ignore[arg-type]
    assert extract(OBJECTS, "mode", memoryview(b"x" + cdr())[1:]) == 9  # type: ignore[arg-type]
    assert extract(OBJECTS, "mode", bytearray(cdr())) == 9  # type: ignore[arg-type]


def test_a_message_of_another_layout_is_an_error_even_in_what_is_not_read() -> None:
    other = installed_message_type("std_msgs/msg/Float64")
    raw = bytes(other.typestore.serialize_cdr(other.typestore.types[other.name](1.0), other.name))
    for decoded_by in DECODERS:
        read = compile_extractor(OBJECTS, [parse_expression("stamp")], decoded_by)
        with pytest.raises(DecodeError, match=r"12 bytes are no my_msgs/msg/Objects: it ends at"):
            read(raw)
        with pytest.raises(DecodeError, match="left over"):
            read(cdr() + bytes(100))
        with pytest.raises(DecodeError, match="header of plain CDR"):
            read(b"\0\7\0\0" + cdr()[4:])


def test_invalid_text_is_an_error_only_where_it_is_read() -> None:
    data = cdr().replace(b"car\0", b"c\xff\xff\0")
    assert extract(OBJECTS, "mode", data) == 9
    for decoded_by in DECODERS:
        with pytest.raises(DecodeError, match="utf-8"):
            compile_extractor(OBJECTS, [parse_expression("objects[0].name")], decoded_by)(data)


@pytest.mark.parametrize(
    "source",
    [
        "[o.x - stamp for o in objects]",
        "[o.x for o in objects if o.name == 'car' and o.kind in (1, 2)]",
        "[p for o in objects for p in o.path if p > o.x]",
        "[min(o.path, default=0) + o.x for o in objects]",
        "[sum(p * o.x for p in o.path) for o in objects]",
        "min([hypot(o.x, o.size[1]) for o in objects if o.kind == o.CAR], default=inf)",
        "[o.x - min(k.x for k in objects) for o in objects]",
        "objects[0].path[-1]",
        "len([o for o in objects if o.kind == 1])",
        "count(o.kind == 1 for o in objects)",
    ],
)
def test_planned_on_whole_arrays(source: str) -> None:
    assert isinstance(lift(infer(parse_expression(source), OBJECTS.struct)), Lifted)
    assert compile_extractor(OBJECTS, [parse_expression(source)]).notes == ()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("[o.path[o.kind] for o in objects]", "the index of o.path[o.kind] differs"),
        ("[i + o.kind for i, o in enumerate(objects)]", "enumerate() goes from element to element"),
        ("[o.kind for o in objects[1:]]", "objects is used as a whole"),
        ("[o.path for o in objects][0]", "an array for each element"),
    ],
)
def test_what_is_not_planned_works_and_says_what_it_costs(source: str, reason: str) -> None:
    (note,) = compile_extractor(OBJECTS, [parse_expression(source)]).notes
    assert source in note
    assert reason in note
    assert " us for each" in note
    assert not isinstance(extract(OBJECTS, source, cdr()), Unknown)


def test_only_what_is_touched_is_read() -> None:
    plan = compile_extractor(OBJECTS, [parse_expression("[o.x for o in objects]")]).plan
    assert set(plan.values) == {("objects", "*", "x")}
    assert set(plan.counts) == {("objects",)}
    plan = compile_extractor(OBJECTS, [parse_expression("objects[1].kind")]).plan
    assert plan.caps == {("objects",): 2}


def test_expressions_share_what_they_read() -> None:
    sources = ["[o.x for o in objects]", "min(o.x for o in objects)", "objects[0].x"]
    read = compile_extractor(OBJECTS, [parse_expression(source) for source in sources])
    assert len(read.plan.values) == 1
    assert len(read(cdr())) == 3


def test_without_expressions_the_layout_is_still_checked() -> None:
    for decoded_by in DECODERS:
        read = compile_extractor(OBJECTS, [], decoded_by)
        assert read(cdr()) == []
        with pytest.raises(DecodeError):
            read(cdr()[:-1])
