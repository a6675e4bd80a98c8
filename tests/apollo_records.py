"""Records of Apollo, built from the bridge's own layouts."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from apollo_bridge.layouts import own_class, own_pool

CHASSIS, POSE = "/apollo/canbus/chassis", "/apollo/localization/pose"
SECTION = struct.Struct("<i4xq")


class Written(NamedTuple):
    """A message to be put into a record."""

    time_ns: int
    channel: str
    message: Any


def proto_desc(name: str) -> bytes:
    """Return the descriptors of a message as Cyber RT puts them into records and topology."""
    files = own_pool().files

    def node(file: str) -> Any:
        result = own_class("apollo.cyber.proto.ProtoDesc")(desc=files[file].SerializeToString())
        result.dependencies.extend(node(dependency) for dependency in files[file].dependency)
        return result

    descriptor = own_pool().descriptor(name)
    return bytes(node(descriptor.file.name).SerializeToString())


def section(kind: int, body: bytes, pad: int = 0) -> bytes:
    """Return a section of a record."""
    return SECTION.pack(kind, len(body)) + body.ljust(pad, b"\0")


def record_bytes(
    chunks: Sequence[Sequence[Written]],
    *,
    closed: bool = True,
    descriptors: dict[str, bytes] | None = None,
) -> bytes:
    """Return a record with these chunks, channels declared before their first chunk.

    An unclosed one is what a killed recorder leaves: a header without totals and no index.
    """
    kinds = {
        name: own_class(f"apollo.cyber.proto.{name}")
        for name in ("Header", "Channel", "ChunkHeader", "ChunkBody", "SingleMessage", "Index")
    }
    body, counts, index = b"", {}, kinds["Index"]()
    for chunk in chunks:
        for item in chunk:
            if item.channel not in counts:
                name = item.message.DESCRIPTOR.full_name
                desc = (descriptors or {}).get(item.channel, None)
                channel = kinds["Channel"](
                    name=item.channel,
                    message_type=name,
                    proto_desc=proto_desc(name) if desc is None else desc,
                )
                entry = index.indexes.add(type=4, position=2064 + len(body))
                entry.channel_cache.name, entry.channel_cache.message_type = item.channel, name
                entry.channel_cache.proto_desc = channel.proto_desc
                counts[item.channel] = entry.channel_cache
                body += section(4, channel.SerializeToString())
            counts[item.channel].message_number += 1
        times = [item.time_ns for item in chunk]
        head = {"begin_time": min(times), "end_time": max(times), "message_number": len(chunk)}
        messages = [
            kinds["SingleMessage"](
                channel_name=item.channel,
                time=item.time_ns,
                content=item.message.SerializeToString(),
            )
            for item in chunk
        ]
        index.indexes.add(type=1, position=2064 + len(body), chunk_header_cache=head)
        body += section(1, kinds["ChunkHeader"](**head).SerializeToString())
        entry = index.indexes.add(type=2, position=2064 + len(body))
        entry.chunk_body_cache.message_number = len(chunk)
        body += section(2, kinds["ChunkBody"](messages=messages).SerializeToString())
    header = kinds["Header"](major_version=1, minor_version=0, compress=0)
    if closed:
        header.index_position = 2064 + len(body)
        header.is_complete = True
        header.chunk_number, header.channel_number = len(chunks), len(counts)
        header.message_number = sum(count.message_number for count in counts.values())
        body += section(3, index.SerializeToString())
        header.size = 2064 + len(body)
    return section(0, header.SerializeToString(), 2048) + body


def chassis(speed: float, **fields: Any) -> Any:
    """Return a Chassis message."""
    return own_class("apollo.canbus.Chassis")(speed_mps=speed, **fields)


def drive(count: int = 40, start_ns: int = 1_600_000_000_000_000_000) -> list[Written]:
    """Return chassis messages at 100 Hz whose speed rises by 0.5 m/s each."""
    return [
        Written(start_ns + number * 10_000_000, CHASSIS, chassis(0.5 * number))
        for number in range(count)
    ]


def sawtooth(seconds: int = 60, start_ns: int = 1_600_000_000_000_000_000) -> list[Written]:
    """Return chassis messages at 100 Hz: a car that accelerates from 0 to 6 m/s within 6 s."""
    return [
        Written(start_ns + k * 10_000_000, CHASSIS, chassis(k % 600 / 100, driving_mode=1))
        for k in range(seconds * 100)
    ]
