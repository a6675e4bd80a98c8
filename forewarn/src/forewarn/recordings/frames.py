"""Frames in one JSON document: a list of objects, each of which says its time.

Simulators and data sets of robots often store a run as one object with its frames in a list::

    {"frames": [{"timestamp": 12.3, "velocity": [1.2, 0.0], "pose": {"x": 4.1}}, ...]}

or as the list alone, maybe with .gz or .zst. Its structure tells it, not its name: in one list of
objects all have a time, a number under the first of `TIMES` that all of them have. Each frame is
what a line of a trace is (`traces`). Objects in a frame are opened up (``pose_x``), and a list of
objects becomes a list for each value that all of them have (``obstacles_x``). What else the
document says is left out.

Times are in seconds; those under a name with ``_ns`` in nanoseconds. Whole numbers are what their
rhythm says, for frames come more often than every ten seconds (`UNITS`), and a warning tells it:
they may be in another unit still (LawBreaker's runs count tenths of a second).
"""

from __future__ import annotations

import re
import statistics
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.errors import RecordingError
from forewarn.recordings.interface import Sample
from forewarn.recordings.traces import LONGEST, JsonTrace, decoder, open_text, sample_of, short
from forewarn.recordings.zstd import CutError

TIMES = ("t", "time", "timestamp", "stamp", "t_ns", "time_ns", "timestamp_ns", "stamp_ns")
UNITS = (
    (10_000_000, 1, "nanoseconds"),
    (10_000, 1_000, "microseconds"),
    (10, 1_000_000, "milliseconds"),
)
"""Median steps from which on whole numbers are in a unit: step, nanoseconds in one, name."""

ACCEPTED = 'a document like {"frames": [{"timestamp": 12.3, "speed": 1.2}]}'
PACKED = (b"\x1f\x8b", b"\x28\xb5")
MOST_NESTED = 8

CALLED_JSON = re.compile(r"\.json(\.gz|\.zst)?\Z", re.IGNORECASE)

Frame = Mapping[str, Any]


class _CutShortError(RecordingError):
    """A document that ends too early."""


class _Frames(NamedTuple):
    """The frames of a document: the key of their list, and that of their times."""

    key: str
    time: str
    frames: list[Frame]


def is_frames(path: Path, head: bytes) -> bool:
    """Tell whether a file is a document of frames, or may be the beginning of one.

    A file called .json that is cut short counts: to open it is an error, and in a folder of
    recordings it must not be passed over.
    """
    if path.is_dir() or not (head.lstrip()[:1] in (b"{", b"[") or head[:2] in PACKED):
        return False
    stat = path.stat()
    try:
        return _frames(path, stat.st_mtime_ns, stat.st_size) is not None
    except _CutShortError:
        return CALLED_JSON.search(path.name) is not None
    except (ValueError, OSError, RecursionError, RecordingError):
        return False


class FrameTrace(JsonTrace):
    """The frames of a document as a trace; see `Recording` for the members."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.kind = "frames in JSON"

    def _lines(self) -> Iterator[Sample]:
        stat = self.path.stat()
        found = _frames(self.path, stat.st_mtime_ns, stat.st_size)
        if found is None:
            raise RecordingError("holds no frames", accepted=ACCEPTED, file=self.path)
        unit, unit_name = _unit(found)
        if unit_name:
            self._warn(f"times ({found.time}) are taken for {unit_name}")
        for number, frame in enumerate(found.frames):
            time = frame[found.time]
            values: dict[str, Any] = {"t_ns": time * unit} if unit else {"t": time}
            try:
                for key, value in frame.items():
                    if key != found.time:
                        self._open_up(_identifier(key), value, values, 0)
                yield sample_of(values)
            except ValueError as error:
                raise RecordingError(
                    str(error), accepted=ACCEPTED, file=self.path, key=f"{found.key}[{number}]"
                ) from error

    def _open_up(self, name: str, value: Any, values: dict[str, Any], depth: int) -> None:
        """Put a value of a frame under its name, what it contains under longer ones."""
        if depth > MOST_NESTED:
            raise ValueError(f"{name}: is nested too deeply")
        if isinstance(value, dict):
            for key, inner in value.items():
                self._open_up(f"{name}_{_identifier(key)}", inner, values, depth + 1)
        elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            for key in (key for key in value[0] if all(key in one for one in value)):
                column = [one[key] for one in value]
                self._open_up(f"{name}_{_identifier(key)}", column, values, depth + 1)
        elif isinstance(value, list) and _holds_object(value, depth):
            self._warn(f"{name}: objects in a list within a list, or beside values, are left out")
        elif name in values:
            raise ValueError(f"{name}: two values have this name, one is {short(value)}")
        else:
            values[name] = value


@lru_cache(maxsize=4)
def _frames(path: Path, changed_ns: int, size: int) -> _Frames | None:
    """Return the frames of a document, read once; None if it holds none."""
    del changed_ns, size
    try:
        with open_text(path) as file:
            text = file.read(LONGEST + 1)
    except (EOFError, zlib.error, CutError) as error:
        raise _CutShortError(f"is cut short or damaged ({error})", file=path) from error
    if len(text) > LONGEST:
        return None
    try:
        document = decoder.decode(text)
    except ValueError as error:
        if text.rstrip()[-1:] in ("]", "}"):
            raise
        raise _CutShortError(f"is cut short ({error})", file=path) from error
    lists = document.items() if isinstance(document, dict) else (("", document),)
    timed = [_Frames(key, time, value) for key, value in lists if (time := _time_of(value))]
    return timed[0] if len(timed) == 1 else None


def _time_of(frames: Any) -> str:
    """Return the key of the times if all elements of a list are objects that have it, else ''."""
    if not isinstance(frames, list) or not all(isinstance(one, dict) for one in frames):
        return ""
    for name in TIMES if frames else ():
        values = [one.get(name) for one in frames]
        if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
            return name
    return ""


def _unit(found: _Frames) -> tuple[int, str]:
    """Return the nanoseconds in one of a frame's times, 0 for seconds, and the unit to warn of."""
    times = [frame[found.time] for frame in found.frames]
    if found.time == "t" or not all(isinstance(time, int) for time in times):
        return 0, ""
    if found.time.endswith("_ns"):
        return 1, ""
    step = statistics.median(abs(b - a) for a, b in pairwise(times)) if len(times) > 1 else 0
    return next(((unit, name) for least, unit, name in UNITS if step >= least), (0, "seconds"))


def _identifier(key: str) -> str:
    return re.sub(r"\W+", "_", key).strip("_") or "field"


def _holds_object(value: Any, depth: int) -> bool:
    if depth > MOST_NESTED:
        raise ValueError("is nested too deeply")
    if isinstance(value, list):
        return any(_holds_object(one, depth + 1) for one in value)
    return isinstance(value, dict)
