"""The script that holds Cyber RT: its frames, and where it finds Cyber's Python package."""

from __future__ import annotations

import logging
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apollo_bridge import cyber, cyber_process
from apollo_bridge.commander import Commander
from apollo_bridge.commands import WAYS
from apollo_bridge.cyber import CyberTransport
from apollo_bridge.cyber_process import Frames, frame
from apollo_bridge.derivation import Derivation
from apollo_bridge.node import statuses
from apollo_bridge.relay import Memory, Relay
from apollo_bridge.transport import Channels, Event, Lost, Topology
from apollo_bridge.worker import Worker
from forewarn.config.file import load_spec
from forewarn_ros.status import Severity, Status


def test_frames_cut_anywhere() -> None:
    wanted = [(2, b"one"), (3, b""), (6, b"\0" * 9)]
    data = b"".join(frame(kind, payload) for kind, payload in wanted)
    for cut in range(len(data) + 1):
        frames = Frames()
        assert [*frames.feed(data[:cut]), *frames.feed(data[cut:])] == wanted


def load_in(folder: Path) -> subprocess.CompletedProcess[str]:
    """Load Cyber's package in an interpreter that sees only the standard library and a folder."""
    script = Path(cyber_process.__file__)
    code = (
        f"import sys; sys.path[:0] = [{str(script.parent)!r}, {str(folder)!r}]; "
        "import cyber_process; sys.path.pop(0); "  # as the script does, for it would hide `cyber`
        "print(*(m.__name__ for m in cyber_process.load_cyber()))"
    )
    return subprocess.run([sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True)


def package(folder: Path, *modules: str) -> None:
    for name in modules:
        path = folder.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


@pytest.mark.parametrize(
    "modules",
    [
        ("pycyber.cyber", "pycyber.proto.role_attributes_pb2"),
        ("cyber.python.cyber_py3.cyber", "cyber.proto.role_attributes_pb2"),
    ],
)
def test_the_wheel_and_apollos_own_package_are_found(
    tmp_path: Path, modules: tuple[str, str]
) -> None:
    package(tmp_path, *modules)
    done = load_in(tmp_path)
    assert done.stdout.split() == list(modules), done.stderr


def test_without_either_both_are_named(tmp_path: Path) -> None:
    done = load_in(tmp_path)
    assert done.returncode != 0
    assert "pycyber.cyber: No module named 'pycyber'; cyber.python.cyber_py3.cyber:" in done.stderr


@pytest.fixture
def idle(learned: Path) -> Worker:
    """Return what gives the connection's diagnostic, not started: tests say what came."""
    derivation = Derivation(load_spec(learned / "monitor.yaml"))
    return Worker(CyberTransport("unused"), derivation, lambda now, signals: None, 50.0)


def connection(worker: Worker) -> Status:
    relay = Relay(Commander(WAYS["pad"]), Memory(None), False, logging.getLogger())
    return next(iter(statuses(worker, relay, 0)))


def events(transport: CyberTransport) -> Iterator[Event]:
    """Open a transport and yield what comes of it."""
    transport.open(Channels({"/apollo/canbus/chassis": "apollo.canbus.Chassis"}, {}))
    try:
        while True:
            yield from transport.receive(60.0)
    finally:
        transport.close()


@pytest.fixture
def sleeper(tmp_path: Path) -> str:
    """Return an interpreter whose processes do nothing until they are ended."""
    script = tmp_path / "sleeper"
    script.write_text("#!/bin/sh\nexec sleep 1000\n")
    script.chmod(0o755)
    return str(script)


def test_a_process_that_is_started_while_the_rest_is_closed_is_ended_too(
    sleeper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = CyberTransport("closing", sleeper)
    transport.open(Channels({}, {}))
    transport._children["scout"].process.kill()
    assert isinstance(transport.receive(60.0)[0], Lost)
    started = []

    class Late(cyber._Child):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            started.append(self.process)
            transport.close()

    monkeypatch.setattr(cyber, "_Child", Late)
    monkeypatch.setattr(cyber.time, "monotonic", lambda: float("inf"))  # time to start it again
    assert transport.receive(60.0) == []
    assert [process.returncode for process in started] == [-signal.SIGTERM]


def test_a_process_that_ends_before_it_is_spoken_to_is_lost_and_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Quick(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, pass_fds: tuple[int, ...], **options: Any) -> None:
            super().__init__(*arguments, pass_fds=pass_fds, **options)
            self.wait()

    monkeypatch.setattr(cyber.subprocess, "Popen", Quick)
    transport = CyberTransport("quick", "/bin/false")
    try:
        transport.open(Channels({}, {}))
        monkeypatch.undo()
        assert isinstance(transport.receive(60.0)[0], Lost)
    finally:
        transport.close()


def test_an_interpreter_without_cyber_is_an_error_that_says_what_to_do(
    tmp_path: Path, idle: Worker
) -> None:
    # The same interpreter, without site-packages.
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S -E "$@"\n')
    bare.chmod(0o755)
    lost = next(
        event for event in events(CyberTransport("bare", str(bare))) if isinstance(event, Lost)
    )
    idle.problem = lost.reason
    _, level, text, _ = connection(idle)
    assert level == Severity.ERROR
    assert "has no Cyber RT" in text
    assert "use the transport 'tcp'" in text


def test_apollo_in_another_domain_is_explained(
    pycyber: None, monkeypatch: Any, idle: Worker
) -> None:
    pytest.importorskip("rclpy", reason="domains are reserved by the tests of ROS 2")
    from live_ros import free_domain

    with free_domain() as domain:
        monkeypatch.setenv("CYBER_DOMAIN_ID", str(domain))
        monkeypatch.setenv("CYBER_IP", "127.0.0.1")
        for event in events(CyberTransport("lonely")):
            if isinstance(event, Topology):
                break
        idle.problem, idle.topology = "", event.channels
        _, level, text, _ = connection(idle)
    assert level == Severity.WARN
    assert f"no node publishes any of the channels in domain {domain} at 127.0.0.1" in text
    assert "CYBER_DOMAIN_ID" in text and "CYBER_IP" in text
