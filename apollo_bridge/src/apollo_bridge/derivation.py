"""From messages on channels to the numbers that the monitor node wants by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from apollo_bridge.arrivals import UNSTAMPED, Sorter, stamp_reader
from apollo_bridge.layouts import own_pool
from apollo_bridge.messages import Pool, SchemaError
from apollo_bridge.records import pool_of
from apollo_bridge.transport import Arrival, Offer
from forewarn.config.file import MonitorSpec
from forewarn.errors import InputError
from forewarn.messages.foreign import ForeignType
from forewarn.monitoring.bridging import divide, timeout_of
from forewarn.signals.feed import Feed
from forewarn.states.inputs import open_feed
from forewarn.states.predicates.compile import build_abstraction

FINE_RATE = 1000.0
NANOSECONDS = 1_000_000_000


class SentSignal(NamedTuple):
    """A signal for the node; `stamp_ns` is such that it expires when its first input does."""

    name: str
    value: float
    stamp_ns: int


class Derivation:
    """Computes what a bridge sends for one monitor file.

    Values are computed by the same code as when learning from records, on a grid of 1 ms.
    """

    def __init__(self, spec: MonitorSpec) -> None:
        self.bridging = divide(spec)
        # Where the clock is steps nothing is sent, as `divide` sees to.
        self.rate = FINE_RATE if spec.rate == "steps" else spec.rate
        self.spec = spec.model_copy(update={"rate": FINE_RATE, "time": "arrival", "settle": 0.0})
        self._abstraction = build_abstraction(self.spec)
        self.channels = {
            signal.channel: signal.message_type
            for signal in spec.signals.values()
            if signal.channel is not None
        }
        self.problems: dict[str, str] = {}
        self.failures: dict[str, str] = {}
        self._unread: dict[str, int] = {}
        self._types: dict[str, ForeignType] = {}
        self._offered: dict[str, bytes] = {}
        self.sorters: dict[str, Sorter] = {}
        for channel, message in self.channels.items():
            self.sorters[channel] = Sorter(lambda data: UNSTAMPED)
            self._use_own_layout(channel, message)
        self._arrived: dict[str, int] = {}
        self._feed = self._open()

    def _use_own_layout(self, channel: str, message: str) -> None:
        try:
            self._set_type(channel, message, own_pool())
        except SchemaError:
            self.problems[channel] = f"the layout of {message} is not known before it is published"

    def _set_type(self, channel: str, message: str, pool: Pool) -> None:
        self._types[channel] = pool.message_type(message)
        sorter = Sorter(stamp_reader(pool, message))
        sorter.traffic = self.sorters[channel].traffic
        self.sorters[channel] = sorter

    def _open(self) -> Feed:
        """Open a feed for the channels whose layout fits their expressions."""
        fitting: dict[str, ForeignType] = {}
        for channel, mtype in self._types.items():
            try:
                open_feed(self.spec, self._abstraction, {channel: mtype})
            except InputError as error:
                self.problems[channel] = str(error)
            else:
                fitting[channel] = mtype
        return open_feed(self.spec, self._abstraction, fitting)

    def offer(self, offer: Offer) -> None:
        """Use the layout of the publisher that was found on a channel."""
        wanted = self.channels.get(offer.channel)
        if wanted is None or self._offered.get(offer.channel) == offer.descriptors:
            return
        if offer.message != wanted:
            self.problems[offer.channel] = (
                f"it carries {offer.message}, the monitor file says {wanted}"
            )
            return
        self._offered[offer.channel] = offer.descriptors
        self.problems.pop(offer.channel, None)
        try:
            self._set_type(offer.channel, wanted, pool_of(offer.descriptors))
        except SchemaError as error:
            self.problems[offer.channel] = str(error)
            self._use_own_layout(offer.channel, wanted)
        self._feed = self._open()

    def accept(self, arrivals: Iterable[Arrival]) -> bool:
        """Take messages; tell whether any was new."""
        by_channel: dict[str, list[Arrival]] = {}
        for arrival in arrivals:
            by_channel.setdefault(arrival.channel, []).append(arrival)
        fresh = False
        for channel, batch in by_channel.items():
            if channel not in self.sorters:
                continue
            for message in self.sorters[channel].take(batch):
                self._feed.accept(channel, message.time_ns, message.data)
                self._arrived[channel] = max(self._arrived.get(channel, 0), message.time_ns)
                fresh = True
        return fresh

    def evaluate(self, now_ns: int) -> list[SentSignal]:
        """Return the signals for the node as they are at `now_ns`.

        A signal with an input that never came is left out, so that the node sees its default; one
        that has no value otherwise is NaN.
        """
        tick = self._feed.clock.tick_at_or_after(now_ns)
        snapshot = self._feed.snapshot(tick)
        values, failed, _ = self._abstraction.complete(snapshot.values)
        for failure in snapshot.failures:
            self.failures[failure.where] = failure.reason
            self._unread[failure.where] = self._arrived.get(failure.where, 0)
        self.failures.update(failed)
        named = dict(zip(self._abstraction.signals, values, strict=True))
        sent = []
        for name, sources in self.bridging.sources.items():
            stamp = self._expiry(sources, now_ns)
            if stamp is not None:
                expires_in = self.bridging.sent[name]
                own = now_ns if math.isinf(expires_in) else stamp - round(expires_in * NANOSECONDS)
                sent.append(SentSignal(name, self._number(name, named[name]), min(own, now_ns)))
        return sent

    def _expiry(self, sources: Iterable[str], now_ns: int) -> int | None:
        """Return when the first of some sources is stale; None if a needed one never came."""
        soonest = (1 << 62) + now_ns
        for name in sources:
            signal = self.spec.signals[name]
            arrived = self._arrived.get(signal.channel or "")
            if arrived is None:
                if signal.default is None or len(list(sources)) == 1:
                    return None
                continue
            timeout = timeout_of(signal)
            if not math.isinf(timeout):
                soonest = min(soonest, arrived + round(timeout * NANOSECONDS))
        return soonest

    def _number(self, name: str, value: Any) -> float:
        if value is None:
            return math.nan
        if isinstance(value, (bool, int, float)):
            return float(value)
        self.failures[name] = "it is no number, and nothing else can be sent to the node"
        return math.nan

    def unread(self, channel: str) -> str:
        """Return why the newest message on a channel could not be decoded; empty if it could."""
        arrived = self._arrived.get(channel)
        return self.failures[channel] if arrived and self._unread.get(channel) == arrived else ""

    @property
    def traffic(self) -> Mapping[str, Any]:
        """What came on each channel."""
        return {channel: sorter.traffic for channel, sorter in self.sorters.items()}
