"""The conversion of ROS 1 messages; decoding by rosbags is the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from forewarn.recordings.ros1 import ConversionError, ros1_type

NAME = "some_pkg/msg/Mixed"
DEFINITION = """Header header
bool flag
float64 value
string[] texts
uint8 small
time[2] stamps
Inner[] inner
================================================================================
MSG: std_msgs/Header
uint32 seq
time stamp
string frame_id
================================================================================
MSG: some_pkg/Inner
bool flag
float64 value
"""


def plain_store():
    """Return a store in which the type stands under another name for Header, seq and all."""
    store = get_typestore(Stores.EMPTY)
    text = DEFINITION.replace("Header", "Head")
    store.register(get_types_from_msg(text.replace("Head header", "std_msgs/Head header"), NAME))
    return store


PLAIN = plain_store()
MIXED = ros1_type(NAME, DEFINITION)
CONVERTED = get_typestore(Stores.EMPTY)
CONVERTED.register(get_types_from_msg(MIXED.definition, NAME))
TYPES = PLAIN.types
TIME = TYPES["builtin_interfaces/msg/Time"]
texts = st.text(max_size=6)
inner = st.builds(TYPES["some_pkg/msg/Inner"], flag=st.booleans(), value=st.floats())
stamp = st.builds(TIME, sec=st.integers(0, 2**31 - 1), nanosec=st.integers(0, 10**9 - 1))
messages = st.builds(
    TYPES[NAME],
    header=st.builds(
        TYPES["std_msgs/msg/Head"], seq=st.integers(0, 2**32 - 1), stamp=stamp, frame_id=texts
    ),
    flag=st.booleans(),
    value=st.floats(),
    texts=st.lists(texts, max_size=40),
    small=st.integers(0, 255),
    stamps=st.lists(stamp, min_size=2, max_size=2),
    inner=st.lists(inner, max_size=40),
)


@given(messages)
def test_every_field_survives(message):
    payload = MIXED.convert(bytes(PLAIN.serialize_ros1(message, NAME)))
    found = CONVERTED.deserialize_cdr(payload, NAME)
    assert not hasattr(found.header, "seq")
    assert found.header.frame_id == message.header.frame_id
    ours, theirs = found.header.stamp, message.header.stamp
    assert (ours.sec, ours.nanosec) == (theirs.sec, theirs.nanosec)
    assert found.flag == message.flag
    assert np.array_equal(found.value, message.value, equal_nan=True)
    assert found.texts == message.texts
    assert found.small == message.small
    assert [(one_stamp.sec, one_stamp.nanosec) for one_stamp in found.stamps] == [
        (one_stamp.sec, one_stamp.nanosec) for one_stamp in message.stamps
    ]
    assert [item.flag for item in found.inner] == [item.flag for item in message.inner]
    assert np.array_equal(
        [item.value for item in found.inner], [item.value for item in message.inner], equal_nan=True
    )


def test_a_message_that_padding_doubles_is_converted_as_well():
    kind = ros1_type("some_pkg/msg/List", "string[] all\n")
    payload = kind.convert((500).to_bytes(4, "little") + bytes(4 * 500))
    assert bytes(payload) == b"\0\1\0\0" + (500).to_bytes(4, "little") + (
        b"\1\0\0\0\0\0\0\0" * 499 + b"\1\0\0\0\0"
    )


@given(st.binary(max_size=200))
def test_bytes_of_any_other_layout_are_refused_or_converted(data):
    try:
        payload = MIXED.convert(data)
    except ConversionError as error:
        assert str(error)
    else:
        assert len(payload) >= len(data)


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        ("float64", "Could not parse"),
        ("other_pkg/Thing thing", "other_pkg"),
        (
            "Header header\n" + "=" * 80 + "\nMSG: std_msgs/Header\ntime stamp\n",
            "its Header does not begin with seq",
        ),
        ("\0", "Could not parse"),
    ],
)
def test_a_definition_that_cannot_be_used_is_named(definition, problem):
    with pytest.raises(ConversionError, match=problem):
        ros1_type(NAME, definition)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_and_text_constants_change_nothing(end):
    constant = 'string MARK=#"no comment\n  string  OTHER = # 1\n'
    text = (constant + DEFINITION + "string LAST=#\n").replace("\n", end)
    assert ros1_type(NAME, text).definition == MIXED.definition
