"""SQLite bags (.db3): whole ones through `rosbags`, damaged ones row by row."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from itertools import chain, islice, pairwise
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.rosbag2 import Reader, storage_sqlite3

from forewarn.errors import RecordingError, plural
from forewarn.files.inputs import open_plain
from forewarn.recordings.interface import TIME_LIMIT_NS, Channel, Sample, Storage, make_sample

ACCEPTED = "an SQLite bag of rosbag2 (.db3), as `ros2 bag record -s sqlite3` writes it"
MAGIC = b"SQLite format 3\x00"
# From Python 3.11 on, sqlite3 fails to decode its own message where that quotes damaged text.
DAMAGE = (sqlite3.Error, UnicodeDecodeError)
_OPENING = Lock()

_BATCH = 512
_topic = attrgetter("topic")
_URI_MARKS = set("?#%")
_ENCODINGS = {MessageDefinitionFormat.MSG: "ros2msg", MessageDefinitionFormat.IDL: "ros2idl"}
_IN_TIME_ORDER = "SELECT id FROM messages ORDER BY timestamp, id"
_BACKWARDS = (
    "SELECT count(*), max(previous - timestamp) FROM"
    " (SELECT timestamp, lag(timestamp) OVER (ORDER BY id) AS previous FROM messages)"
    " WHERE previous > timestamp"
)


def open_sqlite(path: Path, source: Path | None = None) -> Storage:
    """Open an SQLite bag; raises RecordingError if nothing in it can be read.

    `source`: the file to read, if it is an unpacked copy.
    """
    warnings: list[str] = []
    folder: TemporaryDirectory[str] | None = None
    source = source or path
    if _has_log(source) or set(str(source)) & _URI_MARKS:
        folder = TemporaryDirectory(prefix="forewarn-")
        source = _stand_in(source, Path(folder.name), warnings)
    release = folder.cleanup if folder is not None else None
    try:
        try:
            return SqliteFile(path, source, warnings, release)
        except RecordingError as error:
            return RowByRowSqliteFile(path, source, warnings, release, error.problem)
    except BaseException:
        if release is not None:
            release()
        raise


def _has_log(path: Path) -> bool:
    log = path.with_name(path.name + "-wal")
    return log.is_file() and log.stat().st_size > 0


def _stand_in(path: Path, folder: Path, warnings: list[str]) -> Path:
    """Return a file in `folder` to read in place of `path`.

    A bag whose recorder was killed has its last messages in the write-ahead log, which readers
    that leave the recording untouched do not see: a copy takes them in. A path with marks of a
    URI, which SQLite would take for such, is only linked.
    """
    copy = folder / "recording.db3"
    if not _has_log(path):
        copy.symlink_to(path.absolute())
        return copy
    shutil.copyfile(path, copy)
    shutil.copyfile(path.with_name(path.name + "-wal"), folder / (copy.name + "-wal"))
    try:
        with closing(sqlite3.connect(copy)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except DAMAGE as error:
        warnings.append(f"the write-ahead log beside the recording cannot be used ({error})")
    else:
        warnings.append("its recorder did not close it: the write-ahead log beside it is read too")
    return copy


class SqliteFile(Storage):
    """A whole SQLite bag, read by `rosbags`.

    `path`, `source`: what the user named, and the file to read: the same, or a repaired copy.
    `warnings`: what was found wrong; more is added.
    `release`: called when the file is closed.
    """

    def __init__(
        self,
        path: Path,
        source: Path,
        warnings: list[str],
        release: Callable[[], None] | None = None,
    ) -> None:
        self.path = path
        self.warnings = warnings
        self._release = release
        if _is_cut(source):
            raise RecordingError("is cut short", accepted=ACCEPTED, file=path)
        try:
            self._reader = _opened(source)
        except Exception as error:  # rosbags lets errors of all kinds through
            raise RecordingError(
                f"cannot be read as a bag ({error})", accepted=ACCEPTED, file=path
            ) from error
        self.channels = [_describe(connection) for connection in self._reader.connections]
        self.count = int(self._reader.message_count)
        self.start_ns = int(self._reader.start_time) if self.count else 0
        self.end_ns = int(self._reader.end_time) - 1 if self.count else 0
        try:
            self._check_texts()
            self._check_times(source)
        except RecordingError:
            self._reader.close()
            raise

    def _check_texts(self) -> None:
        for channel in self.channels:
            if not all(isinstance(text, str) for text in channel[:5]):
                raise RecordingError(
                    f"cannot be read as a bag (the topic {channel.topic!r} of type "
                    f"{channel.msgtype!r})",
                    accepted=ACCEPTED,
                    file=self.path,
                )

    def _check_times(self, source: Path) -> None:
        if not 0 <= self.start_ns <= self.end_ns < TIME_LIMIT_NS:
            raise RecordingError("holds log times that are negative", file=self.path)
        try:
            with closing(_connect(source)) as connection:
                times, worst_ns = 0, 0
                if any(one > other for one, other in pairwise(connection.execute(_IN_TIME_ORDER))):
                    times, worst_ns = connection.execute(_BACKWARDS).fetchone()
        except DAMAGE as error:
            raise self._damaged(error) from error
        if times:
            self.warnings.append(
                f"log times go backwards {plural(times, 'time')}, by up to {worst_ns / 1e9:.9g} s; "
                "messages are read in log-time order"
            )

    def read(self, topics: Collection[str]) -> Iterator[Sample]:
        """Yield the messages of `topics` in log-time order."""
        chosen = [
            connection for connection in self._reader.connections if connection.topic in topics
        ]
        return chain.from_iterable(self._batches(chosen) if chosen else ())

    def _batches(self, chosen: list[Connection]) -> Iterator[Iterator[Sample]]:
        latest = 0
        try:
            messages = self._reader.messages(chosen)
            while batch := list(islice(messages, _BATCH)):
                connections, times, payloads = zip(*batch, strict=True)
                if (
                    times[0] < latest
                    or list(times) != sorted(times)
                    or {*map(type, times)} != {int}
                ):
                    raise ValueError("its index and its rows disagree on log times")
                if {*map(type, payloads)} != {bytes}:
                    raise ValueError("a message is no blob")
                latest = times[-1]
                topics = map(_topic, connections)
                yield map(make_sample, zip(times, topics, payloads, strict=True))
        except Exception as error:  # apsw's errors pass through rosbags as they are
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> RecordingError:
        return RecordingError(f"is damaged ({error})", accepted=ACCEPTED, file=self.path)

    def close(self) -> None:
        """Close the file."""
        if self._reader.is_open:
            self._reader.close()
        if self._release is not None:
            self._release()


class RowByRowSqliteFile(Storage):
    """An SQLite bag that `rosbags` refuses: all its rows, or those before the damage."""

    def __init__(
        self,
        path: Path,
        source: Path,
        warnings: list[str],
        release: Callable[[], None] | None,
        problem: str,
    ) -> None:
        self.path = path
        self.warnings = warnings
        self._release = release
        self._problem = problem
        try:
            self._connection = _connect(source)
            topics = self._rows("SELECT id, name, type, serialization_format FROM topics")
        except DAMAGE as error:
            raise RecordingError(
                f"cannot be read as a bag ({error})", accepted=ACCEPTED, file=path
            ) from error
        self._cut = _is_cut(source)
        self._names = {number: name for number, name, _, _ in topics}
        self._index: list[tuple[int, int, int]] = []
        counts = self._scan()
        definitions = self._definitions()
        self.channels = [
            Channel(name, kind, form, *definitions.get(kind, ("", "")), counts[number])
            for number, name, kind, form in topics
        ]
        self.count = len(self._index)
        if not self.count:
            self._connection.close()
            raise RecordingError(
                f"holds no message that can be read: {self.warnings[-1]}",
                accepted=ACCEPTED,
                file=path,
            )
        self.start_ns, self.end_ns = self._index[0][0], self._index[-1][0]

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of `query` whose texts are texts; damage can put anything there."""
        return [
            row
            for row in self._connection.execute(query)
            if isinstance(row[0], (int, str)) and all(isinstance(cell, str) for cell in row[1:])
        ]

    def _scan(self) -> Counter[int]:
        """Index the rows that can be read: time, position and topic."""
        query = "SELECT timestamp, id, topic_id, typeof(data) FROM messages NOT INDEXED ORDER BY id"
        counts: Counter[int] = Counter()
        why, lost = "", 0
        try:
            for time_ns, number, topic, kind in self._connection.execute(query):
                if (
                    kind == "blob"
                    and topic in self._names
                    and isinstance(time_ns, int)
                    and 0 <= time_ns < TIME_LIMIT_NS
                ):
                    self._index.append((time_ns, number, topic))
                    counts[topic] += 1
                else:
                    lost += 1
        except (*DAMAGE, OverflowError) as error:
            why = str(error)
        self._index.sort()
        found = plural(len(self._index), "message")
        if why or lost or self._cut:
            why = why or "some of its rows are damaged"
            self.warnings.append(
                f"the file is cut short or damaged ({why}); {found} before the damage can be read"
            )
        elif self._has("message_definitions"):
            self.warnings.append(f"it {self._problem}; row by row, all {found} can be read")
        else:
            self.warnings.append(
                "the table message_definitions is missing, which bags of its schema have; "
                f"all {found} can be read, with the definitions that are installed"
            )
        return counts

    def _has(self, table: str) -> bool:
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?"
        try:
            return self._connection.execute(query, (table,)).fetchone() is not None
        except DAMAGE:
            return True

    def _definitions(self) -> dict[str, tuple[str, str]]:
        query = "SELECT topic_type, encoded_message_definition, encoding FROM message_definitions"
        try:
            return {name: (text, encoding) for name, text, encoding in self._rows(query)}
        except DAMAGE:
            return {}  # bags before ROS 2 Iron have none

    def read(self, topics: Collection[str]) -> Iterator[Sample]:
        """Yield the messages of `topics` in log-time order."""
        fetch = "SELECT data FROM messages WHERE id = ?"
        lost = 0
        for time_ns, number, topic in self._index:
            name = self._names[topic]
            if name not in topics:
                continue
            try:
                ((data,),) = self._connection.execute(fetch, (number,)).fetchall()
            except (sqlite3.Error, ValueError):
                lost += 1
            else:
                yield make_sample((time_ns, name, data))
        if lost:
            self.warnings.append(f"{plural(lost, 'message')} lie in damaged parts of the file")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
        if self._release is not None:
            self._release()


