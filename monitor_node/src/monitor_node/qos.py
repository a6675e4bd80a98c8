"""Which quality of service to ask for, given what the publishers offer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

AUTO = "auto"
RELIABILITY = {"reliable": True, "best_effort": False}
DURABILITY = {"transient_local": True, "volatile": False}


class Quality(NamedTuple):
    """The two policies that decide whether publisher and subscription match.

    Attributes
    ----------
    reliable : bool
        Lost messages are sent again.
    latched : bool
        Transient local: a late subscriber is sent the last messages.
    """

    reliable: bool = True
    latched: bool = False

    def __str__(self) -> str:
        """Return the policies in ROS's words."""
        return (
            f"{'reliable' if self.reliable else 'best effort'}, "
            f"{'transient local' if self.latched else 'volatile'}"
        )


def offered(profile: QoSProfile) -> Quality:
    """Return what a publisher offers."""
    return Quality(
        profile.reliability != ReliabilityPolicy.BEST_EFFORT,
        profile.durability == DurabilityPolicy.TRANSIENT_LOCAL,
    )


def follow(offers: Iterable[Quality]) -> Quality:
    """Return the most that every publisher can give; reliable and volatile while there is none."""
    offers = list(offers)
    if not offers:
        return Quality()
    return Quality(all(offer.reliable for offer in offers), all(offer.latched for offer in offers))


def missing(offer: Quality, request: Quality) -> str:
    """Return which policies of a request an offer does not meet; empty if they match."""
    parts = []
    if request.reliable and not offer.reliable:
        parts.append("reliability")
    if request.latched and not offer.latched:
        parts.append("durability")
    return " and ".join(parts)


def profile(quality: Quality, depth: int) -> QoSProfile:
    """Return the profile of a subscription or publisher that keeps `depth` messages."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=(
            ReliabilityPolicy.RELIABLE if quality.reliable else ReliabilityPolicy.BEST_EFFORT
        ),
        durability=(
            DurabilityPolicy.TRANSIENT_LOCAL if quality.latched else DurabilityPolicy.VOLATILE
        ),
    )
