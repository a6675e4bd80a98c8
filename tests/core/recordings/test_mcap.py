"""MCAP files: order, index, and what can be had of files that nobody closed."""

from __future__ import annotations

from pathlib import Path

import pytest
from extent import WHOLE
from hypothesis import given
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.writer import CompressionType, IndexType, Writer

from forewarn.errors import RecordingError
from forewarn.recordings.mcap_records import MAGIC
from forewarn.recordings.registry import open_recording

SCHEMA = b"float64 data\n"


def write(path: Path, messages, *, topics=("/a", "/b", "/c"), **options) -> Path:
    """Write messages (time, number of the topic, payload) with the mcap package's writer."""
    with path.open("wb") as file:
        writer = Writer(file, **options)
        writer.start(profile="ros2")
        schema = writer.register_schema("std_msgs/msg/Float64", "ros2msg", SCHEMA)
        channels = [writer.register_channel(topic, "cdr", schema) for topic in topics]
        for time_ns, number, payload in messages:
            writer.add_message(channels[number], time_ns, payload, time_ns)
        writer.finish()
    return path


def plain(count=200):
    """Return messages with payloads that differ."""
    return [(10**9 + n * 10**6, n % 3, b"\0\1\0\0" + n.to_bytes(8, "little")) for n in range(count)]


def rows(messages, topics=("/a", "/b", "/c")):
    """Return what a reader has to yield: in the order of time, then of the file."""
    return [
        (time_ns, topics[number], payload)
        for time_ns, number, payload in sorted(messages, key=lambda each: each[0])
    ]


written = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.integers(0, 2),
        st.binary(max_size=20).map(lambda tail: b"\0\1\0\0" + tail),
    ),
    max_size=40,
)
layouts = st.fixed_dictionaries(
    {
        "chunk_size": st.integers(1, 200),
        "compression": st.sampled_from(CompressionType),
        "index_types": st.sampled_from([IndexType.ALL, IndexType.NONE, IndexType.CHUNK]),
        "use_chunking": st.booleans(),
        "use_statistics": st.booleans(),
        "repeat_channels": st.booleans(),
        "repeat_schemas": st.booleans(),
        "enable_crcs": st.booleans(),
    }
)


@given(written, layouts, st.sets(st.sampled_from(["/a", "/b", "/c"])))
def test_any_layout_yields_the_messages_in_order(tmp_path_factory, bags, messages, layout, wanted):
    path = write(tmp_path_factory.mktemp("mcap") / "x.mcap", messages, **layout)
    with open_recording(path) as recording:
        everything = rows(messages)
        assert bags.read(recording) == everything
        assert bags.read(recording, wanted) == [item for item in everything if item[1] in wanted]
        assert recording.count == len(messages)
        if messages:
            assert recording.start_ns == everything[0][0]
            assert recording.end_ns == everything[-1][0]


@pytest.mark.parametrize("compression", list(CompressionType))
@pytest.mark.parametrize("chunked", [True, False])
def test_a_file_cut_anywhere_yields_a_prefix_or_says_that_there_is_nothing(
    bags, tmp_path, compression, chunked
):
    messages = plain(60)
    whole = write(
        tmp_path / "whole.mcap",
        messages,
        compression=compression,
        chunk_size=400,
        use_chunking=chunked,
    ).read_bytes()
    cut = tmp_path / "cut.mcap"
    lengths = []
    for length in [*range(len(MAGIC), len(whole) - 1, 7 if WHOLE else 41), len(whole) - 1]:
        cut.write_bytes(whole[:length])
        try:
            with open_recording(cut) as recording:
                found = bags.read(recording)
                assert recording.warnings
                assert recording.count == len(found)
        except RecordingError as error:
            assert str(cut) in str(error)
            assert "accepted" in str(error)
            found = []
        assert found == rows(messages)[: len(found)]
        lengths.append(len(found))
    assert lengths == sorted(lengths)
    assert lengths[-1] == len(messages)


def test_the_whole_records_of_a_cut_chunk_are_read(bags, tmp_path):
    messages = plain(20_000)
    path = write(tmp_path / "x.mcap", messages, chunk_size=1 << 30)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 8])
    with open_recording(path) as recording:
        found = bags.read(recording)
        assert 0 < len(found) < 20_000
        assert found == rows(messages)[: len(found)]
        assert any(
            "the last chunk is cut short: " + str(len(found)) in warning
            for warning in recording.warnings
        )


def test_a_damaged_chunk_is_left_out_and_reported(bags, tmp_path):
    messages = plain(200)
    path = write(tmp_path / "x.mcap", messages, chunk_size=2000, compression=CompressionType.NONE)
    content = bytearray(path.read_bytes())
    place = content.index(messages[100][2])
    content[place + 5] ^= 0xFF
    path.write_bytes(content)
    with open_recording(path) as recording:
        found = bags.read(recording)
        assert 100 < len(found) < 200
        assert set(found) < set(rows(messages))
        assert any("its checksum is wrong" in warning for warning in recording.warnings)
        assert any(
            f"{200 - len(found)} messages that the index promises" in warning
            for warning in recording.warnings
        )