def _is_cut(path: Path) -> bool:
    """Tell whether a database is shorter than its header says.

    Such a file opens, and fails somewhere in the middle. (https://www.sqlite.org/fileformat.html,
    section 1.3: page size at byte 16, number of pages at byte 28.)
    """
    with open_plain(path) as file:
        head = file.read(100)
        size = file.seek(0, 2)
    page = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big")
    return size < (65536 if page == 1 else page) * pages


def _opened(path: Path) -> Reader:
    """Open a bag with rosbags, which leaves a connection open over which it read the schema."""
    connections: Callable[[], list[Any]]
    connections = getattr(getattr(storage_sqlite3, "apsw", None), "connections", list)
    with _OPENING:
        before, reader = connections(), Reader(path)
        try:
            reader.open()
        finally:
            kept = [*before, getattr(reader.storage, "dbconn", None)]
            for connection in connections():
                if not any(connection is other for other in kept):
                    connection.close()
    return reader


def _connect(path: Path) -> sqlite3.Connection:
    """Open a database without touching it or waiting for a lock."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    return connection


def _describe(connection: Connection) -> Channel:
    return Channel(
        topic=connection.topic,
        msgtype=connection.msgtype,
        serialization=getattr(connection.ext, "serialization_format", ""),
        definition=connection.msgdef.data,
        encoding=_ENCODINGS.get(connection.msgdef.format, ""),
        count=connection.msgcount,
    )
