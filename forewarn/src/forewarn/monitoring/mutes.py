"""Properties whose alerts are silenced: until when, by whom and why."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple


class Muted(NamedTuple):
    """A property whose alerts are silenced: for how many seconds more, by whom and why."""

    name: str
    left: float
    reason: str


class Mutes(NamedTuple):
    """All mutes of a session, by the name of the property; times are those of `Clock.wall`.

    Attributes
    ----------
    ends : mapping of str to float
        Where each mute ends; infinite for those without an end.
    waiting : mapping of str to int
        Lengths of mutes that begin with the next first tick.
    heard : mapping of str to int
        Tick at which a property was heard again after its last mute.
    why : mapping of str to str
        Who muted a property, and why; may outlast the mute.
    """

    ends: Mapping[str, float]
    waiting: Mapping[str, int]
    heard: Mapping[str, int]
    why: Mapping[str, str]

    @property
    def names(self) -> Collection[str]:
        """Properties that are silenced."""
        return self.ends.keys() | self.waiting.keys()

    def reasons(self) -> dict[str, str]:
        """Return who muted each property that is silenced, and why."""
        return {name: self.why.get(name, "") for name in self.names}

    def left(self, now: int) -> dict[str, float]:
        """Return how long each mute lasts after the moment `now`."""
        return {name: end - 1 - now for name, end in self.ends.items()} | {**self.waiting}

    def at(self, tick: int, now: int) -> Mutes:
        """Return what is silenced at a tick, which is at the moment `now`."""
        if not (self.ends or self.waiting):
            return self
        ends = {**self.ends, **{name: now + left for name, left in self.waiting.items()}}
        lasting = {name: end for name, end in ends.items() if now < end}
        over = dict.fromkeys(ends.keys() - lasting.keys(), tick)
        return Mutes(lasting, {}, {**self.heard, **over}, self.why)

    def restarted(self, now: int | None, shift: int = 0) -> Mutes:
        """Return what is silenced on a new clock, whose ticks are greater by `shift`.

        Each mute lasts for what was left of it at `now`.
        """
        endless = {name: end for name, end in self.ends.items() if math.isinf(end)}
        heard = {name: tick + shift for name, tick in self.heard.items()}
        if now is None:
            return Mutes(endless, self.waiting, heard, self.why)
        left = {name: int(end) - 1 - now for name, end in self.ends.items() if name not in endless}
        return Mutes(endless, left, heard, self.why)

    def with_mute(
        self, name: str, length: float, reason: str, now: int | None, tick: int | None
    ) -> Mutes:
        """Return the mutes with one more, or with one less if its length is 0.

        Parameters
        ----------
        length : float
            From `now` on, or from the next first tick if that is None.
        now, tick : int or None
            The last moment and tick.
        """
        ends = {other: end for other, end in self.ends.items() if other != name}
        waiting = {other: left for other, left in self.waiting.items() if other != name}
        heard = {**self.heard}
        if math.isinf(length):
            ends[name] = length
        elif length and now is None:
            waiting[name] = math.ceil(length - 1e-9)
        elif length and now is not None:
            ends[name] = now + math.ceil(length - 1e-9)
        elif name in self.names and tick is not None:
            heard[name] = tick + 1
        return Mutes(ends, waiting, heard, {**self.why, name: reason})
