"""Files of incidents: complete or torn, and how many stay."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from forewarn.recordings.registry import open_recording
from forewarn.recordings.writing import string_cdr
from forewarn.wings.black_box.box import Kept, LogEntry
from forewarn.wings.black_box.incident_file import TABLE, IncidentFile, IncidentFolder, label_of

START = 1_700_000_000_000_000_000
FIRST = LogEntry(START, "act", "brake", 0.75, "brake: too fast")


def text(number: int, topic: str = "/a", kind: str = "std_msgs/msg/String") -> Kept:
    payload = string_cdr(str(number))
    return Kept(START + number, topic, kind, payload, len(payload), FIRST if not number else None)


def write(folder: IncidentFolder, time_ns: int = START, number: int = 3) -> Path:
    file = IncidentFile(folder.path_at(time_ns), FIRST, {"model": "abc"}, {"monitor.yaml": b"x"})
    for n in range(number):
        file.write(text(n))
    return file.close({})


def test_a_file_says_what_happened(tmp_path: Path) -> None:
    path = write(IncidentFolder(tmp_path / "deep" / "er", 5, 10**9))
    assert path.name == "incident-20231114T221320-000Z.mcap"
    with open_recording(path) as recording:
        table = recording.metadata()[TABLE]
        assert [sample.time_ns - START for sample in recording.read()] == [0, 1, 2]
        assert recording.attachments() == {"monitor.yaml": b"x"}
        assert recording.warnings == []
    assert (table["trigger"], table["property"], table["model"]) == ("act", "brake", "abc")
    (moment,) = json.loads(table["moments"])
    assert (moment["time_ns"], moment["risk"]) == (START, 0.75)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_topic_of_an_unknown_type_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    folder = IncidentFolder(tmp_path, 5, 10**9)
    file = IncidentFile(folder.path_at(START), FIRST, {}, {})
    file.write(text(0))
    file.write(text(1, "/odd", "nowhere_msgs/msg/Odd"))
    with open_recording(file.close({})) as recording:
        assert set(recording.topics) == {"/a"}
        assert "nowhere_msgs" in recording.metadata()[TABLE]["left out /odd"]


def test_the_oldest_go_first_with_their_labels(tmp_path: Path) -> None:
    folder = IncidentFolder(tmp_path, 3, 10**9)
    paths = []
    for number in range(5):
        paths.append(write(folder, START + number * 10**9))
        os.utime(paths[-1], ns=(number, number))
        label_of(paths[-1]).write_text("{}")
    assert folder.prune() == paths[:2]
    assert folder.finished() == paths[2:]
    assert sorted(tmp_path.glob("*.label.json")) == [label_of(path) for path in paths[2:]]
    assert folder.prune(files=1) == paths[2:3]


def test_the_quota_counts_bytes_and_spares_the_newest(tmp_path: Path) -> None:
    folder = IncidentFolder(tmp_path, 100, 10**9)
    paths = []
    for number in range(4):
        paths.append(write(folder, START + number * 10**9))
        os.utime(paths[-1], ns=(number, number))
    size = paths[0].stat().st_size
    small = IncidentFolder(tmp_path, 100, round(2.5 * size))
    assert small.prune() == paths[:2]
    assert small.prune(coming=2 * size) == paths[2:3]
    assert IncidentFolder(tmp_path, 100, 1).prune() == []
    assert folder.finished() == paths[3:]


def test_names_do_not_clash(tmp_path: Path) -> None:
    folder = IncidentFolder(tmp_path, 5, 10**9)
    first = write(folder)
    second = folder.path_at(START)
    assert second != first
    assert folder.path_at(START, {second}) not in (first, second)


WRITER = """
import sys
sys.path.insert(0, {tests!r})
from test_incident_file import FIRST, START, IncidentFile, IncidentFolder, text
from pathlib import Path
folder = IncidentFolder(Path({path!r}), 5, 10**9)
file = IncidentFile(folder.path_at(START), FIRST, {{}}, {{"monitor.yaml": b"x"}})
number = 0
while True:
    kept = text(number)
    file.write(kept._replace(time_ns=START + number * 10**8))
    number += 1
    if number == 1000:
        print("writing", flush=True)
"""


def test_a_writer_that_is_killed_leaves_what_can_be_read(tmp_path: Path) -> None:
    code = WRITER.format(tests=str(Path(__file__).parent), path=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        folder = IncidentFolder(tmp_path, 5, 10**9)
        assert folder.recover() == [], "its writer lives"
        assert folder.finished() == []
        process.send_signal(signal.SIGKILL)
        process.wait()
    (torn,) = folder.recover()
    assert torn.name == "incident-20231114T221320-000Z-torn.mcap"
    assert folder.finished() == [torn]
    with open_recording(torn) as recording:
        assert sum(1 for _ in recording.read()) >= 900
        assert recording.metadata()[TABLE]["property"] == "brake"
        assert "complete" not in recording.metadata()[TABLE]
