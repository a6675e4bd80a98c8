"""What arrives, or does not: quality of service, types, layouts, stale and strange values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from live_ros import Probe, Process, Stepper, of, stepped
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from small_world import MONITOR, serialized

pytestmark = pytest.mark.ros
Start = Callable[..., Process]
ODOMETRY, DISTANCE = "/world/odometry", "/world/distance"


@pytest.fixture(scope="module")
def shared(world: Path) -> Iterator[Stepper]:
    with stepped(world) as (_, _, stepper):
        yield stepper


@pytest.fixture
def running(shared: Stepper) -> tuple[Probe, Stepper]:
    """Begin anew, twenty seconds later."""
    shared.begin(shared.tick + 200)
    shared.report()
    return shared.probe, shared


def test_best_effort_and_latched_publishers_are_followed(start: Start, probe: Probe) -> None:
    odometry = probe.publisher(ODOMETRY, reliability=ReliabilityPolicy.BEST_EFFORT)
    start()
    probe.wait(odometry.get_subscription_count, "a best-effort subscription")
    latched = probe.publisher(DISTANCE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    latched.publish(serialized(DISTANCE, 5.0))  # before the subscription asks for it
    probe.wait(
        lambda: probe.risks and "distance" not in of(probe.risks[-1], "brake").stale_signals,
        "the message that was kept",
    )

    def speed_is_known() -> bool:
        odometry.publish(serialized(ODOMETRY, 2.0))
        return bool(probe.risks) and "speed" not in of(probe.risks[-1], "brake").stale_signals

    probe.wait(speed_is_known, "messages of a best-effort publisher")
    probe.wait_for_status(f"input {DISTANCE}", "OK")
    assert "transient local" in probe.values(f"input {DISTANCE}")["QoS"]
    assert "best effort" in probe.values(f"input {ODOMETRY}")["QoS"]


def test_a_quality_that_cannot_match_is_reported(start: Start, probe: Probe) -> None:
    probe.publisher(ODOMETRY, reliability=ReliabilityPolicy.BEST_EFFORT)
    process = start(**{f"qos_overrides.{ODOMETRY}.subscription.reliability": "reliable"})
    probe.wait_for_status(
        f"input {ODOMETRY}", "ERROR", "incompatible QoS: /probe offers best effort"
    )
    assert "reliability does not match" in probe.text(f"input {ODOMETRY}")
    assert "incompatible QoS" in process.output


def test_a_topic_that_nobody_publishes_is_an_error_once_the_start_is_over(
    start: Start, probe: Probe
) -> None:
    process = start(use_sim_time=True)
    stepper = Stepper(probe)
    stepper.begin()
    stepper.steps(9)
    probe.wait_for_status(f"input {DISTANCE}", "WARN", "no node publishes it")
    stepper.steps(3)
    probe.wait_for_status(f"input {DISTANCE}", "ERROR", "no node publishes it")
    assert probe.values(f"input {DISTANCE}")["messages"] == "0"
    probe.wait_for_status("signals", "WARN", "unknown: speed, distance")
    told = "no node publishes /world/odometry, /world/distance: "
    probe.wait(lambda: told in process.output, "all topics without a publisher, in one line")


def test_stamps_of_another_clock_are_told(start: Start, probe: Probe, tmp_path: Path) -> None:
    config = tmp_path / "monitor.yaml"
    config.write_text(f"{MONITOR}timestamp_source: header\n")
    process = start(config=str(config), model="")
    probe.say(ODOMETRY, 1.0)
    told = f"{ODOMETRY}: its stamps are 0, as if the driver sets none"
    probe.wait(lambda: told in process.output, "a word about the stamps")


def test_another_type_on_the_topic_is_reported(start: Start, probe: Probe) -> None:
    probe.publisher(DISTANCE, "std_msgs/msg/Float64")
    start()
    expected = "/probe publishes std_msgs/msg/Float64, the monitor file says std_msgs/msg/Float32"
    probe.wait_for_status(f"input {DISTANCE}", "ERROR", expected)


def test_a_message_of_the_wrong_layout_is_counted_and_its_signals_are_unknown(
    running: tuple[Probe, Stepper],
) -> None:
    probe, stepper = running
    known = of(stepper.step(speed=2.0, distance=5.0), "brake")
    assert known.details.state_key[:2] == "11"
    message = of(stepper.step(speed=b"\0\1\0\0\7\0\0"), "brake")
    assert message.details.state_key.startswith("?1")
    probe.wait_for_status(f"input {ODOMETRY}", "ERROR", "bytes are no nav_msgs/msg/Odometry")
    assert int(probe.values(f"input {ODOMETRY}")["undecodable"]) >= 1
    assert of(stepper.step(speed=2.0), "brake").details.state_key == known.details.state_key
    probe.wait_for_status(f"input {ODOMETRY}", "OK")
    stepper.step(speed=math.nan)  # unknown as well, and readable
    probe.wait_for_status(f"input {ODOMETRY}", "OK")
    stepper.steps(6)
    probe.wait_for_status(f"input {ODOMETRY}", "ERROR", "stale: speed 0.6 s old")


def test_nan_is_unknown_and_inf_is_a_value(running: tuple[Probe, Stepper]) -> None:
    _, stepper = running
    assert of(stepper.step(speed=2.0, distance=math.inf), "brake").details.state_key == "1000"
    assert of(stepper.step(distance=-math.inf), "brake").details.state_key == "!collision"
    nan = of(stepper.step(distance=math.nan), "brake")
    assert nan.details.state_key == "1???!?"
    assert nan.verdict == nan.VERDICT_SATISFIED_SO_FAR
    assert "distance" not in nan.stale_signals


def test_a_predicate_without_truth_value_is_reported(
    start: Start, probe: Probe, world: Path, tmp_path: Path
) -> None:
    text = MONITOR.replace("moving: speed > 0.5", "moving: speed > 'fast'")
    config = tmp_path / "mistaken.yaml"
    config.write_text(text)
    start(config=str(config), model="", use_sim_time=True)
    stepper = Stepper(probe)
    stepper.begin()
    assert of(stepper.step(speed=2.0, distance=5.0), "brake").details.state_key.startswith("?")
    probe.wait_for_status("signals", "WARN", "predicates.moving: ")
    assert "speed is a number" in probe.text("signals")


def test_a_silent_signal_goes_stale_with_its_age(running: tuple[Probe, Stepper]) -> None:
    probe, stepper = running
    stepper.step(speed=2.0, distance=20.0)
    fresh = [of(stepper.step(distance=20.0), "brake").stale_signals for _ in range(5)]
    assert fresh == [[]] * 5, "the timeout is 0.5 s"
    stale = of(stepper.step(distance=20.0), "brake")
    assert stale.stale_signals == ["speed"]
    assert list(stale.stale_ages) == pytest.approx([0.6])
    assert stale.details.state_key.startswith("?0")
    probe.wait_for_status(f"input {ODOMETRY}", "ERROR", "stale: speed 0.6 s old")


def test_without_a_teller_a_message_counts_from_the_clock_that_was_in_force(
    running: tuple[Probe, Stepper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An age is too great by up to a period of /clock, here a tick, and never too small."""
    _, stepper = running
    monkeypatch.setattr(stepper, "tells", False)
    stepper.step(speed=2.0, distance=20.0)
    fresh = [of(stepper.step(distance=20.0), "brake").stale_signals for _ in range(4)]
    assert fresh == [[]] * 4
    stale = of(stepper.step(distance=20.0), "brake")
    assert stale.stale_signals == ["speed"]
    assert list(stale.stale_ages) == pytest.approx([0.6 - 1e-9], abs=1e-12)


