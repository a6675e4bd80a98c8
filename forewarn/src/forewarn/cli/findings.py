"""What `validate` finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from forewarn.config.file import MonitorSpec
from forewarn.errors import ConfigErrors, InputError


class Finding(NamedTuple):
    """One thing that is wrong, or may be."""

    severity: str
    text: str


def error_findings(error: InputError) -> Iterator[Finding]:
    """Yield an error for each of what an exception stands for."""
    for problem in error.errors if isinstance(error, ConfigErrors) else [error]:
        yield Finding("error", str(problem))


def warning(spec: MonitorSpec, key: str, problem: str, accepted: str = "") -> Finding:
    """Return a warning about a key of a monitor file."""
    error = InputError(problem, file=spec.file, key=key, accepted=accepted)
    return Finding("warning", str(error))
