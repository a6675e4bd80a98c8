"""What every reader of recordings promises; a format passes these tests by inheritance.

They need pytest and hypothesis. A test says how a recording is written::

    class TestLog(ReaderContract):
        fields = {topic: ("std_msgs/msg/Float64", "data") for topic in ("/speed", "/gap")}

        def write(self, folder, rows):
            ...
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forewarn.errors import RecordingError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.extraction import compile_extractor
from forewarn.recordings.interface import Recording, Sample
from forewarn.recordings.registry import open_recording

Row = tuple[int, str, float]
"""Time, topic and value of a message."""
START = 1_600_000_000_000_000_000
# Each format is one executor of the tests that it inherits; they share no database of examples.
DAMAGED = settings(
    max_examples=60 if os.environ.get("FOREWARN_LONG") else 20,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


class ReaderContract:
    """Tests of one format.

    Attributes
    ----------
    fields : dict of str to (str, str)
        Type and expression of the value of each of two topics.
    sorts : bool
        The file keeps its messages in the order of time, whatever order they came in.
    knows_its_end : bool
        A file that is cut between two messages is distinguished from a whole one.
    keeps_order : bool
        What is cut off a file are its last messages.
    """

    fields: ClassVar[dict[str, tuple[str, str]]] = {
        "/odom": ("nav_msgs/msg/Odometry", "twist.twist.linear.x"),
        "/limit": ("std_msgs/msg/Float64", "data"),
    }
    sorts, knows_its_end, keeps_order = False, True, True

    def write(self, folder: Path, rows: Sequence[Row]) -> Path:
        """Write a recording that holds these messages in this order."""
        raise NotImplementedError

    def data_file(self, path: Path) -> Path:
        """Return the file of a recording that can be damaged."""
        return path

    # What the tests share

    @pytest.fixture
    def rows(self) -> list[Row]:
        """Return 80 messages in the order of time; every tenth pair is simultaneous."""
        rows: list[Row] = []
        for number in range(40):
            time_ns = START + number * 100_000_000
            for topic, late in zip(self.fields, (0, 7 if number % 10 else 0), strict=False):
                rows.append((time_ns + late, topic, float(len(rows))))
        return rows

    @pytest.fixture
    def small(self, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
        """Return name and content of a small recording."""
        rows = [(START + k * 10**9, topic, 1.0 * k) for k in range(12) for topic in self.fields]
        file = self.data_file(self.write(tmp_path_factory.mktemp("original"), rows))
        return file.name, file.read_bytes()

    def values(self, recording: Recording, samples: Iterable[Sample]) -> list[Row]:
        """Return time, topic and value of samples, each decoded as its topic says."""
        extract: dict[str, Any] = {}
        for topic, (_, text) in self.fields.items():
            if topic in recording.topics:
                message_type = recording.topics[topic].message_type
                assert message_type is not None
                extract[topic] = compile_extractor(message_type, [parse_expression(text)])
        return [(s.time_ns, s.topic, extract[s.topic](s.data)[0]) for s in samples]

    def exhaust(self, path: Path) -> list[Row]:
        """Do all that can be done with a recording; what it cannot do it says with its name."""
        try:
            with open_recording(path) as recording:
                for info in recording.topics.values():
                    assert (info.error is None) == (info.message_type is not None)
                samples = list(recording.read())
                times = [sample.time_ns for sample in samples]
                assert times == sorted(times)
                assert all(0 <= time_ns < 1 << 63 for time_ns in times)
                assert all(isinstance(sample.topic, str) for sample in samples)
                assert all(isinstance(s.data, (bytes, memoryview, dict)) for s in samples)
                recording.metadata()
                recording.attachments()
                recording.digest()
                assert all(isinstance(text, str) and text for text in recording.warnings)
                return [(sample.time_ns, sample.topic, 0.0) for sample in samples]
        except RecordingError as error:
            assert str(path) in str(error)
            return []

    # The contract

    def test_yields_what_was_written_and_says_what_it_is(
        self, tmp_path: Path, rows: list[Row]
    ) -> None:
        with open_recording(self.write(tmp_path, rows)) as recording:
            assert self.values(recording, recording.read()) == rows
            assert recording.warnings == []
            assert recording.kind
            assert recording.count == len(rows)
            assert (recording.start_ns, recording.end_ns) == (rows[0][0], rows[-1][0])
            assert recording.duration == pytest.approx((rows[-1][0] - rows[0][0]) / 1e9)
            assert recording.size > 0

    def test_topics_have_a_type_a_count_and_what_decodes_them(
        self, tmp_path: Path, rows: list[Row]
    ) -> None:
        with open_recording(self.write(tmp_path, rows)) as recording:
            assert set(recording.topics) == set(self.fields)
            for topic, (msgtype, _) in self.fields.items():
                info = recording.topics[topic]
                assert (info.name, info.msgtype, info.count) == (topic, msgtype, len(rows) // 2)
                assert info.error is None and info.message_type is not None

    def test_messages_come_in_the_order_of_time_whatever_the_order_in_the_file(
        self, tmp_path: Path, rows: list[Row]
    ) -> None:
        shuffled = [*rows[30:], *rows[:30]]
        with open_recording(self.write(tmp_path, shuffled)) as recording:
            # Simultaneous ones stay in the order of the file.
            assert self.values(recording, recording.read()) == sorted(
                shuffled, key=lambda row: row[0]
            )
            if not self.sorts:
                assert any("backwards" in warning for warning in recording.warnings)

    def test_only_what_is_asked_for_is_read(self, tmp_path: Path, rows: list[Row]) -> None:
        with open_recording(self.write(tmp_path, rows)) as recording:
            for topic in self.fields:
                found = self.values(recording, recording.read([topic]))
                assert found == [row for row in rows if row[1] == topic]

    def test_a_topic_that_is_not_there_is_told_and_the_others_are_read(
        self, tmp_path: Path, rows: list[Row]
    ) -> None:
        first, *_ = self.fields
        with open_recording(self.write(tmp_path, rows)) as recording:
            assert len(list(recording.read([first, "/light"]))) == len(rows) // 2
            (warning,) = recording.warnings
            assert "/light is not in the recording (its " in warning
            assert all(topic in warning for topic in self.fields)

    def test_it_can_be_read_again_and_by_two_at_once(self, tmp_path: Path, rows: list[Row]) -> None:
        with open_recording(self.write(tmp_path, rows)) as recording:
            left_off = recording.read()
            first = [next(left_off) for _ in range(3)]
            assert self.values(recording, recording.read()) == rows
            assert self.values(recording, [*first, *left_off]) == rows

    def test_nothing_stays_open(self, tmp_path: Path, rows: list[Row]) -> None:
        path = self.write(tmp_path, rows)
        with open_recording(path) as recording:  # what is loaded once is loaded now
            next(recording.read())
        before = sorted(os.listdir("/proc/self/fd"))
        with open_recording(path) as recording:
            next(recording.read())
        assert sorted(os.listdir("/proc/self/fd")) == before

    def test_an_empty_one_opens_and_says_so(self, tmp_path: Path) -> None:
        with open_recording(self.write(tmp_path, [])) as recording:
            assert list(recording.read()) == []
            assert (recording.start_ns, recording.end_ns, recording.count) == (0, 0, 0)
            assert any("the recording holds no" in warning for warning in recording.warnings)

    def test_what_does_not_exist_is_named(self, tmp_path: Path, rows: list[Row]) -> None:
        path = self.write(tmp_path, rows)
        absent = path.with_name(f"absent{''.join(path.suffixes)}")
        with pytest.raises(RecordingError, match="does not exist") as caught:
            open_recording(absent)
        assert str(absent) in str(caught.value)

    def test_what_has_the_right_name_alone_is_refused(
        self, tmp_path: Path, small: tuple[str, bytes]
    ) -> None:
        path = tmp_path / small[0]
        path.write_bytes(b"\x07nothing of the kind\n" * 200)
        with pytest.raises(RecordingError) as caught:
            open_recording(path)
        assert str(path) in str(caught.value)

    def test_its_digest_depends_on_the_messages_and_not_on_names(
        self, tmp_path: Path, rows: list[Row]
    ) -> None:
        digests = []
        for name, held in (("one", rows), ("two", rows), ("other", rows[:-1])):
            (tmp_path / name).mkdir()
            file = self.data_file(self.write(tmp_path / name, held))
            moved = tmp_path / name / f"moved{''.join(file.suffixes)}"
            shutil.copy(file, moved)
            for path in (file, moved):
                with open_recording(path) as recording:
                    digests.append(recording.digest())
        assert len(set(digests[:4])) == 1 and len(digests[0]) == 64
        assert digests[4] == digests[5] != digests[0]

    def test_a_cut_leaves_a_beginning_or_a_reason(
        self, tmp_path: Path, small: tuple[str, bytes]
    ) -> None:
        name, content = small
        path = tmp_path / name
        path.write_bytes(content)
        whole = self.exhaust(path)
        assert len(whole) == 24
        for length in range(1, len(content), max(1, len(content) // 40)):
            path.write_bytes(content[:length])
            try:
                with open_recording(path) as recording:
                    found = [(s.time_ns, s.topic, 0.0) for s in recording.read()]
                    kept = whole[: len(found)] if self.keeps_order else whole
                    assert found == [row for row in kept if row in found]
                    assert recording.warnings or not self.knows_its_end or found == whole
            except RecordingError as error:
                assert str(path) in str(error)

    @DAMAGED
    @given(data=st.data())
    def test_damage_gives_samples_or_a_recording_error(
        self, small: tuple[str, bytes], tmp_path: Path, data: st.DataObject
    ) -> None:
        name, original = small
        content = bytearray(original)
        flip = st.tuples(st.integers(0, len(content) - 1), st.integers(1, 255))
        for place, bits in data.draw(st.lists(flip, max_size=4), "flips"):
            content[place] ^= bits
        if data.draw(st.booleans(), "cut"):
            content = content[: data.draw(st.integers(0, len(original)), "length")]
        if data.draw(st.booleans(), "insert"):
            place = data.draw(st.integers(0, len(content)), "place")
            content[place:place] = data.draw(st.binary(min_size=1, max_size=40), "inserted")
        path = tmp_path / name
        path.write_bytes(content)
        self.exhaust(path)

    @DAMAGED
    @given(content=st.binary(max_size=300), kept=st.integers(0, 200))
    def test_the_right_beginning_followed_by_anything(
        self, small: tuple[str, bytes], tmp_path: Path, content: bytes, kept: int
    ) -> None:
        path = tmp_path / small[0]
        path.write_bytes(small[1][:kept] + content)
        self.exhaust(path)
