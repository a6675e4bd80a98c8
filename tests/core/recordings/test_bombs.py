"""A few packed bytes may stand for more than a memory or a disk: unpacking ends at a limit."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from forewarn.errors import RecordingError
from forewarn.recordings import rosbag1, traces, zstd
from forewarn.recordings.bag import _decompressor
from forewarn.recordings.registry import open_recording
from forewarn.recordings.ros1 import ConversionError
from forewarn.recordings.zstd import CutError, most, unpacked

MEGABYTE = 1 << 20
BOMB = zstandard.compress(bytes(64 * MEGABYTE)) * 8


@pytest.fixture
def peak() -> Iterator[Callable[[], float]]:
    """Return what tells how many megabytes were in use at once."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1] / MEGABYTE
    tracemalloc.stop()


def test_unpacking_ends_at_the_limit(peak: Callable[[], float]) -> None:
    sizes: list[int] = []
    with pytest.raises(CutError, match=f"more than {200 * MEGABYTE} bytes"):
        sizes.extend(map(len, unpacked(io.BytesIO(BOMB), 200 * MEGABYTE)))
    assert sum(sizes) <= 200 * MEGABYTE
    assert max(sizes) <= 64 * MEGABYTE
    assert peak() < 256


def test_what_keeps_within_the_limit_is_whole() -> None:
    packed = zstandard.compress(b"one" * 1000) + zstandard.compress(b"two" * 1000)
    assert b"".join(unpacked(io.BytesIO(packed), 6000)) == b"one" * 1000 + b"two" * 1000
    with pytest.raises(CutError, match="more than 5999 bytes"):
        list(unpacked(io.BytesIO(packed), 5999))


def test_a_large_recording_that_is_packed_as_recordings_are_is_no_bomb() -> None:
    assert most(1000) == 1 << 31
    assert most(1 << 30) == 100 << 30


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_no_more_of_a_packed_file_is_put_on_the_disk(bags, tmp_path, monkeypatch, storage) -> None:
    path = bags.write(tmp_path / "bag", bags.drive(4), storage, "file")
    (file,) = path.glob("*.zstd")
    file.write_bytes(BOMB)
    monkeypatch.setattr(zstd, "UNPACKED_LIMIT", 16 * MEGABYTE)
    with pytest.raises(RecordingError):
        open_recording(path)


def test_a_message_that_does_not_tell_its_size_is_given_up(peak: Callable[[], float]) -> None:
    packed = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(MEGABYTE))
    assert _decompressor()(packed) == bytes(MEGABYTE)
    with pytest.raises(ConversionError, match="cut short"):
        _decompressor()(packed[:-3])


@pytest.mark.parametrize("compression", ["bz2", "lz4"])
def test_chunks_of_a_damaged_bag_of_ros_1_are_given_up_as_well(
    bags, tmp_path, monkeypatch, compression
) -> None:
    path = bags.write1(tmp_path / "x.bag", bags.drive(100), compression)
    path.write_bytes(path.read_bytes()[:-10])
    monkeypatch.setattr(rosbag1, "UNPACKED_LIMIT", 100)
    with pytest.raises(RecordingError, match="holds no message that can be read"):
        open_recording(path)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_line_without_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, peak: Callable[[], float]
) -> None:
    path = tmp_path / f"bomb.jsonl{suffix}"
    pack = gzip.compress if suffix == ".gz" else zstandard.compress
    path.write_bytes(pack(b" " * (32 * MEGABYTE)))
    monkeypatch.setattr(traces, "LONGEST", MEGABYTE)
    with pytest.raises(RecordingError, match=rf"bomb.jsonl{suffix}:1: is longer than {MEGABYTE}"):
        open_recording(path)
