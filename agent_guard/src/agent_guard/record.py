"""The steps that a guard saw, as a trace: JSON lines that `learn`, `replay` and `tune` read."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from forewarn.errors import RecordingError
from forewarn.files.chain import ChainedFile
from forewarn.files.inputs import open_plain

log = logging.getLogger("agent_guard")
NOTED = "guard"
"""Key of a line that says what the guard had against the call, or could not know."""
CALL = "call"
"""Key of a line that names the call, so that one which is begun again is not written twice."""
MOST_PLACES = 100_000
"""Steps that are known to be written; older ones are not begun again."""

Place = tuple[str, int, str]


class ChainedLines:
    """Appends lines of JSON to a file that may be there already; threads may share it.

    `path`: the file. Its chain of hashes is beside it (`forewarn.files.chain`).
    `key`: what the chain is keyed with.
    """

    def __init__(self, path: Path | str, key: bytes | None = None) -> None:
        self.path = Path(path)
        self._key = key
        self._lock = threading.Lock()
        self._file: ChainedFile | None = None
        self._failed = False

    def append(self, values: Mapping[str, Any]) -> bool:
        """Append a line; return whether it is there.

        A file or a line that cannot be written is logged once; calls go on.
        """
        try:
            line = json.dumps(values, default=str, separators=(",", ":"))
            with self._lock:
                if self._file is None:
                    self._file = ChainedFile(self.path, self._key)
                self._file.write(f"{line}\n".encode())
        except Exception as error:  # a value of `context` may raise whatever it likes
            if not self._failed:
                log.error("not recorded in %s: %s: %s", self.path, type(error).__name__, error)
            self._failed = True
            return False
        return True


class StepRecord:
    """Appends steps to a trace; runs may be interleaved.

    `path`: the file; what is in it stays.
    `key`: what its chain is keyed with.

    Raises RecordingError if there is something else at `path`.
    """

    def __init__(self, path: Path | str, key: bytes | None = None) -> None:
        self.path = Path(path)
        self._lines = ChainedLines(path, key)
        self._lock = threading.Lock()
        self._written: dict[Place, None] = {}
        for place in _written(self.path):
            self._note(place)

    def write(self, run: str, call: str, values: Mapping[str, Any], noted: str) -> None:
        """Append a step, unless this call of the run is there already.

        `noted` is why the guard had something against it, or could not know.
        """
        place = (run, values["step"], call)
        step = {**values, CALL: call, **({NOTED: noted} if noted else {})}
        with self._lock:
            if place not in self._written and self._lines.append(step):
                self._note(place)

    def _note(self, place: Place) -> None:
        self._written[place] = None
        if len(self._written) > MOST_PLACES:
            del self._written[next(iter(self._written))]


def _written(path: Path) -> Iterator[Place]:
    """Yield what an earlier life has written, and take a last line off that was cut short."""
    if not path.exists():
        return
    try:
        with open_plain(path) as file:
            end = 0
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break
                end += len(line)
                yield _place(path, number, line)
        if end < path.stat().st_size:
            os.truncate(path, end)
    except OSError as error:
        raise RecordingError(f"cannot be read ({error.strerror or error})", file=path) from error


def _place(path: Path, number: int, line: bytes) -> Place:
    try:
        found = json.loads(line)
        return found["run"], found["step"], found.get(CALL, "")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordingError(
            "is no record of a guard", accepted="a new file, or one that a guard wrote",
            file=f"{path}:{number}",
        ) from error  # fmt: skip
