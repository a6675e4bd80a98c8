"""The section ``black_box``: what a node keeps in memory, and when it writes that to a file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from forewarn.config.actuators import Name
from forewarn.config.fields import MEGABYTE, Positive, Seconds, Section, Size, no_bool, size_text

Trigger = Literal["act", "violation", "anomaly"]
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
    trigger: Annotated[tuple[Trigger, ...], Field(min_length=1)] = ("act", "violation", "anomaly")
    folder: Annotated[str, Field(min_length=1)]
    keep: Annotated[int, BeforeValidator(no_bool), Field(ge=1, le=100_000)] = 20
    quota: Size = 10_000 * MEGABYTE
    memory: Size = 512 * MEGABYTE
    longest: Positive = 120.0

    @property
    def bound(self) -> str:
        """Return in words how much memory and disk it takes at most."""
        return (
            f"at most {size_text(self.memory)} of messages in memory, for {self.before:g} s before "
            f"a trigger as long as they come at no more than {size_text(self.rate)}/s, and "
            f"{size_text(self.quota)} in {self.keep} files on disk"
        )

    @property
    def ring(self) -> int:
        """Bytes that are kept in case something happens."""
        return self.memory // 3

    @property
    def rate(self) -> float:
        """Bytes a second up to which the ring reaches back as far as it should."""
        return self.ring / max(self.before, 1.0)
