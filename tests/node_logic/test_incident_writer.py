"""The thread that writes incidents: what it does when a file ends before its incident does."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from forewarn.recordings.registry import open_recording
from forewarn.recordings.writing import string_cdr
from forewarn.wings.black_box.box import BlackBox, Kept, LogEntry
from forewarn.wings.black_box.incident_file import IncidentFolder
from forewarn.wings.black_box.section import BlackBoxSpec
from monitor_node.incident_writer import IncidentWriter

BEGIN, STEP = 1_700_000_000_000_000_000, 10**8
LIMIT = 60.0
QUOTA = 1_000_000


class Box(NamedTuple):
    """A black box whose files are written in a thread, and what that thread logs."""

    box: BlackBox
    writer: IncidentWriter
    said: SimpleQueue[str]

    def feed(self, number: int, kind: str = "") -> None:
        """Give a message of 20 kB that cannot be packed."""
        text = os.urandom(10_000).hex()
        time_ns = BEGIN + number * STEP
        moment = LogEntry(time_ns, kind, "brake", 0.75, f"{kind} {number}") if kind else None
        payload = string_cdr(text)
        kept = Kept(time_ns, "/a", "std_msgs/msg/String", payload, len(payload), moment)
        self.box.keep(kept)

    def wait(self, words: str) -> str:
        """Return the next line of the log that has these words."""
        while words not in (line := self.said.get(timeout=LIMIT)):
            pass
        return line


@contextmanager
def box(folder: Path) -> Iterator[Box]:
    settings = {"folder": "x", "before": 1, "after": 30, "quota": QUOTA}
    spec = BlackBoxSpec.model_validate(settings)
    said: SimpleQueue[str] = SimpleQueue()
    home = IncidentFolder.of(spec, folder)
    writer = IncidentWriter(home, spec.memory, dict, {}, said.put, said.put)
    found = Box(BlackBox(spec, writer), writer, said)
    yield found
    found.box.close()
    assert writer.close(LIMIT)


@contextmanager
def disk_full() -> Iterator[None]:
    """Have the kernel refuse this process every byte of a file, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def trigger(path: Path) -> str:
    with open_recording(path) as recording:
        return recording.metadata()["forewarn.incident"]["text"]


def test_a_trigger_after_a_file_that_was_full_has_a_file_and_all_keep_to_the_quota(
    tmp_path: Path,
) -> None:
    with box(tmp_path) as found:
        for at, kind in enumerate(("act", "violation", "act")):
            found.feed(60 * at, kind)
            for number in range(60 * at + 1, 60 * at + 60):
                found.feed(number)
            assert "it ends at half of the quota" in found.wait("messages")
            assert found.writer.over
            files = found.writer.folder.finished()
            assert sum(path.stat().st_size for path in files) <= QUOTA
    assert trigger(files[-1]) == "act 120"
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in files}


def test_a_trigger_tries_again_however_soon_and_leaves_no_file_that_says_nothing(
    tmp_path: Path,
) -> None:
    with box(tmp_path) as found:
        found.feed(0, "act")
        found.box.close()
        found.wait("messages")
        (good,) = found.writer.folder.finished()
        with disk_full():
            for number in range(1, 40):
                found.feed(number, "violation")
                found.wait("could not be written")
                assert found.writer.over
        assert found.writer.problem
        assert list(tmp_path.iterdir()) == [good]
        found.feed(40, "violation")
        found.feed(41)
    assert found.writer.problem == ""
    first, second = found.writer.folder.finished()
    assert first == good
    assert trigger(second) == "violation 40"
    with open_recording(second) as recording:
        times = [(sample.time_ns - BEGIN) // STEP for sample in recording.read()]
    assert times == list(range(30, 42)), "from `before` seconds on: nothing was lost"
