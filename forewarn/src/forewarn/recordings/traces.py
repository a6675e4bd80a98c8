"""Traces of named values, one JSON object a line.

Each line is an object with the time and the values of signals at that time::

    {"t": 12.3, "speed": 1.2, "braking": false, "distances": [4.0, 7.5], "mode": "auto"}

``t`` is in seconds, never negative; ``t_ns`` may stand for it, in whole nanoseconds. Where the
clock is steps, all lines may be without a time: line k, from 0, then counts as at k seconds. All
other keys name signals. A value is a number, a truth value, a text, a list of numbers, truth values
or texts (which may be nested), or null, which stands for unknown, as does NaN; ``NaN``,
``Infinity`` and ``-Infinity`` may be written. A signal that is not on a line keeps its last
value. Empty lines are passed over. The file may be compressed with gzip (.gz) or zstd (.zst).
"""

from __future__ import annotations

import gzip
import io
import json
import math
import sys
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO, TypeVar

from forewarn.errors import RecordingError
from forewarn.files.inputs import open_plain
from forewarn.recordings.interface import TIME_LIMIT_NS, Recording, Sample, TopicInfo, digest_files
from forewarn.recordings.zstd import CutError, ZstdFile, most

ACCEPTED = 'a line like {"t": 12.3, "speed": 1.2}'
POSES = "poses of all objects at each moment are read with `trajectories` in the monitor file"
ACCEPTED_VALUE = "a number, a truth value, a text, or a list or set of these; None for unknown"
SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".jsonl.zst", ".ndjson.zst")

BOM = b"\xef\xbb\xbf"
NAN = float("nan")
NO_TIME = -1
LARGEST = sys.float_info.max
LONGEST = 1 << 26
"""Characters of a line: a packed file of a few bytes may hold one that takes all memory."""


Parsed = TypeVar("Parsed")


def is_trace(path: Path, head: bytes) -> bool:
    """Tell by its name or its first line whether a file is a trace.

    JSON whose first object goes on over several lines is no trace: reports, events, models.
    """
    line, complete, _ = head.removeprefix(BOM).lstrip().partition(b"\n")
    begun = line.startswith(b"{") and (line.rstrip().endswith(b"}") or not complete)
    return path.name.endswith(SUFFIXES) or begun


class JsonTrace(Recording):
    """A trace of named values; see `Recording` for the members.

    All lines are checked when it is opened.

    `signals`: names of all values, in the order of their first appearance.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kind = "trace"
        self.warnings: list[str] = []
        self.timed = True
        self.size = path.stat().st_size
        signals: dict[str, None] = {}
        times: list[int] = []
        backwards = 0
        for sample in self._lines():
            signals.update(dict.fromkeys(sample.data))  # type: ignore[arg-type]
            backwards = max(backwards, times[-1] - sample.time_ns if times else 0)
            times.append(sample.time_ns)
        self.signals = tuple(signals)
        self.count = len(times)
        self.start_ns, self.end_ns = (min(times), max(times)) if times else (0, 0)
        self.topics: Mapping[str, TopicInfo] = {}
        self._sorted = not backwards
        if backwards:
            self.warnings.append(
                f"times go backwards, by up to {backwards / 1e9:.9g} s; "
                "lines are read in the order of time"
            )
        if not times:
            self.warnings.append("the recording holds no lines")

    def read(self, topics: Collection[str] | None = None) -> Iterator[Sample]:
        """Yield one sample for each line, in the order of time; topics do not matter."""
        del topics
        lines = self._lines()
        return lines if self._sorted else iter(sorted(lines, key=itemgetter(0)))

    def _lines(self) -> Iterator[Sample]:
        for count, (number, sample) in enumerate(self._parsed(_sample)):
            try:
                placed = self._placed(sample, count)
            except ValueError as error:
                raise self._error(number, str(error)) from error
            yield placed

    def _parsed(self, parse: Callable[[str], Parsed]) -> Iterator[tuple[int, Parsed]]:
        """Yield the number of each line that is not empty and what it says.

        `parse` raises ValueError where a line is wrong.
        """
        for number, line in self._texts():
            try:
                parsed = parse(line)
            except ValueError as error:
                if line.endswith("\n") or not isinstance(error, json.JSONDecodeError):
                    raise self._error(number, str(error)) from error
                self._warn(f"line {number} is cut short; it is left out")
            else:
                yield number, parsed

    def _texts(self) -> Iterator[tuple[int, str]]:
        return text_lines(self.path, self._warn, self._error)

    def _placed(self, sample: Sample, count: int) -> Sample:
        """Return the sample of line `count` at its time, or at its number if no line has one."""
        if count == 0:
            self.timed = sample.time_ns != NO_TIME
        if self.timed == (sample.time_ns != NO_TIME):
            return sample if self.timed else sample._replace(time_ns=count * 1_000_000_000)
        text = "has no time (key t), and lines before it have one"
        raise ValueError(text if self.timed else "has a time, and lines before it have none")

    def _error(self, number: int, problem: str) -> RecordingError:
        return RecordingError(problem, accepted=ACCEPTED, file=f"{self.path}:{number}")

    def digest(self) -> str:
        """Return the SHA-256 of the contents of the file, in hex."""
        return digest_files([self.path])

    def close(self) -> None:
        """Do nothing: the file is open only while it is read."""


def text_lines(
    path: Path, warn: Callable[[str], None], wrong: Callable[[int, str], RecordingError]
) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line of a file that is not empty.

    `warn` is called for a file that is cut short; `wrong` makes the error of a line that cannot be
    read.
    """
    number = 0
    with open_text(path) as file:
        try:
            for number, line in enumerate(iter(partial(file.readline, LONGEST + 1), ""), 1):
                if len(line) > LONGEST:
                    raise wrong(number, f"is longer than {LONGEST} characters")
                if line.strip():
                    yield number, line
        except (EOFError, zlib.error, gzip.BadGzipFile, CutError) as error:
            if not number:
                raise RecordingError(
                    f"cannot be unpacked ({error})", accepted="gzip or zstd", file=path
                ) from error
            warn(f"the file is cut short or damaged after line {number} ({error})")
        except UnicodeDecodeError as error:
            raise wrong(number + 1, f"is no UTF-8 text ({error.reason})") from error
        except OSError as error:
            raise wrong(number + 1, f"cannot be read ({error})") from error


