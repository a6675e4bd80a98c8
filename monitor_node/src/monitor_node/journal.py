"""A small file that survives a crash: pending obligations, and what actuators left in force.

It is replaced as a whole, so that a reader finds the old or the new one. It is not forced to the
disk at every tick, which could take longer than the tick: it survives the death of the process, and
after a loss of power its checksum tells whether it can be trusted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.errors import InputError
from forewarn.outputfile import write_output
from monitor_node.status import Severity, Status

FORMAT = 1
LARGEST = 1_000_000


class Entry(NamedTuple):
    """What a former life of the node left behind."""

    memory: Mapping[str, Any]
    owing: tuple[str, ...]


class Journal:
    """Reads what was left behind, and keeps the present.

    Parameters
    ----------
    path : Path
        The file; its folder must exist.
    max_age : float
        Seconds after which obligations and alerts count no more.
    """

    def __init__(self, path: Path, max_age: float) -> None:
        self.path = path
        self.max_age = max_age
        self.problem = ""
        self.recalled = "nothing"
        self._written: tuple[Any, ...] | None = None

    def read(self) -> Entry | None:
        """Return what was left behind; None if nothing was, or nothing that can be trusted."""
        try:
            with self.path.open("rb") as file:
                text = file.read(LARGEST + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror}"
            return None
        try:
            return _parsed(text)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            self.problem = f"{self.path} is damaged and was not used: {error}"
            return None

    def write(self, memory: Mapping[str, Any], owing: Sequence[str]) -> None:
        """Keep the present, unless nothing has changed but the tick of an idle monitor."""
        tick = memory["tick"] if memory["pending"] else None
        content = (tick, {**memory, "tick": None}, tuple(owing))
        if content == self._written:
            return
        body = {"format": FORMAT, "memory": memory, "owing": list(owing)}
        try:
            write_output(self.path, json.dumps({"sum": _sum(body), "body": body}))
        except InputError as error:
            self.problem = str(error)
            return
        self.problem = ""
        self._written = content

    def status(self) -> Status:
        """Report."""
        values = {"file": self.path, "recalled": self.recalled}
        if self.problem:
            return Status("journal", Severity.ERROR, self.problem, values)
        return Status("journal", Severity.OK, f"recalled: {self.recalled}", values)


def _parsed(text: bytes) -> Entry:
    if len(text) > LARGEST:
        raise ValueError(f"larger than {LARGEST} bytes")
    found = json.loads(text)
    body = found["body"]
    if found["sum"] != _sum(body):
        raise ValueError("its checksum is wrong")
    if body["format"] != FORMAT:
        raise ValueError(f"format {body['format']}, not {FORMAT}")
    return Entry(body["memory"], tuple(map(str, body["owing"])))


def _sum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
