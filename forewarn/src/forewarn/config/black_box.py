"""The section ``black_box``: what a node keeps in memory, and when it writes that to a file."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from forewarn.config.actuators import Name
from forewarn.config.fields import Positive, Seconds, Section, no_bool

Trigger = Literal["act", "violation", "anomaly"]
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?B)", re.IGNORECASE)
MEGABYTE = 10**6


def _bytes(value: object) -> object:
    """Return the number of bytes that ``10 GB`` stands for."""
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is not None:
        return round(float(found[1]) * _UNITS[found[2].upper()])
    if isinstance(value, str):
        raise ValueError("a size is wanted, such as 500 MB or 10 GB")
    return no_bool(value)


#: Bytes; the file says ``10 GB``.
Size = Annotated[int, BeforeValidator(_bytes), Field(ge=MEGABYTE, le=10**15)]
Span = Annotated[Seconds, Field(le=3600)]


class BlackBoxSpec(Section):
    """What a node keeps in memory, and writes to a file when something happens.

    Attributes
    ----------
    folder : str
        Where files go; it is made if it does not exist; a relative path starts at this file.
    before, after : float
        Seconds that a file begins before its first trigger, and ends after its last one.
    topics : tuple of str
        Topics to keep beside those that the signals read.
    trigger : tuple of str
        What makes a file: ``act`` (an alert that asks for an intervention begins), ``violation``,
        ``anomaly``. The service ``~/save_incident`` always does.
    keep : int
        Finished files that are kept: the oldest go first.
    quota : int
        Bytes that all files may take together. A single file ends at half of it.
    memory : int
        Messages in memory at the most: a third for the ring, two thirds for what waits to be
        written.
    longest : float
        Seconds from its first trigger after which a file ends, and another goes on.
    """

    before: Span = 30.0
    after: Span = 10.0
    topics: tuple[Name, ...] = ()
    trigger: Annotated[tuple[Trigger, ...], Field(min_length=1)] = (
        "act",
        "violation",
        "anomaly",
    )
    folder: Annotated[str, Field(min_length=1)]
    keep: Annotated[int, BeforeValidator(no_bool), Field(ge=1, le=100_000)] = 20
    quota: Size = 10_000 * MEGABYTE
    memory: Size = 512 * MEGABYTE
    longest: Positive = 120.0

    @property
    def bound(self) -> str:
        """What it takes at the most, for people."""
        return (
            f"at most {said(self.memory)} of messages in memory, for {self.before:g} s before a "
            f"trigger as long as they come at no more than {said(self.rate)}/s, and "
            f"{said(self.quota)} in {self.keep} files on disk"
        )

    @property
    def ring(self) -> int:
        """Bytes that are kept in case something happens."""
        return self.memory // 3

    @property
    def rate(self) -> float:
        """Bytes a second up to which the ring reaches back as far as it should."""
        return self.ring / max(self.before, 1.0)


def said(size: float) -> str:
    """Return a number of bytes for people."""
    unit, number = next(((name, n) for name, n in reversed(_UNITS.items()) if size >= n), ("B", 1))
    return f"{size / number:.3g} {unit}"
