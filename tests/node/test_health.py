"""What is not as it should be is never reported as healthy. One process serves most of the file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from forewarn_msgs.srv import Explain, LoadModel, Mute, Release
from live_ros import Probe, Process, Stepper, of, stepped
from rosgraph_msgs.msg import Clock
from small_world import MONITOR

from forewarn_ros.messages import to_time
from monitor_node.diagnosis import Lasting
from monitor_node.message_types import message_class

pytestmark = pytest.mark.ros
INPUT = "input /world/odometry"


@pytest.fixture(scope="module")
def monitor(world: Path) -> Iterator[tuple[Process, Probe, Stepper]]:
    config = world / "healthy.yaml"
    config.write_text(MONITOR + "mute_limit: never\n")
    with stepped(world, config=str(config), mode="act") as found:
        yield found


@pytest.fixture
def probe(monitor: tuple[Process, Probe, Stepper]) -> Probe:
    return monitor[1]


@pytest.fixture
def stepper(monitor: tuple[Process, Probe, Stepper]) -> Stepper:
    _, probe, stepper = monitor
    stepper.begin(stepper.tick + 200)
    stepper.steps(3, speed=1.0, distance=30.0)
    probe.wait_for_status(INPUT, "OK")
    return stepper


def test_messages_without_a_number_are_an_error_like_messages_that_do_not_come(
    stepper: Stepper, probe: Probe
) -> None:
    stepper.step(speed=math.nan, distance=30.0)
    probe.wait_for_status("signals", "WARN", "unknown: speed")  # as soon as it is seen
    assert probe.level(INPUT) == "OK"  # for as long as a message may stay away
    stepper.steps(7, speed=math.nan, distance=30.0)
    probe.wait_for_status(INPUT, "ERROR", "messages come, but no number: speed for 0.7 s")
    assert probe.level("input /world/distance") == "OK"
    stepper.step(speed=1.0)
    probe.wait_for_status(INPUT, "OK", "in time")
    probe.wait_for_status("signals", "OK")


def test_a_second_publisher_of_an_input_is_a_warning_unless_it_is_meant(
    stepper: Stepper, probe: Probe
) -> None:
    kind = message_class("nav_msgs/msg/Odometry")
    second = probe.node.create_publisher(kind, "/world/odometry", 10)
    probe.wait_for_status(INPUT, "WARN", "2 publishers, whose values alternate: /probe, /probe")
    assert probe.set(shared_inputs=["/world/odometry"]).successful
    probe.wait_for_status(INPUT, "OK")
    assert probe.set(shared_inputs=[""]).successful
    probe.wait_for_status(INPUT, "WARN")
    probe.node.destroy_publisher(second)
    probe.wait_for_status(INPUT, "OK")


def test_a_second_clock_is_a_warning_and_an_error_once_it_disagrees(
    stepper: Stepper, probe: Probe
) -> None:
    stepper.report()  # a jump that none has told yet would count as one of two clocks
    probe.wait_for_status("clock", "OK", "/clock comes from /probe")
    second = probe.node.create_publisher(Clock, "/clock", 10)
    probe.wait_for_status("clock", "WARN", "2 publishers of /clock: /probe, /probe")
    known, other = len(probe.starts), to_time(stepper.grid.time_ns(stepper.tick - 100))

    def jumped() -> bool:
        second.publish(Clock(clock=other))  # /clock is best effort: say it until it is heard
        return len(probe.starts) > known

    probe.wait(jumped, "a jump")
    probe.wait_for_status("clock", "ERROR", "time goes back and forth")
    probe.node.destroy_publisher(second)
    probe.wait_for_status("clock", "OK")


def test_a_mute_without_end_needs_a_reason_and_is_an_error_while_it_hides_an_alert(
    stepper: Stepper, probe: Probe
) -> None:
    named = {"properties": ["brake"], "duration": math.inf, "requester": "anna"}
    refused = probe.call(Mute, "mute", **named, reason=" ")
    assert not refused.success and "needs a reason" in refused.message
    assert probe.level("mutes") == "OK"
    assert probe.call(Mute, "mute", **named, reason="the gate is broken").success
    probe.wait_for_status("mutes", "WARN", "brake without end (by anna: the gate is broken)")
    risk = of(stepper.steps(6, speed=3.0, distance=5.0)[-1], "brake")
    assert risk.muted
    probe.wait_for_status("mutes", "ERROR", f"its risk is {risk.probability:.2f} and would act")
    probe.wait_for_status("risk brake", "OK", "muted")
    assert probe.call(Mute, "mute", duration=0.0).success
    probe.wait_for_status("mutes", "OK", "nothing is muted")


def test_a_mute_with_an_end_is_a_warning_until_then(stepper: Stepper, probe: Probe) -> None:
    assert probe.call(Mute, "mute", properties=["brake"], duration=0.5).success
    probe.wait_for_status("mutes", "WARN", "brake for 0 s more")
    stepper.steps(6, speed=1.0, distance=30.0)
    probe.wait_for_status("mutes", "OK")


@pytest.mark.parametrize(
    ("kind", "name", "fields"),
    [
        (Mute, "mute", {"duration": 1.0, "reason": "x" * 2_000_000}),
        (Mute, "mute", {"duration": 1.0, "requester": "x" * 2_000_000}),
        (Mute, "mute", {"duration": 1.0, "properties": ["x" * 2_000_000]}),
        (Release, "release", {"properties": ["brake"] * 20_000}),
        (Release, "release", {"reason": "x" * 2_000_000}),
        (LoadModel, "load_model", {"path": "x" * 2_000_000}),
        (Explain, "explain", {"property": "x" * 2_000_000}),
    ],
)
def test_long_texts_are_refused_and_not_kept(
    stepper: Stepper, probe: Probe, kind: type, name: str, fields: dict[str, object]
) -> None:
    answer = probe.call(kind, name, **fields)
    assert not answer.success
    assert "at most" in answer.message and len(answer.message) < 200
    assert probe.level("mutes") == "OK"
    assert len(str(probe.events[-1])) < 5000


def test_a_long_parameter_is_refused(stepper: Stepper, probe: Probe) -> None:
    for values in ({"record": "x" * 5000}, {"shared_inputs": ["x" * 5000]}):
        answer = probe.set(**values)
        assert not answer.successful and "4096 characters" in answer.reason


def test_the_parameter_says_act_and_the_file_does_not(
    monitor: tuple[Process, Probe, Stepper], probe: Probe
) -> None:
    told = "the monitor file says mode: observe, the parameter mode says act: only observing"
    probe.wait_for_status("mode", "ERROR", told)
    assert told in monitor[0].output


def test_the_file_says_act_and_the_parameter_was_forgotten(
    start: Callable[..., Process], domain: int, tmp_path: Path
) -> None:
    config = tmp_path / "monitor.yaml"
    config.write_text(MONITOR + "mode: act\n")
    process = start(config=str(config))
    told = "the monitor file says mode: act, the parameter mode says observe: only observing"
    with closing(Probe(domain)) as probe:
        probe.wait_for_status("mode", "WARN", told)
    assert told in process.output


def test_what_lasts_begins_anew_with_the_ticks() -> None:
    lasting = Lasting()
    lasting.signals(0, 5, {"a": None, "b": 1.0}.items())
    lasting.signals(0, 9, {"a": None, "b": None}.items())
    assert lasting.unknown == {"a": 5, "b": 9}
    lasting.signals(0, 10, {"a": 0.0, "b": None}.items())
    assert lasting.unknown == {"b": 9}
    lasting.signals(3, 11, {"a": 0.0, "b": None}.items())
    assert lasting.unknown == {"b": 11}


def test_a_jump_is_a_quarrel_only_while_there_are_several_clocks() -> None:
    lasting = Lasting()
    found = []
    for publishers, jumps in ((1, 0), (1, 1), (2, 1), (2, 2), (2, 2), (1, 2), (2, 2)):
        lasting.clocks(publishers, jumps)
        found.append(lasting.quarrels)
    assert found == [False, False, False, True, True, False, False]
