"""The thread between transport and node."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from apollo_bridge.derivation import Derivation
from apollo_bridge.layouts import own_class
from apollo_bridge.transport import Arrival, Channels, Event
from apollo_bridge.worker import Worker
from forewarn.config.file import load_spec

pytestmark = pytest.mark.clocked

CHASSIS = "/apollo/canbus/chassis"


class Recited:
    """A transport on which arrives what is given, receive by receive, and nothing after that."""

    name = "recited"

    def __init__(self, parts: Sequence[list[Event]]) -> None:
        self.parts = iter(parts)
        self.waits: list[float] = []
        self.through = threading.Event()
        self.closed = threading.Event()

    def open(self, channels: Channels) -> None: ...

    def receive(self, timeout: float) -> list[Event]:
        self.waits.append(timeout)
        part = next(self.parts, None)
        if part is None:
            self.through.set()
            self.closed.wait()
        return part or []

    def write(self, channel: str, data: bytes) -> bool:
        return True

    def close(self) -> None:
        self.closed.set()


def test_nothing_is_done_and_the_processor_is_left_alone_until_the_first_message(
    learned: Path,
) -> None:
    data = own_class("apollo.canbus.Chassis")(speed_mps=3.0).SerializeToString()
    first = Arrival(CHASSIS, 1, data)
    transport = Recited([[], [], [], [first]])
    sent = []
    derivation = Derivation(load_spec(learned / "monitor.yaml"))
    worker = Worker(transport, derivation, lambda now, signals: sent.append(signals), 50.0)
    worker.start()
    assert transport.through.wait(60.0)
    worker.stop()
    assert transport.waits[:4] == [0.5] * 4
    assert [[signal.name for signal in signals] for signals in sent] == [["speed"]]
