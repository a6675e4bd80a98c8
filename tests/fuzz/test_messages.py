"""The CDR plan: whatever the bytes, both interpreters say the same, a value or a DecodeError."""

from __future__ import annotations

from typing import Any

import numpy as np
from cdr_interpreter import DECODERS
from hypothesis import strategies as st
from mutations import changed_bytes, changed_text

from forewarn.errors import DecodeError, ForewarnError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.definitions import message_type
from forewarn.messages.extraction import compile_extractor

DEFINITION = """\
bool flag
int8 small
string[] names
float64[3] fixed
Part[] parts
uint16[<=4] few
Part one
int64 last
wstring wide
================================================================================
MSG: fuzz_msgs/Part
uint8 CAR=1
uint8 kind
float32[] ranges
string text
Point[2] corners
================================================================================
MSG: fuzz_msgs/Point
float64 x
float32 y
"""
NAME = "fuzz_msgs/msg/All"
EXPRESSIONS = (
    "flag", "small + last", "len(names)", "names[1]", "fixed[2]", "[p.kind for p in parts]",
    "[p.corners[1].y for p in parts if p.kind == p.CAR]", "sum(one.ranges)", "parts[1].text",
    "wide",
    "[len(p.ranges) for p in parts]", "max([r for p in parts for r in p.ranges], default=0)",
    "few[-1]", "one.corners[0].x", "any(p.text == 'ab' for p in parts)", "msg.last",
    "[q.x for p in parts for q in p.corners]", "names", "parts[0].ranges[3:1:-1]",
)  # fmt: skip
WORDS = (
    "[]", "[<=3]", "[0]", "[99999999999]", "string<=4", "MSG: ", "=" * 80, "=", "#", "\n", "int7",
    "uint8 X=300", "fuzz_msgs/Part", "fuzz_msgs/All", "wstring", "char", "byte", "-1",
)  # fmt: skip


def _serialized() -> list[bytes]:
    # rosbags knows no wstring: that one is put behind what it writes.
    most = message_type(NAME, DEFINITION.replace("wstring wide\n", ""), "ros2msg")
    store, types = most.typestore, most.typestore.types
    point = types["fuzz_msgs/msg/Point"](1.0, 2.0)

    def part(number: int) -> Any:
        ranges = np.arange(number, dtype=np.float32)
        return types["fuzz_msgs/msg/Part"](number, ranges, "ab" * number, [point, point])

    found = []
    for number in (0, 1, 3):
        message = types[NAME](
            True, -3, ["x", "yz"][:number], np.arange(3.0), [part(n) for n in range(number)],
            np.arange(number, dtype=np.uint16), part(number), 2**40,
        )  # fmt: skip
        for little in (True, False):
            head = bytes(store.serialize_cdr(message, NAME, little_endian=little))
            order = "little" if little else "big"
            words = b"".join(ord(item).to_bytes(4, order) for item in "w\u00e9")
            found.append(head + (2).to_bytes(4, order) + words)
    return found


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and np.array_equal(one, other, equal_nan=one.dtype == "f8")
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


def test_messages(fuzz):
    mtype = message_type(NAME, DEFINITION, "ros2msg")
    expressions = [parse_expression(expression) for expression in EXPRESSIONS]
    several = [compile_extractor(mtype, expressions, decoded_by) for decoded_by in DECODERS]
    single = [
        [compile_extractor(mtype, [expression], decoded_by) for decoded_by in DECODERS]
        for expression in expressions
    ]

    def run(extract: Any, content: bytes) -> Any:
        try:
            return extract(content)
        except DecodeError:
            return None

    def check(case: tuple[bytes, int]) -> None:
        content, which = case
        for fast, slow in (several, single[which]):
            one, other = run(fast, content), run(slow, memoryview(content))
            assert (one is None) == (other is None)
            assert one is None or _same(one, other), (one, other)

    contents = st.one_of(
        changed_bytes(_serialized()),
        st.binary(max_size=60).map(lambda tail: b"\x00\x01\x00\x00" + tail),
        st.binary(max_size=20),
    )
    fuzz(st.tuples(contents, st.integers(0, len(EXPRESSIONS) - 1)), check)


def test_definitions(fuzz):
    """A recording brings its own definitions."""

    def check(case: tuple[str, str]) -> None:
        definition, expression = case
        try:
            mtype = message_type(NAME, definition, "ros2msg")
            extract = compile_extractor(mtype, [parse_expression(expression)])
            extract(b"\x00\x01\x00\x00" + bytes(200))
        except ForewarnError as error:
            assert str(error)

    fuzz(st.tuples(changed_text([DEFINITION], WORDS), st.sampled_from(EXPRESSIONS)), check)