def test_a_damaged_index_is_replaced_by_reading_the_file(bags, tmp_path):
    messages = plain(200)
    path = write(tmp_path / "x.mcap", messages, chunk_size=2000)
    content = bytearray(path.read_bytes())
    with path.open("rb") as file:
        summary_start = make_reader(file).get_summary().chunk_indexes[0].chunk_start_offset
    content[-60] ^= 0xFF
    assert summary_start < len(content) - 60
    path.write_bytes(content)
    with open_recording(path) as recording:
        assert bags.read(recording) == rows(messages)
        assert "the index of the recording is damaged" in recording.warnings[0]


def test_a_file_without_index_that_was_closed_is_no_reason_to_warn(bags, tmp_path):
    path = write(
        tmp_path / "x.mcap",
        plain(),
        index_types=IndexType.NONE,
        use_statistics=False,
        repeat_channels=False,
        repeat_schemas=False,
        use_summary_offsets=False,
    )
    with open_recording(path) as recording:
        assert bags.read(recording) == rows(plain())
        assert recording.warnings == []


def test_an_unknown_compression_is_named(tmp_path):
    path = write(tmp_path / "x.mcap", plain())
    path.write_bytes(path.read_bytes().replace(b"\x04\0\0\0zstd", b"\x04\0\0\0brot"))
    with pytest.raises(
        RecordingError, match=r"compressed with 'brot'; zstd, lz4 or no compression is accepted"
    ):
        open_recording(path)


def test_a_file_of_another_kind_shows_its_beginning(tmp_path):
    path = tmp_path / "x.mcap"
    path.write_bytes(b"PK\3\4 and so on")
    with pytest.raises(RecordingError, match=r"x.mcap: is no MCAP file, it begins with b'PK"):
        open_recording(path)


def test_a_chunk_that_claims_to_be_huge_is_refused(tmp_path):
    path = write(tmp_path / "x.mcap", plain(), chunk_size=1 << 30)
    content = bytearray(path.read_bytes())
    with path.open("rb") as file:
        (chunk,) = make_reader(file).get_summary().chunk_indexes
    place = chunk.chunk_start_offset + 9 + 16
    content[place : place + 8] = (1 << 60).to_bytes(8, "little")
    path.write_bytes(content[: chunk.chunk_start_offset + chunk.chunk_length])
    with pytest.raises(RecordingError, match="claims to hold 1152921504606846976 bytes"):
        open_recording(path)


def test_times_that_go_back_are_reported_with_their_size(bags, tmp_path):
    messages = plain(10)
    messages = messages[5:] + messages[:5]
    path = write(tmp_path / "x.mcap", messages)
    with open_recording(path) as recording:
        assert bags.read(recording) == rows(messages)
        assert recording.warnings == [
            "log times go backwards 5 times, by up to 0.009 s; messages are read in log-time order"
        ]


def test_chunks_that_overlap_are_reported_when_the_file_is_opened(tmp_path):
    messages = plain(400)
    path = write(tmp_path / "x.mcap", messages[200:] + messages[:200], chunk_size=1000)
    with open_recording(path) as recording:
        assert "chunks in the file begin before an earlier one ends" in recording.warnings[0]


def test_messages_of_undeclared_channels_are_counted(bags, tmp_path):
    path = write(tmp_path / "x.mcap", plain(6), compression=CompressionType.NONE)
    content = path.read_bytes()
    with path.open("rb") as file:
        (chunk,) = make_reader(file).get_summary().chunk_indexes
    body = content[chunk.chunk_start_offset : chunk.chunk_start_offset + chunk.chunk_length]
    renumbered = body.replace(b"\x03\0\x01\0\x02\0\0\0/c", b"\x09\0\x01\0\x02\0\0\0/c")
    assert renumbered != body
    crc = chunk.chunk_start_offset + 9 + 24
    content = bytearray(content[: chunk.chunk_start_offset] + renumbered)
    content[crc : crc + 4] = bytes(4)
    path.write_bytes(content)
    with open_recording(path) as recording:
        assert {topic for _, topic, _ in bags.read(recording)} == {"/a", "/b"}
        assert "2 messages of no known channel cannot be read" in recording.warnings


def test_a_table_that_is_not_where_the_index_says_is_left_out(tmp_path):
    path = tmp_path / "x.mcap"
    with path.open("wb") as file:
        writer = Writer(file, enable_crcs=False)
        writer.start(profile="ros2")
        writer.add_metadata("first", {"a": "1"})
        writer.add_metadata("second", {"b": "2"})
        writer.finish()
    content = bytearray(path.read_bytes())
    with path.open("rb") as file:
        first, _ = make_reader(file).get_summary().metadata_indexes
    index = first.offset.to_bytes(8, "little") + first.length.to_bytes(8, "little")
    place = content.index(index)
    content[place : place + 8] = b"\xff" * 8
    path.write_bytes(content)
    with open_recording(path) as recording:
        assert recording.metadata() == {"second": {"b": "2"}}
        assert any("the file ends before it does" in warning for warning in recording.warnings)
