"""The client of cyber_bridge against a server written from the protocol, in another process."""

from __future__ import annotations

import json
import select
import socket
import struct
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apollo_bridge.layouts import own_class
from apollo_bridge.tcp import LARGEST_MESSAGE, ProtocolError, Publications, TcpTransport
from apollo_bridge.transport import Arrival, Channels, Connected, Event, Lost

pytestmark = pytest.mark.clocked

CHASSIS, PAD = "/apollo/canbus/chassis", "/apollo/planning/pad"
CHANNELS = Channels({CHASSIS: "apollo.canbus.Chassis"}, {PAD: "apollo.planning.PadMessage"})
LIMIT = 120.0


class Server:
    """The stand-in."""

    def __init__(self, port: int = 0) -> None:
        script = Path(__file__).with_name("bridge_server.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port: int = self.line()["port"]

    def line(self) -> Any:
        """Return the next thing that it has to tell."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def tell(self, **command: Any) -> None:
        """Send a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.stop()


def wait_for(transport: TcpTransport, kind: type[Any]) -> Any:
    deadline = time.monotonic() + LIMIT
    seen: list[Event] = []
    while time.monotonic() < deadline:
        found = transport.receive(0.5)
        seen += found
        for event in found:
            if isinstance(event, kind):
                return event
    raise AssertionError(f"no {kind.__name__} among {seen}")


@pytest.fixture
def transport(server: Server) -> Iterator[TcpTransport]:
    client = TcpTransport("127.0.0.1", server.port)
    client.open(CHANNELS)
    wait_for(client, Connected)
    yield client
    client.close()


def greeting(server: Server) -> list[Any]:
    return [server.line() for _ in range(3)]


def test_says_what_it_reads_and_writes(server: Server, transport: TcpTransport) -> None:
    reader, registered, writer = greeting(server)
    assert reader == {"reader": CHASSIS, "type": "apollo.canbus.Chassis"}
    # One file, which defines the pad alone: Apollo's own types must not be defined twice.
    assert len(registered["registered"]) == 1
    assert writer == {"writer": PAD, "type": "apollo.planning.PadMessage"}


@pytest.mark.parametrize("cut", [1, 7, 1 << 20])
def test_messages_arrive_however_the_stream_is_cut(
    server: Server, transport: TcpTransport, cut: int
) -> None:
    greeting(server)
    message = own_class("apollo.canbus.Chassis")(speed_mps=3.5).SerializeToString()
    before = time.monotonic_ns()
    server.tell(channel=CHASSIS, message=message.hex(), cut=cut)
    arrival = wait_for(transport, Arrival)
    assert (arrival.channel, arrival.data) == (CHASSIS, message)
    assert before <= arrival.time_ns <= time.monotonic_ns()


def test_commands_reach_the_server(server: Server, transport: TcpTransport) -> None:
    greeting(server)
    assert transport.write(PAD, b"\x10\x04")
    assert server.line() == {"published": PAD, "message": "1004"}


def test_the_kernel_is_to_ask_a_silent_host_after_a_second(transport: TcpTransport) -> None:
    """What comes of it is seen between two hosts, in test_power_loss.py."""
    connection = transport._socket
    assert connection is not None
    assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
    found = [connection.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names]
    idle, interval, count, timeout_ms = found
    assert idle + interval * count <= 2
    assert 0 < timeout_ms <= 2000  # also while something was sent and not acknowledged


def test_connects_anew_after_the_server_was_restarted(
    server: Server, transport: TcpTransport
) -> None:
    greeting(server)
    server.stop()
    assert "closed the connection" in wait_for(transport, Lost).reason
    assert not transport.write(PAD, b"")
    again = Server(server.port)
    try:
        wait_for(transport, Connected)
        assert greeting(again)[0]["reader"] == CHASSIS
    finally:
        again.stop()


def test_without_a_server_it_says_so() -> None:
    client = TcpTransport("127.0.0.1", 1)
    client.open(CHANNELS)
    assert (
        "127.0.0.1:1: Connection refused; is cyber_bridge running?" in wait_for(client, Lost).reason
    )
    client.close()
    assert client.receive(1.0) == []


def test_something_else_on_the_port_is_found_out(server: Server, transport: TcpTransport) -> None:
    greeting(server)
    server.tell(raw=b"HTTP/1.1 400 Bad Request\r\n".hex())
    assert "it is no cyber_bridge: operation 72" in wait_for(transport, Lost).reason


@pytest.mark.parametrize(
    "frame", [b"\4\xff\xff\xff\xff", b"\4\2\0\0\0/a\xff\xff\xff\x7f", b"\4/apo\0\0\0\0"]
)
def test_lengths_beyond_all_reason_are_no_reason_to_wait(frame: bytes) -> None:
    # Waiting for the rest would keep all that comes in memory, and give no signal any more.
    with pytest.raises(ProtocolError, match=r"a field of \d+ bytes where \d+ are the most"):
        list(Publications().feed(frame))


def test_what_came_before_garbage_counts_and_the_client_connects_anew(
    server: Server, transport: TcpTransport
) -> None:
    greeting(server)
    good = b"\4" + len(CHASSIS).to_bytes(4, "little") + CHASSIS.encode() + b"\1\0\0\0x"
    server.tell(raw=(good + b"\4\xff\xff\xff\xff").hex())
    events: list[Event] = []
    deadline = time.monotonic() + LIMIT
    while not any(isinstance(event, Connected) for event in events):
        assert time.monotonic() < deadline, events
        events += transport.receive(0.5)
    kinds = [type(event) for event in events]
    assert kinds == [Arrival, Lost, Connected]


@pytest.fixture
def peer() -> Iterator[tuple[TcpTransport, socket.socket]]:
    """Return a connected client and the other end of its connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = TcpTransport("127.0.0.1", listening.getsockname()[1])
        client.open(CHANNELS)
        wait_for(client, Connected)
        other, _ = listening.accept()
        with other:
            yield client, other
        client.close()


def reset(connection: socket.socket) -> None:
    """End a connection as a process does that is killed with data unread."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_closes_a_connection_that_the_other_side_has_reset(
    peer: tuple[TcpTransport, socket.socket],
) -> None:
    client, other = peer
    assert client._socket is not None
    reset(other)
    assert select.select([client._socket], [], [], LIMIT)[0], "the end is not seen"
    client.close()
    assert client.receive(1.0) == []


