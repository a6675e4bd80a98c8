"""A small file that tells the next life of the bridge what it left in force in Apollo.

Apollo holds a STOP until another command comes. If the intervention ends while no bridge runs,
the next bridge has to know that it was a bridge who had asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forewarn.errors import RecordingError
from forewarn.files.journal import JournalFile

FORMAT = 1


class Memory:
    """Keeps the commands in force.

    Parameters
    ----------
    path : Path or None
        The file; None to keep nothing.

    Attributes
    ----------
    lost : str
        What a damaged file has lost; empty if none has.
    left : mapping
        What a former life left in force, by channel or service.

    Raises
    ------
    RecordingError
        If the file is something else than a journal of a bridge: it is not written over.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.lost = ""
        self.left: Mapping[str, Any] = {}
        self._failed = ""
        self._file = None if path is None else JournalFile(path, "apollo bridge", FORMAT)
        self._written: dict[str, Any] | None = None
        if self._file is not None:
            found, damage = self._file.read(lambda body: dict(body["in_force"]))
            self.left = found or {}
            if damage:
                self.lost = (
                    f"{damage}: a command of the former bridge may still be in force in Apollo. "
                    f"Look "
                    "at the vehicle, end the command, then configure the bridge again"
                )

    @property
    def problem(self) -> str:
        """What was lost, and why it cannot be written."""
        return "; ".join(remark for remark in (self.lost, self._failed) if remark)

    def write(self, in_force: Mapping[str, Any]) -> None:
        """Keep what is in force now; the file is replaced as a whole."""
        if self._file is None or in_force == self._written:
            return
        try:
            self._file.write({"in_force": dict(in_force)})
        except RecordingError as error:
            self._failed = str(error)
            return
        self._failed, self._written = "", dict(in_force)
