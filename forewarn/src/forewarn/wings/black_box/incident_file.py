"""The files of incidents: MCAP, under a temporary name until they are complete.

A file that is not complete ends in `PART`, and its writer holds a lock on it. A process that
is killed leaves it so; the next one finds no lock and gives it a name that says
that it is torn. It can be read as far as it goes.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from forewarn.errors import ForewarnError, RecordingError
from forewarn.messages.definitions import MessageType, installed_message_type
from forewarn.monitoring.record import INCIDENT_PREFIX, SPEC_NAME
from forewarn.recordings.writing import RecordingWriter
from forewarn.signals.clock import NANOSECONDS

if TYPE_CHECKING:
    from forewarn.wings.black_box.box import Kept, LogEntry
    from forewarn.wings.black_box.section import BlackBoxSpec

TABLE = "forewarn.incident"
FORMAT = "1"
SUFFIX, PART, TORN = ".mcap", ".part", "-torn"
LABEL_SUFFIX = ".label.json"


class IncidentFolder:
    """Where the incidents of a monitor are, `keep` finished files and `quota` bytes at the most.

    Raises RecordingError if it cannot be made, or nothing can be written there.
    """

    def __init__(self, path: Path, keep: int, quota: int) -> None:
        self.path = path
        self.keep = keep
        self.quota = quota
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RecordingError(
                f"cannot be made: {error.strerror}", file=path, accepted="a folder of yours"
            ) from error
        if not os.access(path, os.W_OK | os.X_OK):
            raise RecordingError(
                "nothing can be written there", file=path, accepted="a folder of yours"
            )

    @property
    def most(self) -> int:
        """Bytes at which a file ends: it and the newest finished one keep to the quota."""
        return self.quota // 2

    @classmethod
    def of(cls, spec: BlackBoxSpec, path: Path) -> IncidentFolder:
        """Return the folder of a monitor file."""
        return cls(path, spec.keep, spec.quota)

    def finished(self) -> list[Path]:
        """Return the files without a writer, the oldest first."""
        found = []
        for path in self.path.glob(f"{INCIDENT_PREFIX}*{SUFFIX}"):
            with suppress(FileNotFoundError):
                found.append((path.stat().st_mtime_ns, path.name, path))
        return [path for *_, path in sorted(found)]

    def path_at(self, time_ns: int, given: Collection[Path] = ()) -> Path:
        """Return a name that is free, and none of those `given` away, for an incident at a time."""
        whole, rest = divmod(time_ns, NANOSECONDS)
        moment = datetime.fromtimestamp(whole, timezone.utc)
        stem = f"{INCIDENT_PREFIX}{moment:%Y%m%dT%H%M%S}-{rest // 1_000_000:03}Z"
        number = 1
        while True:
            name = stem if number == 1 else f"{stem}-{number}"
            path = self.path / f"{name}{SUFFIX}"
            taken = ((self.path / f"{name}{end}").exists() for end in _ENDS)
            if path not in given and not any(taken):
                return path
            number += 1

    def recover(self) -> list[Path]:
        """Give what killed processes left a name that says so; return these files."""
        found = []
        for path in sorted(self.path.glob(f"{INCIDENT_PREFIX}*{SUFFIX}{PART}")):
            with suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found.append(torn(path))
        return found

    def prune(self, coming: int = 0, *, files: int = 0) -> list[Path]:
        """Delete the oldest finished files until `coming` bytes in `files` more have room.

        The newest one stays, whatever its size. Returns what was deleted.
        """
        paths, gone = self.finished(), []
        sizes = {path: _size(path) for path in paths}
        while len(paths) > 1 and (
            len(paths) + files > self.keep or sum(sizes[p] for p in paths) + coming > self.quota
        ):
            oldest = paths.pop(0)
            oldest.unlink(missing_ok=True)
            label_of(oldest).unlink(missing_ok=True)
            gone.append(oldest)
        return gone


_ENDS = (SUFFIX, f"{TORN}{SUFFIX}", f"{SUFFIX}{PART}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def torn(part: Path) -> Path:
    """Give a file that will not be completed a name that says so, and return it."""
    name = part.name.removesuffix(f"{SUFFIX}{PART}")
    return part.rename(part.with_name(f"{name}{TORN}{SUFFIX}"))


def label_of(path: Path) -> Path:
    """Return the file beside an incident that holds its label."""
    return path.with_name(path.name.removesuffix(SUFFIX) + LABEL_SUFFIX)


class IncidentFile:
    """Writes one incident, which will be called `path` once it is complete; raises RecordingError.

    `about` is what else a reader wants to know: the node, the model's digest; `files` are
    attachments. `left_out` are topics whose messages have no place in the file, and why.
    """

    def __init__(
        self, path: Path, first: LogEntry, about: Mapping[str, str], files: Mapping[str, bytes]
    ) -> None:
        self.path = path
        self.part = path.with_name(path.name + PART)
        self.left_out: dict[str, str] = {}
        self.messages = 0
        self._types: dict[str, MessageType] = {}
        self._moments: list[LogEntry] = []
        try:
            self._writer = RecordingWriter(self.part)
        except RecordingError as error:
            if not isinstance(error.__cause__, FileExistsError):
                self.part.unlink(missing_ok=True)
            raise
        self._lock = os.open(self.part, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            self._writer.write_metadata(
                TABLE, {"format": FORMAT, **about, **_trigger_fields(first)}
            )
            for name, content in files.items():
                media = "application/yaml" if name == SPEC_NAME else "text/plain"
                self._writer.attach(name, content, media)
        except RecordingError:
            # It says nothing, and would take the place of one that does.
            with suppress(RecordingError):
                self._writer.close()
            self.part.unlink(missing_ok=True)
            self._unlock()
            raise

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return _size(self.part)

    def write(self, kept: Kept) -> None:
        """Append a message; raises RecordingError."""
        if kept.moment is not None:
            self._moments.append(kept.moment)
        mtype = self._types.get(kept.topic) or self._type_of(kept)
        if mtype is not None:
            self._writer.write_typed(kept.topic, mtype, kept.time_ns, kept.serialized())
            self.messages += 1

    def flush(self) -> None:
        """Hand all messages to the operating system; raises RecordingError."""
        self._writer.flush()

    def _type_of(self, kept: Kept) -> MessageType | None:
        if kept.topic in self.left_out:
            return None
        try:
            found = self._types[kept.topic] = installed_message_type(kept.type)
        except ForewarnError as error:
            self.left_out[kept.topic] = str(error)
            return None
        return found

    def close(self, remarks: Mapping[str, str]) -> Path:
        """Complete the file, with remarks at its end; raises RecordingError."""
        moments = [{**moment._asdict(), "risk": _number(moment.risk)} for moment in self._moments]
        left_out = {f"left out {topic}": why for topic, why in self.left_out.items()}
        metadata = {"complete": "yes", "moments": json.dumps(moments), **left_out, **remarks}
        self._writer.write_metadata(TABLE, metadata)
        self._writer.close()
        try:
            os.fsync(self._lock)
            self.part.rename(self.path)
        except OSError as error:
            raise RecordingError(f"cannot be written ({error.strerror})", file=self.path) from error
        finally:
            self._unlock()
        return self.path

    def abandon(self) -> Path | None:
        """Keep what there is under a name that says that it is torn; return it."""
        with suppress(RecordingError):
            self._writer.close()
        try:
            return torn(self.part)
        except OSError:
            return None
        finally:
            self._unlock()

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _trigger_fields(first: LogEntry) -> dict[str, str]:
    return {
        "time_ns": str(first.time_ns),
        "trigger": first.kind,
        "property": first.property,
        "risk": repr(first.risk),
        "text": first.text,
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
