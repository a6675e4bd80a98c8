"""A small file for the next life of a process: replaced as a whole, and never in place of another.

A reader finds the old or the new one. It is not forced to the disk, which could take longer than a
tick: it survives the death of the process, and after a loss of power its checksum tells whether it
can be trusted. By its first bytes a process knows its own journal, even one that was cut short.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from forewarn.errors import RecordingError
from forewarn.files.inputs import NotPlainFileError, open_plain
from forewarn.files.outputs import write_output

LARGEST = 16_000_000
"""Bytes that a journal has at most: none is written that is larger, and one found is damaged."""
ACCEPTED = "a name that is free, or the journal of a former life of this process"


Content = TypeVar("Content")


class JournalFile:
    """One journal.

    `path`: the file; its folder must exist to write it.
    `owner`: kind of process that it belongs to.
    `format`: version of what `owner` writes.
    """

    def __init__(self, path: Path, owner: str, format: int) -> None:
        self.path = path
        self._format = format
        self._mark = f'{{"forewarn journal of": {json.dumps(owner)}, '.encode()

    def read(self, parse: Callable[[Any], Content]) -> tuple[Content | None, str]:
        """Return what was left behind, and what is wrong with the file; either may be missing.

        A damaged journal is renamed, so that nothing is lost that can still be read.

        `parse`: makes sense of what was written; raises KeyError, TypeError or ValueError if there
        is none.
        Raises RecordingError if something else is there, or the file cannot be read, or not be kept
        aside: then it must not be written either.
        """
        try:
            raw = self._bytes()
        except FileNotFoundError:
            return None, ""
        except OSError as error:
            raise self._refused(f"cannot be read ({error.strerror})") from error
        try:
            return parse(self._body(raw)), ""
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = str(error)
        # A file system may leave nothing, or zeros, where a loss of power cut a file short.
        ours = raw.startswith(self._mark) or self._mark.startswith(raw) or not raw.strip(b"\0")
        if not ours:
            raise self._refused("is no journal of ours, and is not written over")
        return None, f"{self.path} is damaged ({reason}) and was kept as {self._aside()}"

    def write(self, body: Mapping[str, Any]) -> None:
        """Replace the journal; raises RecordingError, also if it would be longer than is read."""
        rest = json.dumps({"format": self._format, "sum": _sum(body), "body": body})
        text = self._mark.decode() + rest[1:]
        if len(text) > LARGEST:  # JSON is ASCII: as many bytes
            raise RecordingError(
                f"a memory of {len(text)} bytes is too long; the one before stays",
                accepted=f"at most {LARGEST} bytes",
                file=self.path,
                key="journal",
            )
        write_output(self.path, text, RecordingError)

    def _bytes(self) -> bytes:
        try:
            with open_plain(self.path) as file:
                return file.read(LARGEST + 1)
        except (NotPlainFileError, IsADirectoryError) as error:
            raise self._refused("is no plain file") from error

    def _body(self, raw: bytes) -> Any:
        if len(raw) > LARGEST:
            raise ValueError(f"larger than {LARGEST} bytes")
        if not raw.startswith(self._mark):
            raise ValueError("cut short")
        found = json.loads(raw)
        if found["format"] != self._format:
            raise ValueError(f"format {found['format']!r}, not {self._format}")
        body = found["body"]
        if found["sum"] != _sum(body):
            raise ValueError("its checksum is wrong")
        return body

    def _aside(self) -> Path:
        numbers = count(1)
        try:
            while True:
                target = self.path.with_name(f"{self.path.name}.damaged-{next(numbers)}")
                try:
                    target.open("xb").close()  # the name is ours from now on
                except FileExistsError:
                    continue
                return self.path.replace(target)
        except OSError as error:
            reason = error.strerror
            raise self._refused(f"is damaged and cannot be renamed ({reason})") from error

    def _refused(self, problem: str) -> RecordingError:
        return RecordingError(problem, accepted=ACCEPTED, file=self.path, key="journal")


def _sum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body).encode()).hexdigest()
