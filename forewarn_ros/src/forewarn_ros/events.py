"""Events of publishers and subscriptions, and what the graph of nodes tells in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSCompatibility, QoSProfile, qos_check_compatible
from rclpy.subscription import Subscription

try:
    from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import PublisherEventCallbacks, SubscriptionEventCallbacks

__all__ = [
    "SENDING_NONE",
    "TAKING_NONE",
    "SubscriptionEventCallbacks",
    "owner",
    "qos_mismatches",
    "reaches",
]

SENDING_NONE = PublisherEventCallbacks(use_default_callbacks=False)
TAKING_NONE = SubscriptionEventCallbacks(use_default_callbacks=False)
"""Not even rclpy's own, which log that a quality of service does not fit."""


def owner(info: Any) -> str:
    """Return the full name of the node that an endpoint belongs to."""
    return f"{info.node_namespace.rstrip('/')}/{info.node_name}"


def qos_mismatches(
    node: Node, publishers: Iterable[Publisher] = (), subscriptions: Iterable[Subscription] = ()
) -> Iterator[str]:
    """Yield which other nodes exchange no messages with a node for their quality of service."""
    senders, takers = node.get_publishers_info_by_topic, node.get_subscriptions_info_by_topic
    # The graph has the quality in force, of own topics too; their profiles may say "default".
    ends = [
        *(
            (topic, info, own.qos_profile, info.qos_profile)
            for topic in dict.fromkeys(one.topic_name for one in publishers)
            for own in _own(node, senders(topic))
            for info in takers(topic)
        ),
        *(
            (topic, info, info.qos_profile, own.qos_profile)
            for topic in dict.fromkeys(one.topic_name for one in subscriptions)
            for own in _own(node, takers(topic))
            for info in senders(topic)
        ),
    ]
    for topic, info, offered, asked in ends:
        if not reaches(offered, asked):
            _, why = qos_check_compatible(offered, asked)
            yield f"no messages on {topic} between {owner(info)} and {node.get_name()}: {why}"


def reaches(offered: QoSProfile, asked: QoSProfile) -> bool:
    """Tell whether a subscription is sent what a publisher publishes."""
    return qos_check_compatible(offered, asked)[0] != QoSCompatibility.ERROR


def _own(node: Node, infos: Iterable[Any]) -> list[Any]:
    """Return the first endpoint that belongs to a node, if there is one."""
    name = node.get_fully_qualified_name()
    return [info for info in infos if owner(info) == name][:1]
