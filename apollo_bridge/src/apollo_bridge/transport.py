"""What the bridge wants of a connection to Apollo, whatever carries it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from forewarn.errors import ForewarnError

AT_ONCE = 1 << 16
"""Bytes to ask a socket for. For twice as many the system maps memory each time, which takes
longer than all the rest of a small message."""


class TransportError(ForewarnError):
    """No connection to Apollo."""


class Arrival(NamedTuple):
    """A message on a channel, and when it arrived: on the steady clock, which is never set."""

    channel: str
    time_ns: int
    data: bytes


class Offer(NamedTuple):
    """A publisher was found on a channel: the type, and its descriptors (a ProtoDesc)."""

    channel: str
    message: str
    descriptors: bytes


class Topology(NamedTuple):
    """The types that are published on each channel, as far as can be seen."""

    channels: Mapping[str, Sequence[str]]


class Lost(NamedTuple):
    """The connection broke, or a part of it; the transport connects again by itself.

    An empty reason says that what was lost beside the connection itself is there again.
    """

    reason: str


class Connected(NamedTuple):
    """The connection stands: from now on messages may arrive."""


class ServiceResult(NamedTuple):
    """What became of the last call of a service; no problem means that it was answered."""

    service: str
    problem: str


Event = Arrival | Offer | Topology | Lost | Connected | ServiceResult


class Channels(NamedTuple):
    """What is wanted: message types of channels to read and to write, and of services to call."""

    readers: Mapping[str, str]
    writers: Mapping[str, str]
    services: Mapping[str, str] = {}


class Transport(Protocol):
    """A connection to Apollo."""

    name: str

    def open(self, channels: Channels) -> None:
        """Begin to connect; raises TransportError if that can never succeed."""

    def receive(self, timeout: float) -> list[Event]:
        """Wait up to `timeout` seconds and return what has happened, in order.

        Called by one thread only.
        """

    def write(self, channel: str, data: bytes) -> bool:
        """Write to a channel, or call a service, from any thread; False without a connection."""

    def close(self) -> None:
        """End the connection; `receive` returns at once from then on."""
