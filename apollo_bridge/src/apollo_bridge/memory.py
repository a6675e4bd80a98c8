"""A small file that tells the next life of the bridge what it left in force in Apollo.

Apollo holds a STOP until another command comes. If the intervention ends while no bridge runs,
nobody else knows that it was the bridge who had asked for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forewarn.errors import InputError
from forewarn.outputfile import write_output

LARGEST = 100_000


class Memory:
    """Keeps the commands in force.

    Parameters
    ----------
    path : Path or None
        The file; None to keep nothing.

    Attributes
    ----------
    problem : str
        Why it cannot be read or written.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.problem = ""
        self._written: dict[str, Any] | None = None

    def read(self) -> Mapping[str, Any]:
        """Return what a former life left in force, by channel or service."""
        if self.path is None:
            return {}
        try:
            with self.path.open("rb") as file:
                found = json.loads(file.read(LARGEST))["in_force"]
            return dict(found)
        except FileNotFoundError:
            return {}
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror}"
        except (ValueError, KeyError, TypeError) as error:
            self.problem = f"{self.path} is damaged and was not used: {error}"
        return {}

    def write(self, in_force: Mapping[str, Any]) -> None:
        """Keep what is in force now; the file is replaced as a whole."""
        if self.path is None or in_force == self._written:
            return
        try:
            write_output(self.path, json.dumps({"in_force": dict(in_force)}))
        except InputError as error:
            self.problem = str(error)
            return
        self.problem, self._written = "", dict(in_force)
