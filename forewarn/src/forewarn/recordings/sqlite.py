"""SQLite bags (.db3) as rosbag2 writes them: all rows, or those before the damage."""

from __future__ import annotations

import shutil
import sqlite3
from array import array
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from forewarn.errors import RecordingError, plural
from forewarn.files.inputs import open_plain
from forewarn.recordings.interface import TIME_LIMIT_NS, Channel, Sample, Storage, make_sample
from forewarn.recordings.ordering import Disorder

ACCEPTED = "an SQLite bag of rosbag2 (.db3), as `ros2 bag record -s sqlite3` writes it"
BATCH = 512
# From Python 3.11 on, sqlite3 fails to decode its own message where that quotes damaged text.
DAMAGE = (sqlite3.Error, UnicodeDecodeError)


class SqliteFile(Storage):
    """An SQLite bag; `source` is the file to read, if that is an unpacked copy of `path`.

    Rows are read in the order of the table, whatever its index says of their times.
    Raises RecordingError if nothing in it can be read.
    """

    def __init__(self, path: Path, source: Path | None = None) -> None:
        self.path = path
        self.warnings: list[str] = []
        self._folder: TemporaryDirectory[str] | None = None
        try:
            self._open(source or path)
        except BaseException:
            self.close()
            raise

    def _open(self, source: Path) -> None:
        if _has_log(source):
            self._folder = TemporaryDirectory(prefix="forewarn-")
            source = _with_log(source, Path(self._folder.name), self.warnings)
        try:
            self._connection = _connect(source)
            topics = self._rows("SELECT id, name, type, serialization_format FROM topics")
        except DAMAGE as error:
            raise RecordingError(
                f"cannot be read as a bag ({error})", accepted=ACCEPTED, file=self.path
            ) from error
        self._names = {number: name for number, name, _, _ in topics if isinstance(number, int)}
        why = self._scan() or ("it is shorter than it says" if _is_cut(source) else "")
        self.count = len(self._times)
        if why:
            found = plural(self.count, "message")
            self.warnings.append(
                f"the file is cut short or damaged ({why}); {found} before the damage can be read"
            )
            if not self.count:
                problem = f"holds no message that can be read: {self.warnings[-1]}"
                raise RecordingError(problem, accepted=ACCEPTED, file=self.path)
        definitions, counts = self._definitions(), Counter(self._topics)
        self.channels = [
            Channel(name, kind, form, *definitions.get(kind, ("", "")), counts[number])
            for number, name, kind, form in topics
        ]
        self._order(is_whole=not why)

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of `query` whose texts are texts; damage can put anything there."""
        return [
            row
            for row in self._connection.execute(query)
            if isinstance(row[0], (int, str)) and all(isinstance(cell, str) for cell in row[1:])
        ]

    def _scan(self) -> str:
        """Note time, number and topic of the rows that can be read; return what is wrong."""
        self._times, self._numbers, self._topics = array("q"), array("q"), array("q")
        good = (
            "typeof(data) = 'blob' AND typeof(timestamp) = 'integer' AND typeof(topic_id) ="
            f" 'integer' AND timestamp BETWEEN 0 AND {TIME_LIMIT_NS - 1} AND topic_id IN"
            f" ({','.join(map(str, self._names))})"
        )
        query = f"SELECT timestamp, id, topic_id, {good} FROM messages NOT INDEXED ORDER BY id"
        lost, why = False, ""
        try:
            rows = self._connection.execute(query)
        except DAMAGE as error:
            return str(error)
        while not why:
            batch: list[tuple[int, int, int, int]] = []
            try:
                batch.extend(islice(rows, BATCH))  # it keeps those before the damage
            except DAMAGE as error:
                why = str(error)
            kept = [row for row in batch if row[3]]
            lost |= len(kept) < len(batch)
            columns = self._times, self._numbers, self._topics
            for column, found in zip(columns, zip(*kept, strict=True), strict=False):
                column.extend(found)
            if len(batch) < BATCH:
                break
        return why or ("some of its rows are damaged" if lost else "")

    def _order(self, *, is_whole: bool) -> None:
        """Find out whether rows lie in the order of time, and what the range of times is."""
        times = np.frombuffer(self._times, np.int64)
        back = -np.diff(times)
        disorder = Disorder()
        for back_ns in back[back > 0].tolist():
            disorder.note(back_ns)
        if (text := disorder.warning()) is not None:
            self.warnings.append(text)
        self.start_ns = int(times.min()) if self.count else 0
        self.end_ns = int(times.max(initial=0))
        self._in_order = is_whole and not disorder.times

    def _definitions(self) -> dict[str, tuple[str, str]]:
        query = "SELECT topic_type, encoded_message_definition, encoding FROM message_definitions"
        try:
            return {name: (text, encoding) for name, text, encoding in self._rows(query)}
        except DAMAGE:
            return {}  # bags before ROS 2 Iron have none

    def read(self, topics: Collection[str]) -> Iterator[Sample]:
        """Yield the messages of `topics` in log-time order."""
        wanted = {number: name for number, name in self._names.items() if name in topics}
        return chain.from_iterable(
            self._batches(wanted) if self._in_order else [self._singly(wanted)]
        )

    def _batches(self, wanted: dict[int, str]) -> Iterator[Iterator[Sample]]:
        query = (
            "SELECT timestamp, topic_id, data FROM messages NOT INDEXED"
            f" WHERE topic_id IN ({','.join('?' * len(wanted))}) ORDER BY id"
        )
        try:
            rows = self._connection.execute(query, [*wanted])
            while batch := rows.fetchmany(BATCH):
                times, topics, payloads = zip(*batch, strict=True)
                names = map(wanted.__getitem__, topics)
                yield map(make_sample, zip(times, names, payloads, strict=True))
        except DAMAGE as error:
            raise RecordingError(
                f"is damaged ({error})", accepted=ACCEPTED, file=self.path
            ) from error

    def _singly(self, wanted: dict[int, str]) -> Iterator[Sample]:
        """Yield what can be read of rows that are out of order, or of which some are damaged."""
        fetch = "SELECT data FROM messages WHERE id = ?"
        lost = 0
        for at in np.argsort(np.frombuffer(self._times, np.int64), kind="stable").tolist():
            name = wanted.get(self._topics[at])
            if name is None:
                continue
            try:
                ((data,),) = self._connection.execute(fetch, (self._numbers[at],)).fetchall()
            except (sqlite3.Error, ValueError):
                lost += 1
            else:
                yield make_sample((self._times[at], name, data))
        if lost:
            self.warnings.append(f"{plural(lost, 'message')} lie in damaged parts of the file")

    def close(self) -> None:
        """Close the file."""
        if hasattr(self, "_connection"):
            self._connection.close()
        if self._folder is not None:
            self._folder.cleanup()


def _has_log(path: Path) -> bool:
    log = path.with_name(path.name + "-wal")
    return log.is_file() and log.stat().st_size > 0


def _with_log(path: Path, folder: Path, warnings: list[str]) -> Path:
    """Return a copy in `folder` that has taken in the write-ahead log beside the recording.

    There the last messages of a recorder that was killed are, which readers that leave the
    recording untouched do not see.
    """
    copy = folder / "recording.db3"
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


def _connect(path: Path) -> sqlite3.Connection:
    """Open a database without touching it or waiting for a lock."""
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True, check_same_thread=False)
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    return connection
