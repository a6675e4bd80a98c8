"""Bytes that are no message: an error at once, from both interpreters the same, and no memory."""

from __future__ import annotations

import random
import struct
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest
from cdr_interpreter import DECODERS
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.errors import DecodeError
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.messages import _cdr
from forewarn.messages.definitions import installed_message_type
from forewarn.messages.extraction import Extractor, compile_extractor

MARKERS = installed_message_type("visualization_msgs/msg/MarkerArray")
EXPRESSIONS = [
    "[m.pose.position.x for m in markers if m.ns == 'car']",
    "[m.color.r + m.id for m in markers]",
    "[p.z for m in markers for p in m.points]",
    "[min(p.x for p in m.points) for m in markers]",
    "[len(m.mesh_file.data) for m in markers]",
    "[m.texture.data for m in markers]",
    "markers[0].text",
    "[m.points[len(m.points) - 1].x for m in markers]",
    f"markers[{2**64 - 1}].id",
]


def marker_array(count: int, points: int, little: bool = True) -> bytes:
    types = MARKERS.typestore.types

    def make(name: str, *values: Any) -> Any:
        return types[name](*values)

    stamp = make("builtin_interfaces/msg/Time", 1, 2)
    header = make("std_msgs/msg/Header", stamp, "map")
    point = make("geometry_msgs/msg/Point", 1.0, 2.0, 3.0)
    pose = make("geometry_msgs/msg/Pose", point, make("geometry_msgs/msg/Quaternion", 0, 0, 0, 1))
    empty = np.zeros(0, np.uint8)
    marker = make(
        "visualization_msgs/msg/Marker",
        *(header, "car", 7, 1, 0, pose, make("geometry_msgs/msg/Vector3", 1, 1, 1)),
        *(
            make("std_msgs/msg/ColorRGBA", 1, 0, 0, 1),
            make("builtin_interfaces/msg/Duration", 0, 0),
        ),
        *(False, [point] * points, [], ""),
        make("sensor_msgs/msg/CompressedImage", header, "", np.arange(5, dtype=np.uint8)),
        *([], "text", "", make("visualization_msgs/msg/MeshFile", "", empty), False),
    )
    message = make(MARKERS.name, [marker] * count)
    return bytes(MARKERS.typestore.serialize_cdr(message, MARKERS.name, little_endian=little))


def extractors() -> list[Extractor]:
    parsed = [parse_expression(expression) for expression in EXPRESSIONS]
    return [compile_extractor(MARKERS, parsed, decoded_by) for decoded_by in DECODERS]


EXTRACTORS = extractors()
VALID = {True: marker_array(3, 2), False: marker_array(3, 2, little=False)}


def outcome(extract: Extractor, data: bytes) -> str:
    """Return values or error as a text; anything but DecodeError is a failure."""
    try:
        values = extract(data)
    except DecodeError as error:
        text = str(error)
        assert len(text) < 400
    else:
        text = repr(
            [value if isinstance(value, Unknown) else np.asarray(value, object) for value in values]
        )
    return text


def agree(data: bytes) -> str:
    """Return what comes of the bytes, which must be the same from all interpreters."""
    texts = {outcome(extract, data).split("'utf-8' codec")[0] for extract in EXTRACTORS}
    assert len(texts) == 1, texts
    return texts.pop()


@pytest.mark.parametrize("little", [True, False])
def test_every_truncation_is_an_error(little: bool) -> None:
    data = VALID[little]
    for length in range(len(data)):
        assert "are no visualization_msgs/msg/MarkerArray" in agree(data[:length])


def test_left_over_bytes_are_an_error_where_padding_is_not() -> None:
    assert "bytes are no" not in agree(VALID[True] + b"\0\0\0")
    slack = 3 + 8 * 3 * 3  # each of the three markers has three empty sequences
    assert "bytes are no" not in agree(VALID[True] + bytes(slack))
    assert f"{slack + 1} bytes are left over" in agree(VALID[True] + bytes(slack + 1))


@pytest.mark.parametrize("header", [b"\0\2\0\0", b"\0\7\0\0", b"\1\1\0\0", b"\0\1", b""])
def test_other_encapsulations_are_an_error(header: bytes) -> None:
    assert "header of plain CDR" in agree(header + VALID[True][4:] * bool(len(header) == 4))


@pytest.mark.parametrize("count", [0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 1_000_000])
def test_huge_counts_take_no_memory(count: int) -> None:
    data = bytearray(marker_array(1, 1))
    places = [at for at in range(4, len(data) - 4, 4) if data[at : at + 4] == b"\1\0\0\0"]
    for extract in EXTRACTORS:
        for at in places:
            lie = bytes(data[:at]) + struct.pack("<I", count) + bytes(data[at + 4 :])
            tracemalloc.start()
            outcome(extract, lie)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 200_000, (at, peak)


@settings(max_examples=examples(150), deadline=None)
@given(st.booleans(), st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), max_size=8))
def test_changed_bytes(little: bool, changes: list[tuple[int, int]]) -> None:
    data = bytearray(VALID[little])
    for at, value in changes:
        data[at % len(data)] = value
    agree(bytes(data))


@settings(max_examples=examples(150), deadline=None)
@given(st.booleans(), st.binary(max_size=300))
def test_random_bytes(little: bool, data: bytes) -> None:
    agree(bytes([0, little, 0, 0]) + data)


def test_many_random_changes_of_words() -> None:
    dice = random.Random(1)
    for _ in range(800):
        data = bytearray(VALID[True])
        for _ in range(dice.randrange(1, 4)):
            at = dice.randrange(4, len(data) - 4) & ~3
            data[at : at + 4] = struct.pack(
                "<I", dice.choice([0, 1, 2, 3, 5, 64, 10**6, 2**32 - 1])
            )
        agree(bytes(data))


@pytest.mark.parametrize(
    "words",
    [
        [0], [1], [1, 5] + [1] * 8, [1, -1] + [1] * 8, [1, 0] + [0] * 8, [2, 0], [2, 7, 0],
        [3, -1, -1, 0, 0, 0, 0], [3, -1, -1, 0, 1, 50, 0], [3, -1, -1, 0, 1, 0, -3],
        [3, -1, 9, 0, 1, 0, 0], [1, 1] + [1] * 8 + [0, 10] + [0] * 8, [9, 9, 9],
        [1, 1] + [8] * 8 + [3, 10] + [0] * 8, [1, 1] + [8] * 8 + [0, 99] + [0] * 8,
        [1, 1] + [8] * 8 + [0, 10] + [1] * 8, [1, 0] + [2**63 - 1] * 8,
    ],
)  # fmt: skip
def test_programs_that_leave_their_bounds_are_refused(words: list[int]) -> None:
    with pytest.raises(ValueError, match="not a program"):
        _cdr.Program(np.array(words, np.int64).tobytes(), bytes([0, 0]))


class Forgetting:
    """What empties the list that holds it while it lends its bytes."""

    def __init__(self, messages: list[Any]) -> None:
        self.messages = messages

    def __buffer__(self, flags: int) -> memoryview:
        self.messages.clear()
        return memoryview(b"\0\1\0\0\2\0\0\0a\0")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="objects of Python lend no bytes")
def test_messages_may_leave_the_list_while_they_are_read() -> None:
    program = _cdr.Program(np.array([2, 0, 0], np.int64).tobytes(), bytes([4, 0]))
    messages: list[Any] = []
    messages += [Forgetting(messages), Forgetting(messages)]
    assert program.many(messages) == [["a"]]
