"""Events of publishers and subscriptions, and what the graph of nodes tells in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSCompatibility, qos_check_compatible
from rclpy.subscription import Subscription

try:
    from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import PublisherEventCallbacks, SubscriptionEventCallbacks

__all__ = ["SENDING_NONE", "TAKING_NONE", "SubscriptionEventCallbacks", "apart", "owner"]

SENDING_NONE = PublisherEventCallbacks(use_default_callbacks=False)
TAKING_NONE = SubscriptionEventCallbacks(use_default_callbacks=False)
"""Not even rclpy's own, which log that a quality of service does not fit."""


def owner(info: Any) -> str:
    """Return the full name of the node that an endpoint belongs to."""
    return f"{info.node_namespace.rstrip('/')}/{info.node_name}"


def apart(
    node: Node,
    publishers: Iterable[Publisher] = (),
    subscriptions: Iterable[Subscription] = (),
) -> Iterator[str]:
    """Yield which other nodes exchange no messages with a node for their quality of service.

    Parameters
    ----------
    node : Node
        Sees the graph, and owns both.
    """
    ends = [
        *(
            (topic.topic_name, info, topic.qos_profile, info.qos_profile)
            for topic in publishers
            for info in node.get_subscriptions_info_by_topic(topic.topic_name)
        ),
        *(
            (topic.topic_name, info, info.qos_profile, topic.qos_profile)
            for topic in subscriptions
            for info in node.get_publishers_info_by_topic(topic.topic_name)
        ),
    ]
    for topic, info, offered, asked in ends:
        match, why = qos_check_compatible(offered, asked)
        if match == QoSCompatibility.ERROR:
            yield f"no messages on {topic} between {owner(info)} and {node.get_name()}: {why}"
