"""Which reader opens what; readers of other packages are found."""

from __future__ import annotations

import shutil
import sys

import pytest

from forewarn.errors import RecordingError
from forewarn.recordings import registry
from forewarn.recordings.registry import find_recordings, open_recording


def test_the_content_decides_where_the_name_does_not(bags, tmp_path):
    folder = bags.write(tmp_path / "bag", bags.drive(3))
    plain = shutil.copy(folder / "bag.mcap", tmp_path / "recording")
    with open_recording(plain) as recording:
        assert recording.kind == "rosbag2 (mcap)"
        assert bags.read(recording) == bags.expected(bags.drive(3))
    bag = bags.write1(tmp_path / "x.bag", bags.drive(3))
    with open_recording(str(shutil.move(bag, tmp_path / "old"))) as recording:
        assert recording.kind == "ROS 1 bag"


def test_the_metadata_file_stands_for_its_folder(bags, tmp_path):
    folder = bags.write(tmp_path / "bag", bags.drive(3))
    with open_recording(folder / "metadata.yaml") as recording:
        assert bags.read(recording) == bags.expected(bags.drive(3))


def test_a_path_to_nothing_is_named(tmp_path):
    with pytest.raises(RecordingError, match=r"lost.mcap: does not exist"):
        open_recording(tmp_path / "lost.mcap")


@pytest.mark.parametrize("name", ["x.mcap", "x.db3", "x.bag", "x.jsonl", "x.mcap.zstd"])
def test_an_empty_file_is_named(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(RecordingError, match=rf"{name}: is an empty file"):
        open_recording(tmp_path / name)


def test_an_unknown_format_shows_its_beginning_and_what_is_accepted(tmp_path):
    path = tmp_path / "x.pcap"
    path.write_bytes(b"\xd4\xc3\xb2\xa1 and more")
    with pytest.raises(RecordingError) as caught:
        open_recording(path)
    text = str(caught.value)
    assert r"it begins with b'\xd4\xc3\xb2\xa1 and more'" in text
    for accepted in ("rosbag2 folder", ".mcap and .db3", "ROS 1 .bag files", "JSON lines"):
        assert accepted in text


PLUGIN = """
from pathlib import Path
from forewarn.recordings.registry import RecordingFormat
from forewarn.recordings.traces import JsonTrace
FORMAT = RecordingFormat(
    "log", ".log files of the plug-in", lambda path, head: path.suffix == ".log", JsonTrace
)
WRONG = 3
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Install a package with readers of its own for the time of a test."""
    folder = tmp_path / "site"
    info = folder / "forewarn_plugin-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "forewarn_plugin.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: forewarn-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[forewarn.recordings]\n"
        "log = forewarn_plugin:FORMAT\n"
        "wrong = forewarn_plugin:WRONG\n"
        "lost = forewarn_nowhere:FORMAT\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    registry._installed.cache_clear()
    yield
    registry._installed.cache_clear()
    sys.modules.pop("forewarn_plugin", None)


@pytest.mark.usefixtures("plugin")
def test_a_reader_of_another_package_is_found(tmp_path):
    path = tmp_path / "x.log"
    path.write_text('{"t": 1, "a": 2}\n')
    with open_recording(path) as recording:
        assert next(recording.read()).data == {"a": 2}
    assert find_recordings(tmp_path) == [path]


@pytest.mark.usefixtures("plugin")
def test_a_reader_that_does_not_load_is_reported_where_it_could_matter(tmp_path):
    path = tmp_path / "x.record"
    path.write_bytes(b"\0\0")
    with pytest.raises(RecordingError) as caught:
        open_recording(path)
    text = str(caught.value)
    assert "'lost' (forewarn_nowhere:FORMAT) does not load: No module named" in text
    assert "'wrong' (forewarn_plugin:WRONG) is no RecordingFormat" in text
    assert ".log files of the plug-in" in text


def test_a_recording_stands_for_itself(bags, tmp_path):
    folder = bags.write(tmp_path / "bag", bags.drive(3))
    assert find_recordings(folder) == [folder]
    assert find_recordings(folder / "bag.mcap") == [folder / "bag.mcap"]
    (folder / "metadata.yaml").unlink()
    assert find_recordings(folder) == [folder]


def test_a_folder_of_recordings_stands_for_all_in_it(bags, tmp_path):
    one = bags.write(tmp_path / "one", bags.drive(3))
    bags.write(tmp_path / "two", bags.drive(3))
    shutil.copy(one / "one.mcap", tmp_path / "three.mcap")
    bags.write1(tmp_path / "four.bag", bags.drive(3))
    (tmp_path / "five.jsonl").write_text('{"t": 1}\n')
    (tmp_path / "six.log").write_text('{"t": 1}\n{"t": 2}\n')
    (tmp_path / "events.json").write_text('{\n  "events": []\n}\n')
    (tmp_path / "notes.txt").write_text("none")
    (tmp_path / "empty.mcap").touch()
    (tmp_path / "folder").mkdir()
    found = [path.name for path in find_recordings(tmp_path)]
    assert found == ["empty.mcap", "five.jsonl", "four.bag", "one", "six.log", "three.mcap", "two"]


def test_an_object_beside_recordings_is_none_itself(tmp_path):
    trace = tmp_path / "run.jsonl"
    trace.write_text('{"t": 0, "speed": 1.0}\n{"t": 1, "speed": 2.0}\n')
    (tmp_path / "run.json").write_text('{"seed": 1, "collision": [35.4]}\n')
    (tmp_path / "lines.json").write_text(trace.read_text())
    assert find_recordings(tmp_path) == [tmp_path / "lines.json", trace]


def test_a_folder_without_recordings_says_so(tmp_path):
    with pytest.raises(RecordingError, match="holds no recording"):
        find_recordings(tmp_path)


@pytest.mark.parametrize("act", [open_recording, find_recordings])
def test_a_path_that_the_system_refuses_is_named(tmp_path, act):
    path = tmp_path / ("x" * 300)
    with pytest.raises(RecordingError, match=r"xxx: cannot be read \(File name too long\)"):
        act(path)
