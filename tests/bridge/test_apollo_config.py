"""What config/apollo.yaml derives of the vehicle, the map, lights and the plan, in plain scenes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from apollo_scenes import FRONT, Player, Scene

from apollo_bridge.layouts import own_class
from forewarn.config.file import load_spec
from forewarn.logic.specification import compile_spec


def test_the_vehicle_itself(scene: Scene) -> None:
    found = scene(
        speed=7.5,
        chassis={
            "gear_location": 2,
            "engine_started": True,
            "brake_percentage": 20.0,
            "throttle_percentage": 5.0,
            "signal": {"turn_signal": 1, "low_beam": True, "horn": False, "emergency_light": True},
        },
    )
    assert (found["speed"], found["brake"], found["throttle"]) == (7.5, 20.0, 5.0)
    assert (found["reversing"], found["engine_on"], found["automatic"]) == (True, True, True)
    assert (found["turn_signal"], found["low_beam"], found["high_beam"]) == (1, True, False)
    assert (found["horn"], found["hazard_lights"]) == (False, True)
    assert scene()["turn_signal"] == 0  # no `signal` in the message


def test_manual_intervention_and_gear(scene: Scene) -> None:
    assert scene()["manual_intervention"] is False
    found = scene(chassis={"error_code": 3, "gear_location": 1})
    assert (found["manual_intervention"], found["gear"]) == (True, 1)


def test_lanes_of_the_road(scene: Scene) -> None:
    middle = scene(x=50)
    assert (middle["lane"], middle["lane_count"], middle["lane_number"]) == ("south", 3.0, 2.0)
    left = scene(x=50, y=3.5)
    assert (left["lane"], left["lane_count"], left["lane_number"]) == ("south_left", 3.0, 3.0)
    assert scene(x=50, y=-3.5)["lane_number"] == 1.0
    assert scene(x=115)["lane_count"] == 1.0
    # No road of the map has the lane.
    assert scene(x=20, y=50)["lane_count"] is None


def test_what_planning_signals_and_perception_sees(scene: Scene) -> None:
    assert scene()["planned_turn"] == 0
    assert scene(plan={"decision": {"vehicle_signal": {"turn_signal": 2}}})["planned_turn"] == 2
    assert scene()["lights_seen"] is False
    told = own_class("apollo.perception.TrafficLightDetection")(contain_lights=True)
    assert scene(**{"/apollo/perception/traffic_light": told})["lights_seen"] is True


def test_acceleration_is_that_along_the_vehicle(player: Player) -> None:
    pose = own_class("apollo.localization.LocalizationEstimate")()
    pose.pose.heading = math.pi / 2
    pose.pose.linear_acceleration.x, pose.pose.linear_acceleration.y = 3.0, -2.0
    found = player.play({"/apollo/localization/pose": pose})
    assert found["acceleration"] == pytest.approx(-2.0)


def test_distances_ahead_count_from_the_front_bumper(scene: Scene) -> None:
    found = scene(x=50)
    assert found["lane"] == "south"
    assert found["stop_line_ahead"] == pytest.approx(95 - 50 - FRONT)
    assert found["crosswalk_ahead"] == pytest.approx(98 - 50 - FRONT)
    assert found["stop_sign_ahead"] == pytest.approx(200 - 50 - FRONT)
    assert found["junction_ahead"] == pytest.approx(105 - 50 - FRONT)
    assert (found["in_junction"], found["speed_limit"], found["lane_turn"]) == (False, 15.0, 1.0)


def test_beside_the_lane_centre_and_at_an_angle_the_distance_is_along_the_lane(
    scene: Scene,
) -> None:
    found = scene(x=50, y=1.2, heading=0.2)
    assert found["stop_line_ahead"] == pytest.approx(95 - 50 - FRONT)


def test_what_is_passed_is_not_ahead_any_more(scene: Scene) -> None:
    found = scene(x=110)
    assert (found["stop_line_ahead"], found["crosswalk_ahead"]) == (math.inf, math.inf)
    assert found["in_junction"] is True
    assert found["junction_ahead"] == pytest.approx(-FRONT)


def test_the_route_decides_at_a_fork(scene: Scene) -> None:
    # To the left there is no stop sign; the arc enters the junction where 30 sin(a) = 5.
    left = scene(x=90, route=("south", "left", "north"))
    assert left["stop_sign_ahead"] == math.inf
    assert left["junction_ahead"] == pytest.approx(10 + 30 * math.asin(5 / 30) - FRONT, abs=0.01)
    straight = scene(x=90, route=("south", "through"))
    assert straight["stop_sign_ahead"] == pytest.approx(110 - FRONT)
    # Without a route it is the lane that turns least.
    assert scene(x=90)["stop_sign_ahead"] == straight["stop_sign_ahead"]


def test_turning_and_turning_around(scene: Scene) -> None:
    a = math.pi / 4
    on_arc = scene(
        x=100 + 30 * math.sin(a), y=30 - 30 * math.cos(a), heading=a, route=("left", "north")
    )
    assert (on_arc["lane"], on_arc["turning"], on_arc["turning_around"]) == ("left", True, False)
    assert on_arc["speed_limit"] == 8.0
    around = scene(x=20, y=50)
    assert (around["turning"], around["turning_around"]) == (False, True)
    assert scene()["turning"] is False


def test_beside_all_lanes_the_map_says_nothing(scene: Scene) -> None:
    found = scene(x=50, y=20)
    assert found["lane"] == ""
    for name in ("path", "stop_line_ahead", "speed_limit", "npc_ahead", "red_ahead"):
        assert found[name] is None, name
    assert found["? red_close"] is None


def test_driving_against_the_lane_is_beside_all_lanes(scene: Scene) -> None:
    assert scene(x=50, heading=math.pi)["lane"] == ""


def test_lights_ahead_are_those_at_the_next_stop_line(scene: Scene) -> None:
    red = scene(x=88, lights=(("light_a", 1, False), ("elsewhere", 3, True)))
    assert set(red["governing_lights"]) == {"light_a", "light_b"}
    assert (red["red_ahead"], red["yellow_ahead"], red["green_ahead"]) == (True, False, False)
    assert red["blink_ahead"] is False
    assert red["? red_close"] is True  # 95 - 88 - 3.89 = 3.11 m
    yellow = scene(x=88, lights=(("light_b", 2, True),))
    assert (yellow["red_ahead"], yellow["yellow_ahead"], yellow["blink_ahead"]) == (
        False,
        True,
        True,
    )
    assert scene(x=88, lights=(("light_b", 3, False),))["green_ahead"] is True
    assert scene(x=50, lights=(("light_a", 1, False),))["? red_close"] is False  # 41.11 m
    elsewhere = scene(x=50, lights=(("elsewhere", 1, False),))
    assert (elsewhere["red_ahead"], elsewhere["? red_close"]) == (None, False)


@pytest.mark.parametrize("lights", [(), (("elsewhere", 3, False),), (("light_a", 0, False),)])
def test_a_light_that_nobody_sees_or_can_tell_is_not_taken_for_no_red_light(
    scene: Scene, lights: tuple[tuple[str, int, bool], ...]
) -> None:
    found = scene(x=88, lights=lights)
    for name in ("red_ahead", "yellow_ahead", "green_ahead", "? red_close"):
        assert found[name] is None, name
    seen = scene(x=88, lights=(*lights, ("light_b", 1, False)))
    assert (seen["red_ahead"], seen["? red_close"]) == (True, True)


def test_obstacles_of_a_perception_with_an_error_are_unknown(scene: Scene) -> None:
    blind = own_class("apollo.perception.PerceptionObstacles")(error_code=4000)
    for seen, near, far in ((blind, None, None), (None, False, math.inf)):
        others = {} if seen is None else {"/apollo/perception/obstacles": seen}
        found = scene(x=50, **others)
        assert found["npc_ahead"] == far
        assert found["? following_close"] is near


@pytest.mark.parametrize(("kind", "counts"), [(0, True), (1, True), (2, False), (5, True)])
def test_what_may_be_a_vehicle_counts_as_one(scene: Scene, kind: int, counts: bool) -> None:
    found = scene(x=50, speed=10, objects=({"at": (60, 0), "type": kind},))
    assert found["? following_close"] is counts


def test_standing_stop_signs_and_who_goes_first(scene: Scene) -> None:
    assert scene(speed=0.29)["? stopped"] is True
    assert scene(speed=0.3)["? stopped"] is False
    # The stop line is at x = 200: 3.99 m and 4.11 m ahead of the front.
    assert scene(x=200 - FRONT - 3.99)["? stop_sign_close"] is True
    assert scene(x=200 - FRONT - 4.11)["? stop_sign_close"] is False
    coming = ({"at": (115, -22.0), "theta": math.pi / 2, "velocity": (0.0, 8.0)},)
    assert scene(x=92, objects=coming)["? npc_first"] is True  # 105 - 92 - 3.89 = 9.11 m
    assert scene(x=90, objects=coming)["? npc_first"] is False  # 11.11 m
    assert scene(x=92)["? npc_first"] is False


def test_what_planning_says(scene: Scene) -> None:
    stop = {"decision": {"main_decision": {"stop": {"reason_code": 100}}}}
    obstacle = {"decision": {"main_decision": {"stop": {"reason_code": 4}}}}
    assert scene(plan=stop)["stops_for_light"] is True
    assert scene(plan=obstacle)["stops_for_light"] is False
    assert scene()["stops_for_light"] is False
    assert scene(plan={"estop": {"is_estop": True}})["planned_estop"] is True
    assert scene()["planned_estop"] is False
    pad = own_class("apollo.planning.PadMessage")
    assert scene()["asked_to_stop"] is False
    assert scene(**{"/apollo/planning/pad": pad(action=4)})["asked_to_stop"] is True
    assert scene(**{"/apollo/planning/pad": pad(action=5)})["asked_to_stop"] is False


def test_speeding_counts_from_five_percent(scene: Scene) -> None:
    assert scene(x=50, speed=15.7)["? speeding"] is False
    assert scene(x=50, speed=15.8)["? speeding"] is True
    assert scene(x=150, speed=15.8)["? speeding"] is False  # 20 m/s on the lane `east`


def test_the_real_map(repository: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shared_data / "apollo" / "borregas_ave.base_map.bin"
    monkeypatch.setenv("APOLLO_MAP", str(path))
    spec = load_spec(repository / "config" / "apollo.yaml")
    player = Player(spec, compile_spec(spec).abstraction)
    pose = own_class("apollo.localization.LocalizationEstimate")()
    # On lane_19, which goes from (586983.6, 4141309.5) to (587039.4, 4141519.9) over 217.7 m, 30 m
    # before its end; there lane_29 (right) and lane_31 (straight) fork off towards signal_1.
    world = own_class("apollo.hdmap.Map").FromString(path.read_bytes())
    lane = next(item for item in world.lane if item.id.id == "lane_19")
    points = [p for s in lane.central_curve.segment for p in s.line_segment.point]
    (ax, ay), (bx, by) = ((p.x, p.y) for p in points[-2:])
    length = math.hypot(bx - ax, by - ay)
    ux, uy = (bx - ax) / length, (by - ay) / length
    pose.pose.position.x, pose.pose.position.y = bx - 30 * ux, by - 30 * uy
    pose.pose.heading = math.atan2(uy, ux)
    plan = own_class("apollo.planning.ADCTrajectory")()
    plan.lane_id.add(id="lane_31")
    values = player.play({"/apollo/localization/pose": pose, "/apollo/planning": plan})
    assert values["lane"] == "lane_19"
    assert values["speed_limit"] == pytest.approx(15.646, abs=1e-3)
    assert "signal_1" in values["governing_lights"]
    # From the end of lane_19 at (587039.4, 4141519.9), lane_31 meets the stop line, which runs
    # through (587044.4, 4141560.2) and (587049.4, 4141558.9), near (587046.9, 4141559.6).
    straight = math.hypot(587046.9 - 587039.4, 4141559.6 - 4141519.9)
    assert values["stop_line_ahead"] == pytest.approx(30 + straight - FRONT, abs=1.0)
