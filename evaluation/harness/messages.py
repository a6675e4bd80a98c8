"""ROS 2 messages from plain values, and bags of them: needs rosbags and nothing of forewarn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rosbags.interfaces import (
    Nodetype,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_HUMBLE)
EPOCH_NS = 1_700_000_000_000_000_000
"""When every simulation begins: its messages are the same whenever it is made."""

FOREVER = QosTime(0, 0)
RELIABLE = Qos(
    *(QosHistory.KEEP_LAST, 10, QosReliability.RELIABLE, QosDurability.VOLATILE, FOREVER, FOREVER),
    *(QosLiveliness.AUTOMATIC, FOREVER),
    avoid_ros_namespace_conventions=False,
)


class Topic(NamedTuple):
    """A topic and its type."""

    name: str
    type: str


class Message(NamedTuple):
    """A message, and when it arrives in nanoseconds."""

    time_ns: int
    topic: Topic
    fields: Any

    @property
    def data(self) -> bytes:
        """The message in CDR."""
        return bytes(STORE.serialize_cdr(self.fields, self.topic.type))


def message(kind: str, fields: Mapping[str, Any]) -> Any:
    """Return a message: dicts stand for nested ones; what is left out is zero or empty."""
    make, blank, nested = _plan(kind)
    unknown = fields.keys() - blank.keys()
    if unknown:
        raise ValueError(f"{kind} has no field {', '.join(sorted(unknown))}")
    values = {**blank, **fields}
    for name, (inner, many) in nested.items():
        if name in fields:
            given = fields[name]
            values[name] = [message(inner, v) for v in given] if many else message(inner, given)
    return make(**values)


class _Plan(NamedTuple):
    """How messages of a type are made: its class, what is left out, and the types of fields."""

    make: Any
    blank: dict[str, Any]
    nested: dict[str, tuple[str, bool]]  # whether there are many


@cache
def _plan(kind: str) -> _Plan:
    nested = {}
    for name, (how, what) in STORE.fielddefs[kind][1]:
        if how is Nodetype.NAME:
            nested[name] = str(what), False
        elif how is not Nodetype.BASE and what[0][0] is Nodetype.NAME:
            nested[name] = str(what[0][1]), True
    return _Plan(STORE.types[kind], _blank(kind), nested)


@cache
def _blank(kind: str) -> dict[str, Any]:
    return {name: _nothing(declared) for name, declared in STORE.fielddefs[kind][1]}


def _nothing(declared: tuple[Nodetype, Any]) -> Any:
    how, what = declared
    if how is Nodetype.NAME:
        return message(what, {})
    if how is Nodetype.BASE:
        return "" if what[0] == "string" else np.dtype(what[0]).type(0).item()
    (inner, name), size = what
    numbers = inner is Nodetype.BASE and name[0] != "string"
    if numbers:
        return np.zeros(size if how is Nodetype.ARRAY else 0, dtype=name[0])
    return [_nothing((inner, name))] * size if how is Nodetype.ARRAY else []


def stamp(time_ns: int) -> dict[str, int]:
    """Return a time or duration."""
    return {"sec": time_ns // 10**9, "nanosec": time_ns % 10**9}


def header(time_ns: int, frame: str) -> dict[str, Any]:
    """Return a header."""
    return {"stamp": stamp(time_ns), "frame_id": frame}


def write_bag(path: Path, topics: Sequence[Topic], messages: Iterable[Message]) -> int:
    """Write a rosbag2 folder (MCAP, zstd), which must not exist; return the number of messages."""
    writer = Writer(path, version=8, storage_plugin=StoragePlugin.MCAP)
    writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    count = 0
    with writer:
        known = {
            topic.name: writer.add_connection(
                topic.name, topic.type, typestore=STORE, offered_qos_profiles=[RELIABLE]
            )
            for topic in topics
        }
        for count, item in enumerate(messages, start=1):  # noqa: B007
            writer.write(known[item.topic.name], item.time_ns, item.data)
    return count
