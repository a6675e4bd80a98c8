"""The process that holds Cyber RT: a script of its own, started by `apollo_bridge.cyber`.

Cyber's blocking calls hold Python's global lock for seconds, and its wheel exists for Python 3.10
only, so that it gets its own process, and maybe its own interpreter. This file therefore imports
nothing but the standard library, protobuf and Cyber's Python package. Over a socket it takes
commands and gives back what arrives, in frames: length, kind, payload.

It runs in one of three modes: ``data`` reads and writes channels, ``scout`` asks again and again
who publishes what (a call that takes two seconds each time), and ``caller`` calls services (which
takes five seconds without an answer).
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

FRAME = struct.Struct("<IB")
ARRIVAL_HEAD = struct.Struct("<Hq")
WRITE_HEAD = struct.Struct("<H")
CONFIG, READY, ARRIVAL, WRITE, TOPOLOGY, OFFER, ANSWER = range(7)
PACKAGES = (
    ("pycyber.cyber", "pycyber.proto.role_attributes_pb2"),
    ("cyber.python.cyber_py3.cyber", "cyber.proto.role_attributes_pb2"),
)
SCOUT_PAUSE = 1.0


def frame(kind: int, payload: bytes) -> bytes:
    """Return a frame as it goes over the socket."""
    return FRAME.pack(len(payload), kind) + payload


class Frames:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Take bytes and yield kind and payload of each frame that is whole."""
        self._buffer += data
        at = 0
        while at + FRAME.size <= len(self._buffer):
            length, kind = FRAME.unpack_from(self._buffer, at)
            end = at + FRAME.size + length
            if end > len(self._buffer):
                break
            yield kind, bytes(self._buffer[at + FRAME.size : end])
            at = end
        del self._buffer[:at]


class Raw:
    """Serialized bytes in the place of a message: what Cyber's writers ask of one."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def SerializeToString(self) -> bytes:
        """Return the bytes."""
        return self._data


class Response:
    """An answer of a service, whatever is in it: what Cyber's clients ask of a message."""

    def ParseFromString(self, data: bytes) -> None:
        """Take note that there is an answer."""


class Link:
    """The socket to the bridge; when the bridge is gone, so is this process."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._frames = Frames()

    def send(self, kind: int, payload: bytes) -> None:
        """Send a frame; waits if the bridge does not keep up."""
        try:
            with self._lock:
                self._connection.sendall(frame(kind, payload))
        except OSError:
            leave()

    def receive(self) -> list[tuple[int, bytes]]:
        """Wait for frames."""
        try:
            data = self._connection.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            leave()
        return list(self._frames.feed(data))


def leave() -> None:
    """End at once: Cyber's own shutdown takes five to seven seconds."""
    os._exit(0)


def load_cyber() -> tuple[Any, Any]:
    """Import Cyber's Python package, from the wheel or from Apollo's container."""
    problems = []
    for cyber, roles in PACKAGES:
        try:
            return importlib.import_module(cyber), importlib.import_module(roles)
        except ImportError as error:
            problems.append(f"{cyber}: {error}")
    raise ImportError("; ".join(problems))


def message_class(files: list[str], name: str) -> Any:
    """Build the class of a message from its files, dependencies first."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    for text in files:
        pool.Add(descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text)))
    descriptor = pool.FindMessageTypeByName(name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


def serve_data(link: Link, config: dict[str, Any], cyber: Any) -> None:
    """Read and write channels until the bridge goes away."""
    node = cyber.Node(config["node"])

    def arrived(data: bytes, index: int) -> None:
        link.send(ARRIVAL, ARRIVAL_HEAD.pack(index, time.monotonic_ns()) + data)

    for index, channel in enumerate(config["readers"]):
        node.create_rawdata_reader(channel, arrived, index)
    writers = [
        node.create_writer(writer["channel"], message_class(writer["files"], writer["message"]), 10)
        for writer in config["writers"]
    ]
    link.send(READY, b"{}")
    while True:
        for kind, payload in link.receive():
            if kind == WRITE:
                (index,) = WRITE_HEAD.unpack_from(payload)
                writers[index].write(Raw(payload[WRITE_HEAD.size :]))


def serve_scout(link: Link, config: dict[str, Any], cyber: Any, roles: Any) -> None:
    """Tell again and again who publishes, and each new descriptor of a channel that is read."""
    announced: dict[str, bytes] = {}
    link.send(READY, b"{}")
    threading.Thread(target=_watch, args=(link,), daemon=True).start()
    while True:
        channels = cyber.ChannelUtils.get_channels_info(2)
        seen = {}
        for channel, writers in channels.items():
            found = [roles.RoleAttributes.FromString(writer) for writer in writers]
            types = {writer.message_type for writer in found}
            # Readers are listed too; those from Python and raw ones have types of this package.
            seen[channel] = sorted(t for t in types if not t.startswith("apollo.cyber.message."))
            for writer in found:
                if channel not in config["readers"] or not writer.proto_desc:
                    continue
                if announced.get(channel) != writer.proto_desc:
                    announced[channel] = writer.proto_desc
                    names = json.dumps([channel, writer.message_type]).encode()
                    link.send(OFFER, struct.pack("<H", len(names)) + names + writer.proto_desc)
        link.send(TOPOLOGY, json.dumps(seen).encode())
        time.sleep(SCOUT_PAUSE)


def serve_caller(link: Link, config: dict[str, Any], cyber: Any) -> None:
    """Call services until the bridge goes away; of calls that wait, the last one counts."""
    node = cyber.Node(f"{config['node']}_caller")
    clients = [
        node.create_client(
            service["channel"], message_class(service["files"], service["message"]), Response
        )
        for service in config["services"]
    ]
    link.send(READY, b"{}")
    while True:
        waiting = {}
        for kind, payload in link.receive():
            if kind == WRITE:
                (index,) = WRITE_HEAD.unpack_from(payload)
                waiting[index] = payload[WRITE_HEAD.size :]
        for index, data in waiting.items():
            answered = clients[index].send_request(Raw(data)) is not None
            link.send(ANSWER, WRITE_HEAD.pack(index) + bytes([answered]))


def _watch(link: Link) -> None:
    while True:
        link.receive()


def main(mode: str, descriptor: int) -> None:
    """Serve one bridge over the inherited socket `descriptor`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = Link(socket.socket(fileno=descriptor))
    config: dict[str, Any] | None = None
    while config is None:
        for kind, payload in link.receive():
            if kind == CONFIG:
                config = json.loads(payload)
    try:
        cyber, roles = load_cyber()
    except ImportError as error:
        link.send(READY, json.dumps({"error": str(error)}).encode())
        leave()
    cyber.init(f"{config['node']}_{mode}")
    # Cyber has put its own handlers in place; the bridge alone decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: leave())
    if mode == "data":
        serve_data(link, config, cyber)
    elif mode == "caller":
        serve_caller(link, config, cyber)
    else:
        serve_scout(link, config, cyber, roles)


if __name__ == "__main__":
    # The folder of this script would hide other packages behind the bridge's modules.
    sys.path.pop(0)
    main(sys.argv[1], int(sys.argv[2]))
