"""Groups of recordings: those of one robot, one version of the software, one month.

The values of the keys come from a table, from the path, or from the metadata of the recording
(`Recording.metadata`). The time at which a recording began is always known.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path, PurePosixPath

from forewarn.errors import InputError, RecordingError
from forewarn.files.inputs import open_plain
from forewarn.files.remote import MAGIC
from forewarn.recordings.interface import Recording
from forewarn.recordings.parts import file_of
from forewarn.recordings.tables import separator_of

NAME = re.compile(r"[A-Za-z_]\w*\Z")
PLACE = re.compile(r"\{([A-Za-z_]\w*)\}|\*\*|\*|\?")
RECORDING = "recording"
"""The column of a table that says which recordings a line is about."""
PERIODS: Mapping[str, str] = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}
"""Keys that are known of each recording: when it began, in UTC."""
ACCEPTED = (
    f"a table in CSV with a column `{RECORDING}`, or a pattern of paths such as "
    "'bags/{robot}/{software}/*'"
)
NO_VALUE = (
    "a value: in a table or a pattern of paths (--group-source), or in the recording's metadata"
)

Values = Mapping[str, str]


@dataclass(frozen=True)
class Grouping:
    """Tells the group of each recording. It travels between processes.

    `lines`: lines of a table: the name or path of a recording, or a pattern of them, and values.
    `pattern`: a pattern of paths in which ``{robot}`` stands for a value; empty if there is none.
    """

    keys: tuple[str, ...]  # what recordings of one group have in common
    lines: tuple[tuple[str, Values], ...] = ()
    pattern: str = ""
    source: str = ""  # where lines come from, for messages

    @cached_property
    def _index(self) -> Mapping[str, Sequence[Values]]:
        found: dict[str, list[Values]] = {}
        for name, values in self.lines:
            found.setdefault(str(PurePosixPath(name)), []).append(values)
        return found

    def of(self, recording: Recording) -> str:
        """Return the group of a recording, such as ``robot=7, software=2.1``.

        Raises RecordingError if it has no value for a key, or several.
        """
        return ", ".join(f"{key}={on_one_line(self._value(key, recording))}" for key in self.keys)

    def _value(self, key: str, recording: Recording) -> str:
        sources = (self._by_table, self._by_path, _by_time, _by_metadata)
        for found in (set(source(key, recording)) for source in sources):
            if len(found) > 1:
                listed = " and ".join(sorted(map(repr, found)))
                raise RecordingError(
                    f"has two values, {listed}", file=recording.path, key=key, accepted="one"
                )
            if found:
                return found.pop()
        raise RecordingError("has no value here", file=recording.path, key=key, accepted=NO_VALUE)

    def _by_table(self, key: str, recording: Recording) -> Iterator[str]:
        path = PurePosixPath(str(file_of(recording.path)))
        parts = path.parts
        for number in range(1, len(parts) + 1):  # names are most common, and found at once
            for values in self._index.get(str(PurePosixPath(*parts[-number:])), ()):
                yield from _values_of(values, key)
        for name, values in self.lines:
            if MAGIC & {*name} and path.match(name):
                yield from _values_of(values, key)

    @property
    def _places(self) -> frozenset[str]:
        return frozenset(name for name in PLACE.findall(self.pattern) if name)

    def _by_path(self, key: str, recording: Recording) -> Iterator[str]:
        if key not in self._places:
            return
        found = _regular(self.pattern).search(str(file_of(recording.path)))
        if found is None:
            raise RecordingError(
                f"does not match the pattern of paths {self.pattern}", file=recording.path, key=key
            )
        yield found[key]


def grouping(keys: str, source: str | None = None) -> Grouping:
    """Return how recordings are grouped.

    `keys`: names with commas between them: ``robot,software``.
    `source`: the path of a table in CSV, or a pattern of paths.
    Raises InputError if a name is no key, or the table or the pattern cannot be used.
    """
    names = tuple(name.strip() for name in keys.split(","))
    for name in names:
        if not NAME.match(name) or names.count(name) > 1:
            raise InputError(
                f"{name!r} in {keys!r}", key="--group-by", accepted="distinct names: robot,software"
            )
    if source is None:
        return Grouping(names)
    if "{" in source:
        try:
            _regular(source)
        except re.error as error:
            raise InputError(
                f"{source!r}: {error}", key="--group-source", accepted=ACCEPTED
            ) from error
        return Grouping(names, pattern=source, source=source)
    return Grouping(names, _read(Path(source)), source=source)


def _read(path: Path) -> tuple[tuple[str, Values], ...]:
    try:
        with open_plain(path) as file:
            text = file.read().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", file=path, accepted=ACCEPTED) from error
    found = []
    try:
        separator = separator_of(text.split("\n", 1)[0])
        rows = csv.DictReader(
            io.StringIO(text), delimiter=separator, strict=True, skipinitialspace=True
        )
        columns = [name.strip() for name in rows.fieldnames or ()]
        rows.fieldnames = columns
        if RECORDING not in columns or len({*columns}) < len(columns):
            raise InputError(f"the columns are {columns}", file=path, accepted=ACCEPTED)
        for row in rows:
            if None in row or None in row.values():
                raise InputError(
                    f"line {rows.line_num} has another number of cells than the header", file=path,
                    accepted=f"{len(columns)} cells",
                )  # fmt: skip
            values = {key: cell.strip() for key, cell in row.items()}
            found.append((values.pop(RECORDING).rstrip("/"), values))
    except csv.Error as error:
        raise InputError(f"cannot be read: {error}", file=path, accepted=ACCEPTED) from error
    return tuple(found)


def on_one_line(value: str) -> str:
    """Return a value on one line, quoted if it holds ", ", so that no two groups share a name."""
    text = " ".join(value.split())
    return json.dumps(text, ensure_ascii=False) if ", " in text else text


def _values_of(values: Values, key: str) -> Iterator[str]:
    if values.get(key):
        yield values[key]


def _by_time(key: str, recording: Recording) -> Iterator[str]:
    if key in PERIODS and recording.timed:
        began = datetime.fromtimestamp(recording.start_ns // 10**9, timezone.utc)
        yield began.strftime(PERIODS[key])


def _by_metadata(key: str, recording: Recording) -> Iterator[str]:
    for table in recording.metadata().values():
        yield from _values_of(table, key)


def _regular(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern, which has the last parts of a path or all."""
    kinds: Mapping[str, Callable[[], str]] = {
        "**": lambda: ".*",
        "*": lambda: "[^/]*",
        "?": lambda: "[^/]",
    }
    text, end = "", 0
    for place in PLACE.finditer(pattern):
        text += re.escape(pattern[end : place.start()])
        text += f"(?P<{place[1]}>[^/]+)" if place[1] else kinds[place[0]]()
        end = place.end()
    return re.compile(rf"(?:^|/){text}{re.escape(pattern[end:])}/?$")
