"""Samples of a recording, with signals that were supplied by name.

A node's ``~/input/signals`` and the bridge supply signals by name, as messages of the type
`EXTERNAL_TYPE`. In a bag or in the node's own record they are messages like others; here they
become what a line of a trace is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

from forewarn.errors import DecodeError
from forewarn.recordings.interface import Recording, Sample
from forewarn.signals.clock import Payload
from forewarn.signals.sources import EXTERNAL_TYPE, ExternalSignals

SUPPLIED = "/input/signals"
"""How the topics end on which signals come by name; on others of the type a node tells of them."""

RECORD_TABLE = "forewarn.record"
"""Table of named texts by which a bag is a node's own record."""


def samples_of(
    recording: Recording,
    topics: Collection[str],
    *,
    by_name: bool,
    on_reset: Callable[[], None] | None = None,
    properties: Collection[str] = (),
) -> Iterator[Sample]:
    """Return the samples of some topics, and those that supply signals by name.

    A message of theirs that cannot be decoded is left out with a warning of the recording.

    `recording`: a recording; one without topics is a trace and yields every line.
    `topics`: the topics that signals are read from.
    `by_name`: whether signals come by name at all.
    `on_reset`: called where a node's record says that the session started again, or that all
    `properties` were reset: what comes after does not follow from what came before.
    `properties`: names of all properties of the monitor file.
    """
    if not recording.topics:
        return recording.read()
    readers = {
        info.name: ExternalSignals(info.message_type)
        for info in recording.topics.values()
        if by_name
        and info.msgtype == EXTERNAL_TYPE
        and info.name.endswith(SUPPLIED)
        and info.message_type is not None
    }
    table = recording.metadata().get(RECORD_TABLE) or {}
    events = "" if on_reset is None else table.get("events", "")
    if not readers and events not in recording.topics:
        return recording.read(topics)
    wanted = {*topics, *readers, *({events} & set(recording.topics))}
    whole = partial(_begins_anew, properties=properties)
    return _converted(recording, wanted, readers, events, on_reset, whole)


def _converted(
    recording: Recording,
    wanted: Collection[str],
    readers: Mapping[str, ExternalSignals],
    events: str,
    on_reset: Callable[[], None] | None,
    begins_anew: Callable[[Payload], bool],
) -> Iterator[Sample]:
    for sample in recording.read(wanted):
        if sample.topic == events and on_reset is not None:
            if begins_anew(sample.data):
                on_reset()
            continue
        read = readers.get(sample.topic)
        if read is None:
            yield sample
            continue
        assert not isinstance(sample.data, Mapping)
        try:
            yield sample._replace(data=read(sample.data))
        except DecodeError as error:
            text = f"{sample.topic}: a message is left out: {error}"
            if text not in recording.warnings:
                recording.warnings.append(text)


def _begins_anew(data: Payload, properties: Collection[str]) -> bool:
    """Tell whether an event of a record is a start, or a reset of all properties."""
    assert not isinstance(data, Mapping)
    length = int.from_bytes(data[4:8], "little")
    try:
        event = json.loads(bytes(data[8 : 8 + length - 1]))
    except ValueError:
        return False
    kind = event.get("event") if isinstance(event, dict) else None
    return kind == "start" or (kind == "reset" and {*properties} <= {*event["properties"]})