def test_told_arrivals_count_between_the_last_tick_and_the_clock_alone(
    running: tuple[Probe, Stepper],
) -> None:
    from forewarn_msgs.msg import Arrivals

    probe, stepper = running
    stepper.step(speed=2.0, distance=20.0)
    stepper.report()
    ignored = int(probe.values("timing")["arrivals of the player ignored"])

    def age(*offsets_ns: int) -> float:
        """Return the age of the last of some messages at the tick at which it is stale."""
        for _ in offsets_ns:
            probe.say(ODOMETRY, 2.0)
        times = [stepper.grid.time_ns(stepper.tick) + offset for offset in offsets_ns]
        names = [ODOMETRY] * len(times)
        stepper.tell_arrivals(Arrivals(topics=[*names, "/nobody"], times_ns=[*times, 7]))
        steps = stepper.steps(7, distance=20.0)
        return next(ages[0] for step in steps if (ages := of(step, "brake").stale_ages))

    assert age(-60_000_000, -30_000_000) == pytest.approx(0.53, abs=1e-12)
    assert age(-1) == pytest.approx(0.500000001, abs=1e-12)
    stepper.report()
    assert int(probe.values("timing")["arrivals of the player ignored"]) == ignored
    now_ns = stepper.grid.time_ns(stepper.tick)
    stepper.tell_arrivals(Arrivals(topics=[ODOMETRY, DISTANCE], times_ns=[now_ns, now_ns - 5]))
    assert of(stepper.step(distance=20.0), "brake").stale_signals == ["speed"], "nothing came"
    for impossible in (1, -100_000_000):
        assert age(impossible) == pytest.approx(0.6 - 1e-9, abs=1e-12)
    stepper.report()
    assert int(probe.values("timing")["arrivals of the player ignored"]) == ignored + 2


def test_signals_supplied_by_name(start: Start, probe: Probe, world: Path, tmp_path: Path) -> None:
    from forewarn_msgs.msg import Signals

    config = tmp_path / "named.yaml"
    config.write_text(
        MONITOR.replace("{topic: /world/distance, type: std_msgs/msg/Float32, value: data, ", "{")
    )
    start(config=str(config), model="", use_sim_time=True)
    stepper = Stepper(probe)
    stepper.begin()
    message = Signals(names=["distance", "other"], values=[3.0, 1.0])
    probe.deliver(message, "/monitor/input/signals", "forewarn_msgs/msg/Signals")
    assert of(stepper.step(speed=2.0), "brake").details.state_key == "11" + "01"


def test_inputs_can_be_remapped(start: Start, probe: Probe) -> None:
    publisher = probe.publisher("/elsewhere", "std_msgs/msg/Float32")
    start("-r", f"{DISTANCE}:=/elsewhere")
    probe.wait(publisher.get_subscription_count, "a subscription to the other name")
    probe.wait(lambda: probe.level(f"input {DISTANCE}"), "a report")
    assert probe.values(f"input {DISTANCE}")["topic"] == "/elsewhere"
