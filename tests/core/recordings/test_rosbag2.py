"""rosbag2 in all the forms it comes in; rosbags' own reader is the oracle."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from rosbags.rosbag2 import Reader

from forewarn.errors import RecordingError
from forewarn.recordings.registry import find_recordings, open_recording

FORMS = [
    ("mcap", "none"),
    ("mcap", "file"),
    ("mcap", "message"),
    ("mcap", "chunk"),
    ("sqlite3", "none"),
    ("sqlite3", "file"),
    ("sqlite3", "message"),
]


@pytest.mark.parametrize(("storage", "compression"), FORMS)
def test_samples_come_as_rosbags_yields_them(bags, tmp_path, storage, compression):
    messages = bags.drive()
    shuffled = messages[30:] + messages[:30] if storage == "mcap" else messages
    path = bags.write(tmp_path / "bag", shuffled, storage, compression)
    with Reader(path) as reader:
        theirs = [
            (time_ns, connection.topic, bytes(data))
            for connection, time_ns, data in reader.messages()
        ]
    with open_recording(path) as recording:
        assert bags.read(recording) == theirs


@pytest.mark.parametrize(("storage", "compression"), FORMS)
def test_a_bare_file_needs_no_metadata(bags, tmp_path, storage, compression):
    folder = bags.write(tmp_path / "bag", bags.drive(), storage, compression)
    (file,) = (path for path in folder.iterdir() if path.name != "metadata.yaml")
    alone = tmp_path / file.name
    shutil.move(file, alone)
    with open_recording(alone) as recording:
        assert bags.read(recording) == bags.expected(bags.drive())
        assert recording.size == alone.stat().st_size


def join(tmp_path: Path, *parts: Path, storage: str = "mcap") -> Path:
    """Join bags into one folder, as a recorder that splits its files leaves them."""
    whole = tmp_path / "whole"
    whole.mkdir()
    documents = [yaml.safe_load((part / "metadata.yaml").read_text()) for part in parts]
    suffix = {"mcap": "mcap", "sqlite3": "db3"}[storage]
    names = [f"whole_{number}.{suffix}" for number in range(len(parts))]
    for part, name in zip(parts, names, strict=True):
        shutil.copy(part / f"{part.name}.{suffix}", whole / name)
    merged = documents[0]
    table = merged["rosbag2_bagfile_information"]
    table["relative_file_paths"] = names
    table["message_count"] = sum(
        document["rosbag2_bagfile_information"]["message_count"] for document in documents
    )
    (whole / "metadata.yaml").write_text(yaml.safe_dump(merged))
    return whole


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("with_metadata", [True, False])
def test_split_files_are_one_recording(bags, tmp_path, storage, with_metadata):
    messages = bags.drive()
    parts = [
        bags.write(tmp_path / f"part{n}", messages[n * 40 : (n + 1) * 40], storage)
        for n in range(3)
    ]
    whole = join(tmp_path, *parts, storage=storage)
    if not with_metadata:
        (whole / "metadata.yaml").unlink()
    with open_recording(whole) as recording:
        assert bags.read(recording) == bags.expected(messages)
        assert recording.count == 120
        assert recording.topics["/odom"].count == 60
        assert (recording.warnings == []) == with_metadata


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_split_files_that_overlap_are_merged_by_time(bags, tmp_path, storage):
    messages = bags.drive()
    parts = [
        bags.write(tmp_path / "even", messages[::2], storage),
        bags.write(tmp_path / "odd", messages[1::2], storage),
    ]
    with open_recording(join(tmp_path, *parts, storage=storage)) as recording:
        assert bags.read(recording) == bags.expected(messages)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_split_files_that_overlap_a_little_need_no_metadata(bags, tmp_path, storage):
    # Recorders write as messages come: some are a little older than the one before.
    messages = bags.drive()
    parts = [
        bags.write(tmp_path / "first", [*messages[:58], *messages[60:62]], storage),
        bags.write(tmp_path / "second", [*messages[58:60], *messages[62:]], storage),
    ]
    whole = join(tmp_path, *parts, storage=storage)
    (whole / "metadata.yaml").unlink()
    assert find_recordings(whole) == [whole]
    with open_recording(whole) as recording:
        assert bags.read(recording) == bags.expected(messages)


def test_more_than_ten_split_files_are_read_in_the_order_of_their_numbers(bags, tmp_path):
    messages = bags.drive(24)
    parts = [bags.write(tmp_path / f"part{n}", messages[n * 4 : (n + 1) * 4]) for n in range(12)]
    whole = join(tmp_path, *parts)
    (whole / "metadata.yaml").unlink()
    with open_recording(whole) as recording:
        assert bags.read(recording) == bags.expected(messages)


def test_a_missing_split_file_is_reported_and_the_others_are_read(bags, tmp_path):
    messages = bags.drive()
    parts = [bags.write(tmp_path / f"part{n}", messages[n * 60 : n * 60 + 60]) for n in (0, 1)]
    whole = join(tmp_path, *parts)
    (whole / "whole_1.mcap").unlink()
    with open_recording(whole) as recording:
        assert bags.read(recording) == bags.expected(messages[:60])
        assert recording.warnings == [
            "whole_1.mcap named by metadata.yaml is missing",
            "metadata.yaml promises 120 messages, the files hold 60",
        ]


def test_a_damaged_split_file_is_reported_and_the_others_are_read(bags, tmp_path):
    messages = bags.drive()
    parts = [bags.write(tmp_path / f"part{n}", messages[n * 60 : n * 60 + 60]) for n in (0, 1)]
    whole = join(tmp_path, *parts)
    (whole / "whole_0.mcap").write_bytes(b"nothing of the kind")
    with open_recording(whole) as recording:
        assert bags.read(recording) == bags.expected(messages[60:])
        assert "whole_0.mcap is no MCAP file" in recording.warnings[0]


def test_a_folder_of_several_recordings_is_no_recording(bags, tmp_path):
    for name in ("left", "right"):
        folder = bags.write(tmp_path / name, bags.drive(2))
        shutil.copy(folder / f"{name}.mcap", tmp_path / f"{name}.mcap")
    with pytest.raises(RecordingError, match=r"holds 2 recordings \(left.mcap, right.mcap\)"):
        open_recording(tmp_path)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_recordings_that_are_numbered_like_parts_are_told_by_their_times(bags, tmp_path, storage):
    # Two runs in simulated time: joined, they would be one run of twice as many messages.
    names = [f"drive_{number}.{'mcap' if storage == 'mcap' else 'db3'}" for number in (1, 2)]
    for name in names:
        folder = bags.write(tmp_path / "parts" / Path(name).stem, bags.drive(2), storage)
        shutil.copy(folder / name, tmp_path / name)
    assert [
        find_recording.name
        for find_recording in find_recordings(tmp_path)
        if find_recording.is_file()
    ] == names
    with pytest.raises(RecordingError, match=r"holds 2 recordings \(drive_1"):
        open_recording(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("storage_identifier", "rocks", r"storage 'rocks' is unknown \(accepted: mcap or sqlite3"),
        ("compression_format", "snappy", r"compression 'snappy' is unknown \(accepted: zstd\)"),
        ("relative_file_paths", ["lost.mcap"], "names files that do not exist: lost.mcap"),
    ],
)
def test_what_metadata_asks_for_and_is_not_there_is_named(bags, tmp_path, key, value, message):
    path = bags.write(tmp_path / "bag", bags.drive(2), "mcap", "file")
    document = yaml.safe_load((path / "metadata.yaml").read_text())
    document["rosbag2_bagfile_information"][key] = value
    (path / "metadata.yaml").write_text(yaml.safe_dump(document))
    with pytest.raises(RecordingError, match=message) as caught:
        open_recording(path)
    assert f"metadata.yaml: rosbag2_bagfile_information.{key}: " in str(caught.value)


@pytest.mark.parametrize("text", ["", "a: [", "[]", "rosbag2_bagfile_information: 3", "\0"])
def test_metadata_that_cannot_be_used_is_replaced_by_the_files(bags, tmp_path, text):
    path = bags.write(tmp_path / "bag", bags.drive(3))
    (path / "metadata.yaml").write_text(text)
    with open_recording(path) as recording:
        assert bags.read(recording) == bags.expected(bags.drive(3))
        assert "metadata.yaml cannot be used" in recording.warnings[0]


def test_a_compressed_file_that_is_cut_short_yields_its_beginning(bags, tmp_path):
    path = bags.write(tmp_path / "bag", bags.drive(4000), "mcap", "file")
    (file,) = path.glob("*.zstd")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with open_recording(path) as recording:
        samples = bags.read(recording)
        assert 0 < len(samples) < 8000
        assert samples == bags.expected(bags.drive(4000))[: len(samples)]
        assert any("bag.mcap.zstd: it is cut short" in warning for warning in recording.warnings)


def test_a_compressed_file_that_is_no_zstd_is_named(bags, tmp_path):
    path = bags.write(tmp_path / "bag", bags.drive(4), "sqlite3", "file")
    (file,) = path.glob("*.zstd")
    file.write_bytes(b"no zstd at all")
    with pytest.raises(RecordingError, match=r"bag.db3.zstd: cannot be unpacked"):
        open_recording(path)


def test_unpacked_files_do_not_outlive_the_recording(bags, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    path = bags.write(tmp_path / "bag", bags.drive(4), "sqlite3", "file")
    with open_recording(path):
        assert list((tmp_path / "tmp").iterdir())
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_files_that_zstd_has_packed_by_hand_are_read(bags, tmp_path, storage):
    path = bags.write(tmp_path / "bag", bags.drive(30), storage, "file")
    (file,) = path.glob("*.zstd")
    packed = file.rename(tmp_path / file.name.replace(".zstd", ".zst"))
    with open_recording(packed) as recording:
        assert bags.read(recording) == bags.expected(bags.drive(30))
    (path / "metadata.yaml").unlink()
    packed.rename(path / packed.name)
    with open_recording(path) as recording:
        assert bags.read(recording) == bags.expected(bags.drive(30))
