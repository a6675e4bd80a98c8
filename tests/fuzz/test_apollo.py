"""What Apollo brings: records, maps, messages, bytes of cyber_bridge, whatever happened to them."""

from __future__ import annotations

import importlib.util
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import strategies as st
from mutations import changed_bytes

from apollo_bridge.commander import Commander
from apollo_bridge.commands import WAYS
from apollo_bridge.layouts import own_class, own_pool
from apollo_bridge.maps import load_map
from apollo_bridge.tcp import ProtocolError, Publications
from forewarn.errors import DecodeError, FieldError, RecordingError
from forewarn.expressions.functions.shapes import MapError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.extraction import compile_extractor
from forewarn.recordings.registry import open_recording

CHASSIS, SPEED = "apollo.canbus.Chassis", "speed_mps + engine_started"


@pytest.fixture(scope="module")
def builders(repository: Path):
    """Return the helpers of the bridge's tests that write records."""
    path = repository / "tests" / "bridge" / "conftest.py"
    spec = importlib.util.spec_from_file_location("bridge_builders", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("closed", [True, False])
def test_records(fuzz, tmp_path, builders, closed):
    messages = builders.drive(24)
    chunks = [messages[:8], messages[8:16], messages[16:]]
    original = builders.record_bytes(chunks, closed=closed)
    # Half of the changes where they are no descriptor, which is most of a small record.
    at = original.index(messages[0].message.SerializeToString()) - 100
    tails = changed_bytes([original[at:]]).map(lambda tail: original[:at] + tail)
    path = tmp_path / "x.record"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        try:
            with open_recording(path) as recording:
                extractors = {
                    name: compile_extractor(info.message_type, [parse_expression(SPEED)])
                    for name, info in recording.topics.items()
                    if info.error is None
                }
                latest = 0
                for sample in recording.read():
                    assert latest <= sample.time_ns < 1 << 63
                    latest = sample.time_ns
                    with suppress(DecodeError):
                        extractors[sample.topic](sample.data)
        except RecordingError as error:
            assert str(path) in str(error)
        except FieldError:
            pass

    fuzz(st.one_of(changed_bytes([original]), tails), check)


def test_maps(fuzz, tmp_path, builders):
    from apollo_scenes import write_map

    original = write_map(tmp_path / "map.bin").read_bytes()
    path = tmp_path / "x.bin"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        try:
            load_map(path)
        except MapError as error:
            assert str(path) in str(error)

    fuzz(changed_bytes([original]), check)


def test_messages_and_streams(fuzz):
    chassis = own_class(CHASSIS)(speed_mps=3.0, driving_mode=1).SerializeToString()
    route = own_class("apollo.planning.PlanningCommand")(
        lane_follow_command=b"a route", is_motion_command=True, target_speed=9.0
    ).SerializeToString()
    stream = b"".join(
        b"\4" + len(c).to_bytes(4, "little") + c + len(m).to_bytes(4, "little") + m
        for c, m in ((b"/a", chassis), (b"/b", b""), (b"/a", route))
    )
    extract = compile_extractor(own_pool().message_type(CHASSIS), [parse_expression(SPEED)])

    def check(content: bytes) -> None:
        try:
            for _, message in Publications().feed(content):
                extract(message)
        except (ProtocolError, DecodeError):
            pass
        commander = Commander(WAYS["pad"], limits=True)
        commander.limits.heard(content)
        for command in commander.update("LIMIT_SPEED", True, 3.0, 10**18):
            assert command.data or command.remark

    fuzz(changed_bytes([stream, chassis, route]), check)