def open_text(path: Path) -> TextIO:
    """Open a file of text, unpacked by its ending; raises RecordingError."""
    try:
        raw = open_plain(path)
    except OSError as error:
        raise RecordingError(f"cannot be opened ({error.strerror})", file=path) from error
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.GzipFile(fileobj=raw), encoding="utf-8-sig")
    if path.suffix == ".zst":
        unpacked = io.BufferedReader(ZstdFile(raw, most(path.stat().st_size)))
        return io.TextIOWrapper(unpacked, encoding="utf-8-sig")
    return io.TextIOWrapper(raw, encoding="utf-8-sig")


def _sample(line: str) -> Sample:
    """Parse and check one line, at `NO_TIME` if it has none; raises ValueError."""
    try:
        values = decoder.decode(line)
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error
    if not isinstance(values, dict):
        raise ValueError(f"is {short(values)}, no object")
    return sample_of(values)


def sample_of(values: dict[str, Any]) -> Sample:
    """Check named values and their time, at `NO_TIME` if they have none; raises ValueError."""
    time_ns = _time_ns(values)
    for name, value in values.items():
        if value is None:
            values[name] = NAN
        elif isinstance(value, list):
            values[name] = [_element(name, element) for element in value]
        elif type(value) is int:
            _check_size(name, value)
        elif isinstance(value, dict):
            raise ValueError(
                f"{name}: is an object; accepted: number, truth value, text or list; {POSES}"
            )
    return Sample(time_ns, "", values)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice}: stands twice on the line")
    return values


decoder = json.JSONDecoder(object_pairs_hook=_unique)


def _time_ns(values: dict[str, Any]) -> int:
    """Take the time out of the values of a line; in nanoseconds, `NO_TIME` if there is none."""
    name = "t_ns" if "t_ns" in values and "t" not in values else "t"
    if name not in values:
        return NO_TIME
    if "t_ns" in values and name == "t":
        raise ValueError("has both t and t_ns")
    time = values.pop(name)
    if isinstance(time, bool) or not isinstance(time, (int, float)):
        raise ValueError(f"{name}: {short(time)} is no time; accepted: a number of seconds")
    if name == "t_ns" and not isinstance(time, int):
        raise ValueError(f"t_ns: {short(time)} is no whole number of nanoseconds")
    if time < 0 or (isinstance(time, float) and not math.isfinite(time)):
        raise ValueError(f"{name}: {short(time)} is no time; it must be finite and not negative")
    if time >= TIME_LIMIT_NS:
        raise ValueError(f"{name}: {short(time)} lies beyond the year 2262")
    time_ns = int(time) if name == "t_ns" else round(time * 1_000_000_000)
    if time_ns >= TIME_LIMIT_NS:
        raise ValueError(f"{name}: {short(time)} lies beyond the year 2262")
    return time_ns


def _element(name: str, value: Any) -> Any:
    if value is None:
        return NAN
    if isinstance(value, list):
        return [_element(name, element) for element in value]
    if type(value) is int:
        _check_size(name, value)
    if isinstance(value, dict):
        raise ValueError(
            f"{name}: holds an object; accepted: numbers, truth values and texts; {POSES}"
        )
    return value


def _check_size(name: str, value: int) -> None:
    if not -LARGEST <= value <= LARGEST:
        raise ValueError(f"{name}: {short(value)} is too large; accepted: up to 1.8e308, Infinity")


def short(value: object) -> str:
    """Return a value for a message."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def line_value(name: str, value: Any) -> tuple[Any, str]:
    """Return the value of a variable as a line of a trace has it, and its type for people.

    Raises RecordingError if a trace cannot hold it.
    """
    plain = _plain(value)
    kind = _kind(plain)
    if kind == "":
        problem = f"{short(value)} is of type {type(value).__name__}"
        raise RecordingError(problem, key=name, accepted=ACCEPTED_VALUE)
    return plain, kind


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        value = value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item) for item in value), key=repr)
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _kind(value: Any) -> str:
    """Return the type of a variable for people, empty if a trace cannot hold it."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "truth value"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list):
        return "list" if all(map(_kind, value)) else ""
    return ""
