"""A part of a recording, from one moment to another, as if the recorder had run only then.

The address of a part is ``run.mcap::10..60``: the recording, and the moments between which its
messages count, both included. A moment is in seconds since the first message, or a time such as
``2026-03-01T10:15:00Z``; one of them may be left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from forewarn.errors import RecordingError
from forewarn.recordings.interface import Recording, Sample, WrappedRecording

MARK = "::"
STATIC = "tf_static"
"""Topics of transforms that a late recorder hears as well: their publishers keep them."""
SECONDS = re.compile(r"\d{1,12}(\.\d*)?\Z")
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?([zZ]|[-+]\d\d:\d\d)?\Z")
ACCEPTED = "seconds since the recording began, or a time such as 2026-03-01T10:15:00Z"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Part(NamedTuple):
    """From when to when; None for a side without a limit.

    `begin`, `end`: moments as `moment` gives them.
    """

    begin: str | None
    end: str | None

    def of(self, path: Path) -> Path:
        """Return the address of this part of a recording; the recording if nothing is left out."""
        if self == (None, None):
            return path
        path = path if path.name not in ("", "..") else path.resolve()
        return path.with_name(f"{path.name}{MARK}{self.begin or ''}..{self.end or ''}")


def moment(text: str) -> str:
    """Return a moment as addresses have it.

    `text`: seconds, or a time in ISO 8601; without a zone it is local time.
    Raises ValueError if it is neither.
    """
    if SECONDS.match(text):
        return text
    if not TIME.match(text):
        raise ValueError(text)
    # Python 3.10 reads three or six digits of a fraction, and no Z.
    text = re.sub(r"\.(\d+)", lambda found: f".{found[1]:0<6}"[:7], text)
    try:
        time = datetime.fromisoformat(re.sub(r"[zZ]\Z", "+00:00", text)).astimezone(timezone.utc)
    except OverflowError:
        raise ValueError(text) from None
    return time.replace(tzinfo=None).isoformat() + "Z"


def divided(path: Path) -> tuple[Path, Part] | None:
    """Return the recording and the part that a path addresses; None if it addresses none."""
    name, mark, rest = path.name.rpartition(MARK)
    begin, dots, end = rest.partition("..")
    if not mark or not dots or not name or path.exists():
        return None
    try:
        part = Part(moment(begin) if begin else None, moment(end) if end else None)
    except ValueError:
        raise RecordingError(
            f"{rest!r} is no part of a recording", file=path, accepted=f"FROM..TO, each {ACCEPTED}"
        ) from None
    return path.with_name(name), part


def file_of(path: Path) -> Path:
    """Return the recording that a path is the address of a part of, or the path."""
    found = divided(path)
    return path if found is None else found[0]


class PartRecording(WrappedRecording):
    """A part of a recording; see `Recording` for the members.

    `count` is that of the whole recording.
    """

    def __init__(self, path: Path, whole: Recording, part: Part) -> None:
        super().__init__(path, whole)
        self.kind = f"part of a {whole.kind}"
        begin = 0 if part.begin is None else _time_ns(part.begin, whole.start_ns)
        end = whole.end_ns if part.end is None else _time_ns(part.end, whole.start_ns)
        self.start_ns, self.end_ns = max(begin, whole.start_ns), min(end, whole.end_ns)
        if self.start_ns > self.end_ns:
            first, last = (_shown(time_ns) for time_ns in (whole.start_ns, whole.end_ns))
            raise RecordingError(
                "nothing was recorded then",
                file=path,
                accepted=f"a part of its {whole.duration:.1f} s, from {first} to {last}",
            )

    def read(self, topics: Collection[str] | None = None) -> Iterator[Sample]:
        """Yield the samples of the part."""
        for sample in self._whole.read(topics):
            if sample.time_ns > self.end_ns:
                return
            if sample.time_ns >= self.start_ns:
                yield sample
            elif sample.topic.endswith(STATIC):
                yield sample._replace(time_ns=self.start_ns)

    def digest(self) -> str:
        """Return the SHA-256 of the whole recording's digest and of the limits, in hex."""
        text = f"{self._whole.digest()} {self.start_ns} {self.end_ns}"
        return hashlib.sha256(text.encode()).hexdigest()


def _time_ns(text: str, start_ns: int) -> int:
    if SECONDS.match(text):
        whole, _, rest = text.partition(".")
        return start_ns + int(whole) * 10**9 + int(f"{rest:0<9}"[:9])
    since = datetime.fromisoformat(text.replace("Z", "+00:00")) - EPOCH
    return ((since.days * 86_400 + since.seconds) * 10**6 + since.microseconds) * 1000


def _shown(time_ns: int) -> str:
    return f"{datetime.fromtimestamp(time_ns // 10**9, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
