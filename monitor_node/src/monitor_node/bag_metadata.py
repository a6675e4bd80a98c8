"""The quality of service with which the topics of a bag were offered when it was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from forewarn.recordings import Recording
from monitor_node.qos import Quality, follow

BEST_EFFORT = (2, "2", "best_effort")
TRANSIENT_LOCAL = (1, "1", "transient_local")


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


def _quality(profile: dict[str, Any]) -> Quality:
    return Quality(
        profile.get("reliability") not in BEST_EFFORT,
        profile.get("durability") in TRANSIENT_LOCAL,
    )
