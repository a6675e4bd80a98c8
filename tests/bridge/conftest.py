"""Records and messages of Apollo, built from the bridge's own layouts and by cyber-record."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from google.protobuf import descriptor_pb2

from apollo_bridge.layouts import own_class
from forewarn.cli.main import main

sys.path.insert(0, str(Path(__file__).resolve().parent))

from apollo_records import (
    CHASSIS,
    POSE,
    Written,
    chassis,
    drive,
    proto_desc,
    record_bytes,
    sawtooth,
)
from apollo_scenes import player, scene, scene_abstraction, scene_spec

__all__ = ["player", "scene", "scene_abstraction", "scene_spec"]


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
