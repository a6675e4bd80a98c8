"""Records and messages of Apollo, built from the bridge's own layouts and by cyber-record."""

from __future__ import annotations

import importlib.util
import shutil
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from google.protobuf import descriptor_pb2

from apollo_bridge.layouts import own_class, own_pool
from forewarn.cli.main import main

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from apollo_scenes import player, scene, scene_abstraction, scene_spec

__all__ = ["player", "scene", "scene_abstraction", "scene_spec"]

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


def load_live() -> Any:
    """Return the module `live`, which the benchmarks import as well."""
    path = Path(__file__).with_name("live.py")
    spec = importlib.util.spec_from_file_location("bridge_live", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Apollo:
    """What the tests of this folder share; handed to them as a fixture."""

    CHASSIS = CHASSIS
    POSE = POSE
    Written = Written
    FileDescriptorProto = descriptor_pb2.FileDescriptorProto
    record_bytes = staticmethod(record_bytes)
    proto_desc = staticmethod(proto_desc)
    chassis = staticmethod(chassis)
    drive = staticmethod(drive)
    sawtooth = staticmethod(sawtooth)
    own_class = staticmethod(own_class)
    live = staticmethod(load_live)


@pytest.fixture(scope="session")
def apollo() -> type[Apollo]:
    """Return the builders of messages and records."""
    return Apollo


@pytest.fixture(scope="session")
def example_record(shared_data: Path) -> Path:
    """Return a record of a real Apollo 7."""
    return shared_data / "apollo" / "cyber_record_example.record.00000"


class Done(NamedTuple):
    """What a command gave."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def forewarn(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs a command of forewarn in this process."""

    def run(*words: Any) -> Done:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def pycyber() -> None:
    """Skip where Cyber RT has no wheel."""
    if importlib.util.find_spec("pycyber") is None:
        pytest.skip("pycyber, Cyber RT's wheel, exists for Python 3.10 on x86_64 only")


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a monitor file and the model that belongs to it."""
    folder = tmp_path_factory.mktemp("learned")
    record = folder / "learn.record"
    record.write_bytes(record_bytes([sawtooth()]))
    load_live().write_monitor(folder, record)
    return folder


@contextmanager
def new_world(folder: Path, learned: Path | None) -> Iterator[Any]:
    """Yield processes in domains that no other test uses meanwhile.

    Their monitor file and its model come from the folder `learned`, or are there already.
    """
    pytest.importorskip("rclpy", reason="rclpy is ROS 2's Python package")
    from live_ros import free_domain

    for name in ("monitor.yaml", "monitor.model.json") if learned is not None else ():
        shutil.copy(learned / name, folder)
    with ExitStack() as domains:
        ros, cyber = (domains.enter_context(free_domain()) for _ in range(2))
        world = load_live().World(folder, ros, cyber)
        try:
            yield world
        finally:
            world.close()


@pytest.fixture
def world(tmp_path: Path, learned: Path) -> Iterator[Any]:
    """Return the processes of one test, with a monitor file and its model in their folder."""
    with new_world(tmp_path, learned) as made:
        yield made


@pytest.fixture(scope="module")
def module_world(tmp_path_factory: pytest.TempPathFactory, learned: Path) -> Iterator[Any]:
    """Return processes that the tests of a module share."""
    with new_world(tmp_path_factory.mktemp("world"), learned) as made:
        yield made


class Listener:
    """A ROS node in this process, in the domain of the world's processes."""

    def __init__(self, domain: int) -> None:
        import rclpy
        from rclpy.executors import SingleThreadedExecutor

        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = rclpy.create_node("listener", context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)

    def wait_for(self, kind: Any, topic: str, found: Any, limit: float = 240.0) -> Any:
        """Return what `found` makes of the first message for which that is something."""
        results: list[Any] = []

        def receive(message: Any) -> None:
            result = found(message)
            if result:
                results.append(result)

        subscription = self.node.create_subscription(kind, topic, receive, 50)
        deadline = time.monotonic() + limit
        while not results and time.monotonic() < deadline:
            self.executor.spin_once(timeout_sec=0.05)
        self.node.destroy_subscription(subscription)
        assert results, f"nothing of that kind on {topic}"
        return results[0]

    def wait_for_any(self, found: Any, limit: float = 240.0) -> Any:
        """Return what `found` makes of None once that is something; callbacks are served."""
        deadline = time.monotonic() + limit
        while not (result := found(None)):
            assert time.monotonic() < deadline, "it never came"
            self.executor.spin_once(timeout_sec=0.05)
        return result

    def diagnostic(self, name: str, found: Any) -> Any:
        """Return the first status of the bridge with this name for which `found` holds."""
        from diagnostic_msgs.msg import DiagnosticArray

        def pick(message: Any) -> Any:
            for status in message.status:
                if status.name == f"apollo_bridge: {name}":
                    values = {value.key: value.value for value in status.values}
                    entry = (ord(status.level), status.message, values)
                    if found(*entry):
                        return entry
            return None

        return self.wait_for(DiagnosticArray, "/diagnostics", pick)

    def close(self) -> None:
        """Leave the domain."""
        import rclpy

        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


@pytest.fixture
def listener(world: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    """Return a node that listens to the world."""
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    made = Listener(world.domain)
    yield made
    made.close()


@pytest.fixture(scope="module")
def module_listener(module_world: Any) -> Iterator[Listener]:
    """Return a node that listens to the world that the tests of a module share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        made = Listener(module_world.domain)
        yield made
        made.close()
