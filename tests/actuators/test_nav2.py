"""The actuator for Nav2 against a stand-in controller server, action server and twist_mux."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from acting import Live, alert, calm
from live_ros import Probe
from planners import Planner

pytestmark = pytest.mark.ros
NAV2 = "{nav2: {confirm_timeout: 0.5}}"
LOCKING = (
    "{nav2: {confirm_timeout: 0.5, lock_topic: /lock, comfortable_stop: [lock],"
    " emergency_stop: [lock, cancel]}}"
)


def test_a_limit_then_a_cancelled_goal_and_the_way_back(live: Callable[..., Live]) -> None:
    probe, stepper, planner = live(NAV2, goals=2)
    stepper.steps(5, speed=3.0, distance=30.0)
    assert not planner.of("speed") + planner.of("cancel") + planner.of("lock")
    alert(stepper, 2)
    speed = planner.wait("speed")
    assert (speed["percentage"], speed["speed_limit"]) == (False, 1.25)
    assert speed["header"]["stamp"] != {"sec": 0, "nanosec": 0}
    probe.wait_for_status("actuator nav2", "OK", "LIMIT_SPEED: 1.25 m/s: taken up")
    alert(stepper, 3)
    cancel = planner.wait("cancel")
    assert cancel["goal_info"]["goal_id"]["uuid"] == [0] * 16
    assert cancel["goal_info"]["stamp"] == {"sec": 0, "nanosec": 0}
    probe.wait_for_status("actuator nav2", "OK", "COMFORTABLE_STOP by cancel: taken up")
    assert {m["speed_limit"] for m in planner.of("speed")} == {1.25}
    calm(stepper)
    # 0.0 means no limit here: it ends the one that we set, and nothing else.
    planner.wait("speed", lambda m: m["speed_limit"] == 0.0)
    probe.wait_for_status("actuator nav2", "OK", "nothing is asked for")
    asked = planner.count("cancel")
    planner.tell(goals=1)
    stepper.steps(5, speed=3.0, distance=30.0)
    assert planner.count("cancel") == asked, "a goal given afterwards is nobody's business"
    alert(stepper, 3)
    probe.wait(lambda: planner.count("cancel") > asked, "its cancellation during a stop")


def limit(probe: Probe, planner: Planner, speed: float, *, percentage: bool) -> None:
    """Set the limit of somebody else, and wait until the actuator knows of one."""
    while probe.values("actuator nav2")["limit of others"] == "none":
        # The two may not have found each other yet.
        planner.tell(other={"percentage": percentage, "speed_limit": speed})
        reports = probe.reports
        probe.wait(lambda known=reports: probe.reports > known + 1, "reports")


def test_the_limit_of_another_is_given_back(live: Callable[..., Live]) -> None:
    probe, stepper, planner = live(NAV2)
    stepper.step(speed=3.0, distance=30.0)
    probe.wait_for_status("actuator nav2", "OK")
    limit(probe, planner, 60.0, percentage=True)
    assert probe.values("actuator nav2")["limit of others"] == "60 %"
    alert(stepper, 2)
    planner.wait("speed", lambda m: m["speed_limit"] == 1.25)
    probe.wait_for_status("actuator nav2", "ERROR", "set actuators.nav2.max_speed")
    calm(stepper)
    speed = planner.wait("speed", lambda m: m["speed_limit"] != 1.25)
    assert (speed["percentage"], speed["speed_limit"]) == (True, 60.0)


def test_somebody_who_takes_the_limit_off_is_overruled(live: Callable[..., Live]) -> None:
    probe, stepper, planner = live(NAV2)
    alert(stepper, 2)
    planner.wait("speed")
    known = planner.count("speed")
    planner.tell(other={"percentage": False, "speed_limit": 0.0})
    probe.wait(
        lambda: [m["speed_limit"] for m in planner.of("speed")[known:]][-2:] == [0.0, 1.25],
        "our limit after theirs",
    )
    known = planner.count("speed")
    planner.tell(other={"percentage": False, "speed_limit": 0.5})  # stricter: it stays
    probe.wait_for_status("actuator nav2", "OK", "taken up")
    probe.wait(lambda: planner.count("speed") >= known + 4, "repetitions")
    assert {m["speed_limit"] for m in planner.of("speed")[known + 1 :]} == {0.5}
    planner.tell(other={"percentage": False, "speed_limit": 2.0})
    probe.wait(lambda: planner.of("speed")[-1]["speed_limit"] == 1.25, "our limit again")


def test_a_lock_is_told_at_every_tick_for_its_silence_locks(live: Callable[..., Live]) -> None:
    probe, stepper, planner = live(LOCKING, goals=1)
    while not planner.count("lock"):  # the two have to find each other
        stepper.step(speed=3.0, distance=30.0)
    known = planner.count("lock")
    stepper.steps(4, speed=3.0, distance=30.0)
    probe.wait(lambda: planner.count("lock") >= known + 4, "four ticks")
    assert not any(m["data"] for m in planner.of("lock"))
    alert(stepper, 3)
    planner.wait("lock", lambda m: m["data"] is True)
    assert not planner.of("cancel")
    probe.wait_for_status("actuator nav2", "OK", "COMFORTABLE_STOP by lock: taken up")
    alert(stepper, 4)
    planner.wait("cancel")
    probe.wait_for_status("actuator nav2", "OK", "EMERGENCY_STOP by lock and cancel: taken up")
    calm(stepper)
    planner.wait("lock", lambda m: m["data"] is False)


def test_what_is_not_taken_up_becomes_an_error(live: Callable[..., Live]) -> None:
    probe, stepper, planner = live(NAV2, goals=1, without_server=True, refuse=True)
    alert(stepper, 2)
    probe.wait_for_status("actuator nav2", "ERROR", "no node subscribes to /speed_limit")
    alert(stepper, 3)
    probe.wait_for_status("actuator nav2", "ERROR", "the cancellation was rejected")
    planner.tell(refuse=False, failing=True)
    probe.wait_for_status("actuator nav2", "ERROR", "1 goals are active")
    planner.tell(failing=False)
    probe.wait_for_status("actuator nav2", "OK", "taken up")
