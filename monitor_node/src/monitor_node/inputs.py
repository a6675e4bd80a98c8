"""The topics that the monitor reads: raw bytes, taken when a tick is due.

Executors do not see these subscriptions. To wake Python for each message costs several times what
taking it costs (docs/design/node.md has the figures), and nothing is to be done with a message
before the next tick. The time at which the middleware received it is in the message info; a player
in lock-step tells the simulated one.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from forewarn_msgs.msg import Arrivals
from rclpy.node import Node
from rclpy.subscription import Subscription

from forewarn_ros.events import owner
from monitor_node.message_types import TypeNotInstalledError, message_class
from monitor_node.qos import Quality, follow, missing, offered, profile

ARRIVALS = "input/arrivals"
ARRIVALS_DEPTH = 1000
WHOLE_DEPTH = 1000
"""Messages that wait of a topic of which all count: with so many, some may have been dropped."""


class Taken(NamedTuple):
    """A message that was taken."""

    topic: str
    payload: bytes
    # received_ns, taken_ns: when the middleware had it and all that was sent before it, and when
    # all that waited had been taken, by the system's clock. The second is earlier only if that
    # clock was set back in between.
    received_ns: int
    taken_ns: int
    player_ns: int | None  # When it arrived in simulated time, by a player's report


class Publisher(NamedTuple):
    """A publisher on an input's topic, as the graph shows it."""

    node: str
    type: str
    quality: Quality
    type_hash: str


@dataclass
class Input:
    """One topic."""

    # topic, type: as in the monitor file; the name on the graph may be remapped. An empty type is
    # that of the first publisher that is found.
    topic: str
    type: str
    message_class: Any
    # Reliability and durability that a parameter prescribes, None where they follow
    fixed: tuple[bool | None, bool | None]
    quality: Quality = field(default_factory=Quality)
    subscription: Any = None
    received: int = 0
    newest_ns: int = 0  # When the newest of them was received, by the system's clock
    publishers: tuple[Publisher, ...] = ()
    type_hash: str = ""
    unusable: str = ""

    @property
    def name(self) -> str:
        """Name on the graph."""
        return str(self.subscription.topic_name) if self.subscription else self.topic

    def in_turn(self, received_ns: int, taken_ns: int) -> int:
        """Return when the next message could be taken, given when it was received.

        A lost message is sent again, and those that were sent after it wait for it. They have the
        earlier times of receipt, by which the old message would be the newest.
        """
        if self.newest_ns > taken_ns:  # the clock was set back
            self.newest_ns = 0
        if received_ns <= taken_ns:
            self.newest_ns = received_ns = max(self.newest_ns, received_ns)
        return received_ns

    def problems(self) -> Iterator[str]:
        """Yield why messages of publishers that are there do not arrive."""
        if self.unusable:
            yield self.unusable
            return
        for publisher in self.publishers:
            if publisher.type != self.type:
                expected = f"the monitor file says {self.type}"
                yield f"{publisher.node} publishes {publisher.type}, {expected}"
                continue
            policies = missing(publisher.quality, self.quality)
            if policies:
                yield (
                    f"incompatible QoS: {publisher.node} offers {publisher.quality}, "
                    f"{self.quality} is asked for ({policies} does not match)"
                )
            elif publisher.type_hash and self.type_hash and publisher.type_hash != self.type_hash:
                yield f"{publisher.node} has another definition of {self.type}"


