"""The transport over Apollo's ``cyber_bridge``: a TCP client that needs no Cyber library.

The protocol (modules/contrib/cyber_bridge/client.cc, the same from Apollo 5 to 11): one byte of
operation, then fields, each a little-endian 32-bit length and that many bytes. It carries channels
only, and does not tell types or publishers; layouts come from the bridge's own, or from a record.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

from apollo_bridge.layouts import own_files
from apollo_bridge.transport import AT_ONCE, Arrival, Channels, Connected, Event, Lost

REGISTER_DESC, ADD_READER, ADD_WRITER, PUBLISH = 1, 2, 3, 4
LENGTH = struct.Struct("<I")
LONGEST_NAME, LARGEST_MESSAGE = 1 << 12, 1 << 28
RETRY_PAUSE = 1.0
CONNECT_LIMIT = 3.0
PORT = 9090
OPTIONS = (
    ((socket.IPPROTO_TCP, socket.TCP_NODELAY), 1),
    ((socket.SOL_SOCKET, socket.SO_KEEPALIVE), 1),
    ((socket.IPPROTO_TCP, socket.TCP_KEEPIDLE), 1),
    ((socket.IPPROTO_TCP, socket.TCP_KEEPINTVL), 1),
    ((socket.IPPROTO_TCP, socket.TCP_KEEPCNT), 1),
    ((socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT), 2000),
)
"""The kernel asks a silent host after 1 s, and gives it up after 2, or somewhat later."""
SILENCE_LIMIT = 1.5
"""Seconds without any answer, also to the kernel's question, after which a host is given up."""
_LAST_ANSWER = struct.Struct("=56xI")  # tcpi_last_ack_recv of Linux' tcp_info, in ms


class ProtocolError(ValueError):
    """The other side sent what no cyber_bridge sends."""


def operation(code: int, *fields: bytes) -> bytes:
    """Return an operation whose fields each have their length."""
    return bytes([code]) + b"".join(LENGTH.pack(len(field)) + field for field in fields)


def register(files: list[bytes]) -> bytes:
    """Return the operation that makes descriptors known, which goes before adding a writer."""
    listed = b"".join(LENGTH.pack(len(file)) + file for file in files)
    return bytes([REGISTER_DESC]) + LENGTH.pack(len(files)) + listed


class Publications:
    """Cuts what a cyber_bridge sends into publications."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        """Take bytes and yield channel and message of each publication that is whole."""
        self._buffer += data
        while self._buffer:
            if self._buffer[0] != PUBLISH:
                raise ProtocolError(f"operation {self._buffer[0]} where {PUBLISH} is wanted")
            channel, at = self._field(1, LONGEST_NAME)
            message, end = self._field(at, LARGEST_MESSAGE)
            if end == 0:
                return
            del self._buffer[:end]
            yield channel.decode("utf-8", "replace"), message

    def _field(self, at: int, most: int) -> tuple[bytes, int]:
        """Return a field and where it ends; 0 if it is not there yet."""
        begin = at + LENGTH.size
        if at == 0 or begin > len(self._buffer):
            return b"", 0
        (length,) = LENGTH.unpack_from(self._buffer, at)
        if length > most:  # else all that comes would be kept, in wait for the rest
            raise ProtocolError(f"a field of {length} bytes where {most} are the most")
        end = begin + length
        if end > len(self._buffer):
            return b"", 0
        with memoryview(self._buffer) as view:  # a slice of the buffer would be one copy more
            return bytes(view[begin:end]), end


class TcpTransport:
    """A client of a cyber_bridge; connects again whenever the connection breaks."""

    name = "cyber_bridge"

    def __init__(self, host: str = "127.0.0.1", port: int = PORT) -> None:
        self.address = (host, port)
        self._socket: socket.socket | None = None
        self._publications = Publications()
        self._retry_at = 0.0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._greeting = b""

    def open(self, channels: Channels) -> None:
        """Prepare the messages that follow each connecting; see `Transport.open`."""
        parts = [
            operation(ADD_READER, channel.encode(), message.encode())
            for channel, message in channels.readers.items()
        ]
        for channel, message in channels.writers.items():
            parts.append(register(own_files(message)))
            parts.append(operation(ADD_WRITER, channel.encode(), message.encode()))
        self._greeting = b"".join(parts)

    def receive(self, timeout: float) -> list[Event]:
        """Return what has happened; see `Transport.receive`."""
        if self._closed.is_set():
            return []
        connection = self._socket
        if connection is None:
            wait = self._retry_at - time.monotonic()
            if wait > 0:
                # An Event may wait until a time of day, and the system's clock may be set back.
                time.sleep(min(wait, timeout))
                return []
            return self._connect()
        connection.settimeout(max(min(timeout, SILENCE_LIMIT / 10), 0.001))
        try:
            data = connection.recv(AT_ONCE)
        except TimeoutError:
            return self._silent(connection)
        except OSError as error:
            return [self._broken(str(error))]
        now = time.monotonic_ns()
        if not data:
            return [self._broken("it closed the connection")]
        events: list[Event] = []
        try:
            events += (Arrival(c, now, m) for c, m in self._publications.feed(data))
        except ProtocolError as error:
            events.append(self._broken(f"it is no cyber_bridge: {error}"))
        return events

    def _silent(self, connection: socket.socket) -> list[Event]:
        """Give a connection up whose other host has not even answered the kernel's probes."""
        try:
            known = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_ANSWER.size)
        except OSError as error:
            return [self._broken(str(error))]
        (ago_ms,) = _LAST_ANSWER.unpack(known)
        if ago_ms <= SILENCE_LIMIT * 1000:
            return []
        return [self._broken(f"no answer for {ago_ms / 1000:.1f} s; has its host lost power?")]

    def _connect(self) -> list[Event]:
        try:
            connection = socket.create_connection(self.address, CONNECT_LIMIT)
            for option, value in OPTIONS:
                connection.setsockopt(*option, value)
            connection.sendall(self._greeting)
        except OSError as error:
            return [self._broken(f"{error.strerror or error}; is cyber_bridge running?")]
        self._publications = Publications()
        with self._lock:
            if self._closed.is_set():  # meanwhile
                connection.close()
                return []
            self._socket = connection
        return [Connected()]

    def _broken(self, reason: str) -> Lost:
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = None
        self._retry_at = time.monotonic() + RETRY_PAUSE
        return Lost(f"cyber_bridge at {self.address[0]}:{self.address[1]}: {reason}")

    def write(self, channel: str, data: bytes) -> bool:
        """Write a message; see `Transport.write`."""
        with self._lock:
            if self._socket is None:
                return False
            try:
                self._socket.sendall(operation(PUBLISH, channel.encode(), data))
            except OSError:
                # A part of it may be on its way: the next message would be taken for the rest.
                _hang_up(self._socket)
                return False
        return True

    def close(self) -> None:
        """End the connection; see `Transport.close`."""
        self._closed.set()
        with self._lock:
            if self._socket is not None:
                _hang_up(self._socket)
                self._socket.close()
            self._socket = None


def _hang_up(connection: socket.socket) -> None:
    """End both directions, which wakes a thread that waits for data."""
    with suppress(OSError):  # the other side was faster
        connection.shutdown(socket.SHUT_RDWR)
