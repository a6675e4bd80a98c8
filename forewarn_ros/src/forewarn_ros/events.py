"""Events of publishers and subscriptions: where rclpy has them, and topics without any."""

from __future__ import annotations

try:
    from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import PublisherEventCallbacks, SubscriptionEventCallbacks

__all__ = ["SENDING_NONE", "TAKING_NONE", "SubscriptionEventCallbacks"]

SENDING_NONE = PublisherEventCallbacks(use_default_callbacks=False)
TAKING_NONE = SubscriptionEventCallbacks(use_default_callbacks=False)
"""Not even rclpy's own, which log that a quality of service does not fit."""