class Inputs:
    """All topics of a monitor file.

    `topics`: message type of each topic; empty where the publishers say it.
    `whole`: topics of which every message counts. Where some may have been dropped, one that cannot
    be read stands in their place.
    `fixed`: gives the prescribed reliability and durability of a topic, None where it follows.
    """

    def __init__(
        self,
        node: Node,
        topics: Mapping[str, str],
        depth: int,
        fixed: Callable[[str], tuple[bool | None, bool | None]],
        *,
        player_times: bool = True,
        whole: Collection[str] = (),
    ) -> None:
        self._node = node
        self._depth = depth
        self._whole = frozenset(whole)
        self._player_times = player_times
        self.inputs = tuple(
            Input(topic, kind, message_class(kind, topic=topic) if kind else None, fixed(topic))
            for topic, kind in topics.items()
        )
        self._arrivals: Any = None

    def open(self) -> None:
        """Subscribe to all topics."""
        if self._player_times:
            self._arrivals = self._node.create_subscription(
                Arrivals, f"~/{ARRIVALS}", _never_called, profile(Quality(), ARRIVALS_DEPTH)
            )
        for topic_input in self.inputs:
            topic_input.publishers = self._publishers(topic_input)
            if self._known(topic_input):
                topic_input.quality = self._wanted(topic_input)
                self._subscribe(topic_input)

    def close(self) -> None:
        """Unsubscribe."""
        if self._arrivals is not None:
            self._node.destroy_subscription(self._arrivals)
            self._arrivals = None
        for topic_input in self.inputs:
            if topic_input.subscription is not None:
                self._node.destroy_subscription(topic_input.subscription)
                topic_input.subscription = None

    @property
    def subscriptions(self) -> frozenset[Subscription]:
        """The subscriptions that executors are not to see."""
        found = (self._arrivals, *(topic_input.subscription for topic_input in self.inputs))
        return frozenset(subscription for subscription in found if subscription is not None)

    def take(self, *, player_times: bool = False) -> list[Taken]:
        """Take all messages that wait; `player_times`: with the arrivals that a player reported.

        The last times of a topic are those of its last messages: where the
        middleware drops messages, it drops the oldest.
        """
        times = self._take_arrivals() if player_times else {}
        found = []
        for topic_input in self.inputs:
            if topic_input.subscription is None:
                continue
            messages = list(_take(topic_input.subscription, topic_input.message_class, raw=True))
            topic_input.received += len(messages)
            if topic_input.topic in self._whole and len(messages) >= self._depth_of(
                topic_input.topic
            ):
                messages[0] = b"", messages[0][1]
            known = times.get(topic_input.name, [])
            arrivals = ([None] * len(messages) + known)[len(known) :]
            found += [
                (topic_input, payload, info["received_timestamp"], player_ns)
                for (payload, info), player_ns in zip(messages, arrivals, strict=True)
            ]
        taken_ns = time.time_ns()
        return [
            Taken(source.topic, data, source.in_turn(received_ns, taken_ns), taken_ns, player_ns)
            for source, data, received_ns, player_ns in found
        ]

    def _take_arrivals(self) -> Mapping[str, list[int | None]]:
        """Return the arrivals that a player reported since the last time, by topic on the graph."""
        found: dict[str, list[int | None]] = defaultdict(list)
        for message, _ in _take(self._arrivals, Arrivals, raw=False):
            for name, time_ns in zip(message.topics, message.times_ns, strict=False):
                found[name].append(time_ns)
        return found

    def match(self) -> list[str]:
        """Follow what publishers offer by now; return what was changed, for the log."""
        changes = []
        for topic_input in self.inputs:
            topic_input.publishers = self._publishers(topic_input)
            if not self._known(topic_input):
                continue
            wanted = self._wanted(topic_input)
            if topic_input.subscription is None:
                changes.append(f"{topic_input.name}: {topic_input.type}, {wanted}")
                topic_input.quality = wanted
                self._subscribe(topic_input)
            elif wanted != topic_input.quality and any(
                p.type == topic_input.type for p in topic_input.publishers
            ):
                changes.append(
                    f"{topic_input.name}: asks for {wanted} now, as its publishers offer"
                )
                topic_input.quality = wanted
                self._subscribe(topic_input)
        return changes

    def _depth_of(self, topic: str) -> int:
        return max(self._depth, WHOLE_DEPTH) if topic in self._whole else self._depth

    def _known(self, topic_input: Input) -> bool:
        """Tell whether the type of a topic is known, and can be used here."""
        if not topic_input.type and topic_input.publishers:
            topic_input.type = topic_input.publishers[0].type
            try:
                topic_input.message_class = message_class(topic_input.type, topic=topic_input.topic)
            except TypeNotInstalledError as error:
                topic_input.unusable = str(error)
        return topic_input.message_class is not None

    def ask_again(self) -> None:
        """Subscribe again to latched topics, after everything was forgotten."""
        for topic_input in self.inputs:
            if topic_input.subscription is not None and topic_input.quality.latched:
                self._subscribe(topic_input)

    def _subscribe(self, topic_input: Input) -> None:
        before, topic_input.subscription = topic_input.subscription, None
        if before is not None:
            self._node.destroy_subscription(before)
        topic_input.subscription = self._node.create_subscription(
            topic_input.message_class,
            topic_input.topic,
            _never_called,
            profile(topic_input.quality, self._depth_of(topic_input.topic)),
            raw=True,
        )
        own = [
            info
            for info in self._node.get_subscriptions_info_by_topic(topic_input.name)
            if info.topic_type == topic_input.type
            and owner(info) == self._node.get_fully_qualified_name()
        ]
        topic_input.type_hash = _type_hash(own[0]) if own else ""

    def _publishers(self, topic_input: Input) -> tuple[Publisher, ...]:
        name = (
            topic_input.name
            if topic_input.subscription
            else self._node.resolve_topic_name(topic_input.topic)
        )
        return tuple(
            Publisher(owner(info), info.topic_type, offered(info.qos_profile), _type_hash(info))
            for info in self._node.get_publishers_info_by_topic(name)
        )

    def _wanted(self, topic_input: Input) -> Quality:
        follows = follow(p.quality for p in topic_input.publishers if p.type == topic_input.type)
        reliable, latched = topic_input.fixed
        return Quality(
            follows.reliable if reliable is None else reliable,
            follows.latched if latched is None else latched,
        )


def _take(subscription: Subscription, kind: Any, *, raw: bool) -> Iterator[tuple[Any, Any]]:
    """Take all messages that wait on one topic, each with its message info."""
    handle = subscription.handle
    with handle:
        while (taken := handle.take_message(kind, raw)) is not None:
            yield taken


def _type_hash(info: Any) -> str:
    """Return the hash of an endpoint's type; empty on Humble, and where the publisher has none."""
    found = getattr(info, "topic_type_hash", None)
    return "" if found is None or found.version < 1 else str(found)


def _never_called(payload: bytes) -> None:
    raise AssertionError(f"an executor took {len(payload)} bytes that were none of its business")
