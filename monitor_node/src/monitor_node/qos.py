"""Which quality of service to ask for, given what publishers offer, or offered when recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from forewarn.recordings.interface import Recording

AUTO = "auto"
RELIABILITY = {"reliable": True, "best_effort": False}
DURABILITY = {"transient_local": True, "volatile": False}


RECORDED_BEST_EFFORT = (2, "2", "best_effort")
RECORDED_LATCHED = (1, "1", "transient_local")


class Quality(NamedTuple):
    """The two policies that decide whether publisher and subscription match."""

    reliable: bool = True  # Lost messages are sent again
    latched: bool = False  # Transient local: a late subscriber is sent the last messages

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


def twins(node: Any) -> int:
    """Return how many other nodes have the full name of `node`."""
    own = (node.get_name(), node.get_namespace())
    names: list[tuple[str, str]] = node.get_node_names_and_namespaces()
    return max(0, names.count(own) - 1)


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


def recorded_qualities(recording: Recording) -> dict[str, Quality]:
    """Return what publishers offered on each topic; topics of which nothing is known are absent.

    rosbag2 keeps that in ``metadata.yaml`` and, since Iron, in a table inside of MCAP files.
    """
    found: dict[str, Quality] = {}
    for text in _documents(recording):
        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError:
            continue  # the reader of recordings has complained about it already
        for name, profiles in _profiles(document):
            found.setdefault(name, follow(map(_quality, profiles)))
    return found


def _documents(recording: Recording) -> Iterator[str]:
    file = Path(recording.path) / "metadata.yaml"
    if file.is_file():
        yield file.read_text(encoding="utf-8", errors="replace")
    table = recording.metadata().get("rosbag2", {})
    if "serialized_metadata" in table:
        yield table["serialized_metadata"]


def _profiles(document: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    if not isinstance(document, dict):
        return
    information = document.get("rosbag2_bagfile_information", document)
    for entry in information.get("topics_with_message_count") or ():
        topic = entry.get("topic_metadata", {})
        profiles = topic.get("offered_qos_profiles")
        if isinstance(profiles, str):  # up to Iron a YAML text within the YAML
            profiles = yaml.safe_load(profiles)
        if profiles:
            yield topic["name"], profiles


def _quality(recorded: dict[str, Any]) -> Quality:
    return Quality(
        recorded.get("reliability") not in RECORDED_BEST_EFFORT,
        recorded.get("durability") in RECORDED_LATCHED,
    )
