"""Whatever happened to a file: valid samples and warnings, or a RecordingError."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forewarn.errors import RecordingError
from forewarn.recordings import open_recording

KINDS = [
    "mcap-none",
    "mcap-chunk",
    "mcap-message",
    "mcap-file",
    "sqlite3-none",
    "sqlite3-message",
    "sqlite3-file",
    "bag-none",
    "bag-bz2",
    "bag-lz4",
    "trace",
]
NAMES = {"mcap": "x.mcap", "sqlite3": "x.db3", "bag": "x.bag"}


@pytest.fixture(scope="session")
def originals(bags, tmp_path_factory):
    """Return what returns name and content of a small recording of a kind."""
    found = {"trace": ("x.jsonl", b'{"t": 1, "a": 2.5}\n{"t": 2, "a": [1, "b"]}\n' * 20)}
    folder = tmp_path_factory.mktemp("originals")
    for kind in KINDS[:-1]:
        storage, compression = kind.split("-")
        path = folder / kind
        if storage == "bag":
            bags.write1(path, bags.drive(12), compression)
        else:
            bags.write(path, bags.drive(12), storage, compression)
            (path,) = (one_path for one_path in path.iterdir() if one_path.name != "metadata.yaml")
        suffix = ".zstd" if compression == "file" else ""
        found[kind] = (NAMES[storage] + suffix, path.read_bytes())
    return found.__getitem__


def exhaust(path):
    """Do all that can be done with a recording, and check what it says of itself."""
    try:
        with open_recording(path) as recording:
            for info in recording.topics.values():
                assert (info.error is None) == (info.message_type is not None)
            latest = 0
            for sample in recording.read():
                assert 0 <= sample.time_ns < 1 << 63
                assert sample.time_ns >= latest
                latest = sample.time_ns
                assert isinstance(sample.topic, str)
                assert isinstance(sample.data, (bytes, memoryview, dict))
            recording.metadata()
            recording.attachments()
            recording.digest()
            assert all(isinstance(warning, str) and warning for warning in recording.warnings)
    except RecordingError as error:
        assert str(path) in str(error)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_damage_gives_samples_or_a_recording_error(originals, tmp_path, kind, data):
    name, original = originals(kind)
    content = bytearray(original)
    size = len(content)
    for place, bits in data.draw(
        st.lists(st.tuples(st.integers(0, size - 1), st.integers(1, 255)), max_size=4), "flips"
    ):
        content[place] ^= bits
    if data.draw(st.booleans(), "cut"):
        content = content[: data.draw(st.integers(0, size), "length")]
    if data.draw(st.booleans(), "insert"):
        place = data.draw(st.integers(0, len(content)), "place")
        content[place:place] = data.draw(st.binary(min_size=1, max_size=40), "inserted")
    path = tmp_path / name
    path.write_bytes(content)
    exhaust(path)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=st.binary(max_size=300), data=st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_the_right_beginning_followed_by_anything(originals, tmp_path, kind, content, data):
    name, original = originals(kind)
    path = tmp_path / name
    path.write_bytes(original[: data.draw(st.integers(0, 200), "kept")] + content)
    exhaust(path)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(alphabet="abc:{}[]-'\"\n \t&*!|>0123", max_size=200))
def test_any_metadata_file(bags, originals, tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("folder")
    (folder / "x.mcap").write_bytes(originals("mcap-chunk")[1])
    (folder / "metadata.yaml").write_text(
        f"rosbag2_bagfile_information:\n  relative_file_paths: [x.mcap]\n{text}"
    )
    exhaust(folder)
    (folder / "metadata.yaml").write_text(text)
    exhaust(folder)
    shutil.rmtree(folder)