def test_what_was_closed_while_it_connected_stays_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = TcpTransport("127.0.0.1", listening.getsockname()[1])
        client.open(CHANNELS)
        connect = socket.create_connection

        def late(*arguments: Any) -> socket.socket:
            client.close()
            return connect(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(socket, "create_connection", late)
            assert client.receive(1.0) == []
        other, _ = listening.accept()
        with other:
            other.settimeout(LIMIT)
            while other.recv(1 << 16):
                pass  # the greeting, and then the end


def test_a_message_that_went_half_way_ends_the_connection(
    peer: tuple[TcpTransport, socket.socket],
) -> None:
    # The other side does not read; the next message would be taken for the rest of this one.
    client, _ = peer
    assert client.receive(0.001) == []
    assert not client.write(PAD, bytes(1 << 26))
    assert "closed the connection" in wait_for(client, Lost).reason


def test_a_message_takes_memory_as_it_arrives_and_not_as_it_claims() -> None:
    piece = 1 << 20
    cutter = Publications()
    tracemalloc.start()
    try:
        assert list(cutter.feed(b"\4\2\0\0\0/a" + LARGEST_MESSAGE.to_bytes(4, "little"))) == []
        assert tracemalloc.get_traced_memory()[1] < piece
        for _ in range(16):
            assert list(cutter.feed(bytes(piece))) == []
        assert 16 * piece <= tracemalloc.get_traced_memory()[0] < 20 * piece
    finally:
        tracemalloc.stop()


def test_a_message_that_is_whole_is_copied_once() -> None:
    size = 1 << 24
    cutter = Publications()
    data = b"\4\2\0\0\0/a" + size.to_bytes(4, "little") + bytes(size)
    tracemalloc.start()
    try:
        ((channel, message),) = cutter.feed(data)
        assert (channel, len(message)) == ("/a", size)
        assert tracemalloc.get_traced_memory()[1] < 2.5 * size  # what came, and the message
        del message
        assert tracemalloc.get_traced_memory()[0] < size / 4
    finally:
        tracemalloc.stop()


def test_publications_cut_anywhere() -> None:
    data = b"".join(
        b"\4" + len(c).to_bytes(4, "little") + c + len(m).to_bytes(4, "little") + m
        for c, m in ((b"/a", b"12345"), (b"/bc", b""), (b"/d", b"6"))
    )
    for cut in range(len(data) + 1):
        cutter = Publications()
        found = [*cutter.feed(data[:cut]), *cutter.feed(data[cut:])]
        assert found == [("/a", b"12345"), ("/bc", b""), ("/d", b"6")]
    with pytest.raises(ProtocolError, match="operation 7 "):
        list(Publications().feed(b"\7"))
