"""The transport over Cyber RT itself, which lives in processes of its own."""

from __future__ import annotations

import base64
import json
import os
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from apollo_bridge import cyber_process as process
from apollo_bridge.layouts import own_files
from apollo_bridge.transport import (
    AT_ONCE,
    Arrival,
    Channels,
    Connected,
    Event,
    Lost,
    Offer,
    ServiceResult,
    Topology,
    TransportError,
)

RESTART_PAUSE = 1.0
BUFFER = 1 << 22


class CyberTransport:
    """Reads and writes channels through pycyber or Apollo's ``cyber.python.cyber_py3``.

    `python`: interpreter that has Cyber's package; by default the one that runs this.
    """

    name = "Cyber RT"

    def __init__(self, node: str, python: str = "") -> None:
        self._node = node
        self._python = python or sys.executable
        self._children: dict[str, _Child] = {}
        self._restart_at: dict[str, float] = {}
        self._down: dict[str, str] = {}
        self._ready_modes: set[str] = set()
        self._selector = selectors.DefaultSelector()
        self._wake, self._waker = socket.socketpair()
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        self._lock = threading.Lock()
        self._closed = False
        self._names: list[str] = []
        self._services: list[str] = []
        self._targets: dict[str, tuple[str, int]] = {}

    def open(self, channels: Channels) -> None:
        """Start the processes; see `Transport.open`."""
        self._names = list(channels.readers)
        self._services = list(channels.services)
        self._targets = {
            name: (mode, at)
            for mode, names in (("data", channels.writers), ("caller", channels.services))
            for at, name in enumerate(names)
        }
        config = {
            "node": self._node,
            "readers": self._names,
            "writers": _described(channels.writers),
            "services": _described(channels.services),
        }
        self._config = json.dumps(config).encode()
        for mode in ("data", "scout", *(["caller"] if channels.services else [])):
            self._start(mode)

    def _start(self, mode: str) -> None:
        child = _Child(self._python, mode, self._config)
        with self._lock:
            if self._closed:  # meanwhile: nothing else would end the child
                child.stop()
                return
            self._children[mode] = child
        self._selector.register(child.link, selectors.EVENT_READ, mode)

    def receive(self, timeout: float) -> list[Event]:
        """Return what has happened; see `Transport.receive`."""
        events: list[Event] = []
        now = time.monotonic()
        for mode, at in list(self._restart_at.items()):
            if now >= at:
                del self._restart_at[mode]
                self._start(mode)
            timeout = min(timeout, max(at - now, 0.0))
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                self._wake.recv(64)
            else:
                events += self._from_child(key.data)
        return [] if self._closed else events

    def _from_child(self, mode: str) -> Iterable[Event]:
        child = self._children[mode]
        try:
            data = child.link.recv(AT_ONCE)
        except OSError:
            data = b""
        if not data:
            return [self._gone(mode)]
        return [
            event
            for kind, payload in child.frames.feed(data)
            for event in self._events(mode, kind, payload)
        ]

    def _gone(self, mode: str) -> Event:
        child = self._children[mode]
        self._selector.unregister(child.link)
        with self._lock:
            del self._children[mode]
            self._ready_modes.discard(mode)
        child.stop()
        self._restart_at[mode] = time.monotonic() + RESTART_PAUSE
        reason = child.problem or f"the Cyber process ({mode}) ended; it is started again"
        self._down[mode] = reason
        return Lost(reason)

    def _events(self, mode: str, kind: int, payload: bytes) -> Iterator[Event]:
        if kind == process.ARRIVAL:
            index, time_ns = process.ARRIVAL_HEAD.unpack_from(payload)
            yield Arrival(self._names[index], time_ns, payload[process.ARRIVAL_HEAD.size :])
        elif kind == process.TOPOLOGY:
            yield Topology(json.loads(payload))
        elif kind == process.OFFER:
            (length,) = struct.unpack_from("<H", payload)
            channel, message = json.loads(payload[2 : 2 + length])
            yield Offer(channel, message, payload[2 + length :])
        elif kind == process.READY:
            yield from self._ready(mode, json.loads(payload).get("error", ""))
        elif kind == process.ANSWER:
            (index,) = process.WRITE_HEAD.unpack_from(payload)
            service = self._services[index]
            answered = payload[process.WRITE_HEAD.size]
            yield ServiceResult(
                service, "" if answered else f"no node answers the service {service}"
            )

    def _ready(self, mode: str, problem: str) -> Iterator[Event]:
        """Yield what it means that a process stands, or cannot."""
        if problem:
            self._children[mode].problem = (
                f"{self._python} has no Cyber RT ({problem}); install pycyber (Python 3.10), "
                "run in Apollo's container, or use the transport 'tcp'"
            )
            return
        self._ready_modes.add(mode)
        was_down = self._down.pop(mode, "")
        if mode == "data":
            yield Connected()
        if was_down or self._down:
            # Another process may still be down, and if none is, nothing is lost any more.
            yield Lost(next(iter(self._down.values()), ""))

    def write(self, channel: str, data: bytes) -> bool:
        """Write a message, or call a service with it; see `Transport.write`."""
        mode, index = self._targets[channel]
        payload = process.WRITE_HEAD.pack(index) + data
        with self._lock:
            child = self._children.get(mode)
            if child is None or mode not in self._ready_modes:
                return False
            try:
                child.link.sendall(process.frame(process.WRITE, payload))
            except OSError:
                return False
        return True

    def close(self) -> None:
        """End the processes; see `Transport.close`."""
        with self._lock:
            self._closed = True
            self._waker.send(b"x")
            for child in self._children.values():
                child.process.terminate()
            for child in self._children.values():
                child.stop()


class _Child:
    """A process that holds Cyber, and the socket to it."""

    def __init__(self, python: str, mode: str, config: bytes) -> None:
        self.link, theirs = socket.socketpair()
        self.frames = process.Frames()
        self.problem = ""
        for end in (self.link, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        environment = dict(os.environ)
        environment.setdefault("GLOG_log_dir", tempfile.gettempdir())
        command = [python, str(Path(process.__file__)), mode, str(theirs.fileno())]
        try:
            # In a session of its own: Ctrl-C in the bridge's terminal is not for it.
            self.process: Any = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                env=environment,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise TransportError(f"{python} cannot be started: {error}") from error
        finally:
            theirs.close()
        with suppress(OSError):  # it has ended already, as `receive` will find
            self.link.sendall(process.frame(process.CONFIG, config))

    def stop(self) -> None:
        self.process.terminate()
        self.link.close()
        try:
            self.process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _described(targets: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "channel": name,
            "message": message,
            "files": [base64.b64encode(file).decode() for file in own_files(message)],
        }
        for name, message in targets.items()
    ]
