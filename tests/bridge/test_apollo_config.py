"""LawBreaker's variables as config/apollo.yaml derives them, in scenes whose numbers are plain.

The map of the scenes: lane ``south`` runs from (0, 0) east to (100, 0) and goes on as ``through``
(to (130, 0)), then ``east`` (to (300, 0)); at (100, 0) ``left`` forks off, a quarter circle of
radius 30 m about (100, 30) to ``north`` at x = 130. The junction is the square from (105, -15) to
(125, 15), the crosswalk lies between x = 98 and x = 102, the lights' stop line is at x = 95 and a
stop sign's at x = 200. The front bumper is 3.89 m ahead of the position.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apollo_bridge.layouts import own_class, own_pool
from forewarn.config import MonitorSpec, load_spec
from forewarn.predicates.inputs import open_feed
from forewarn.properties.specification import compile_spec

FRONT = 3.89
NOW = 1_000_000_000_000
Values = dict[str, Any]
Scene = Callable[..., Values]


def curve(target: Any, points: list[tuple[float, float]]) -> None:
    segment = target.segment.add()
    for x, y in points:
        segment.line_segment.point.add(x=x, y=y)


def add_lane(
    world: Any, name: str, points: list[tuple[float, float]], turn: int, limit: float, *after: str
) -> None:
    lane = world.lane.add(turn=turn, speed_limit=limit)
    lane.id.id = name
    curve(lane.central_curve, points)
    for each in after:
        lane.successor_id.add(id=each)


def write_map(path: Path) -> Path:
    world = own_class("apollo.hdmap.Map")()
    quarter = [
        (100 + 30 * math.sin(a), 30 - 30 * math.cos(a)) for a in np.linspace(0, math.pi / 2, 91)
    ]
    add_lane(world, "south", [(0, 0), (100, 0)], 1, 15.0, "left", "through")
    add_lane(world, "through", [(100, 0), (130, 0)], 1, 15.0, "east")
    add_lane(world, "east", [(130, 0), (300, 0)], 1, 20.0)
    add_lane(world, "left", quarter, 2, 8.0, "north")
    add_lane(world, "north", [(130, 30), (130, 230)], 1, 15.0)
    add_lane(world, "uturn", [(0, 50), (40, 50)], 4, 5.0)
    # South has a lane on either side, of one road with it.
    add_lane(world, "south_left", [(0, 3.5), (100, 3.5)], 1, 15.0)
    add_lane(world, "south_right", [(0, -3.5), (100, -3.5)], 1, 15.0)
    lanes = {each.id.id: each for each in world.lane}
    lanes["south_left"].right_neighbor_forward_lane_id.add(id="south")
    lanes["south"].right_neighbor_forward_lane_id.add(id="south_right")
    lanes["south"].left_neighbor_forward_lane_id.add(id="south_left")
    lanes["south_right"].left_neighbor_forward_lane_id.add(id="south")
    for members in (("south_right", "south", "south_left"), ("through",)):
        section = world.road.add().section.add()
        for name in members:
            section.lane_id.add(id=name)
    for name in ("light_a", "light_b"):
        signal = world.signal.add()
        signal.id.id = name
        curve(signal.stop_line.add(), [(95, -4), (95, 4)])
    sign = world.stop_sign.add()
    sign.id.id = "stop"
    curve(sign.stop_line.add(), [(200, -4), (200, 4)])
    for layer, name, (x0, y0, x1, y1) in (
        (world.crosswalk, "zebra", (98, -8, 102, 8)),
        (world.junction, "crossing", (105, -15, 125, 15)),
    ):
        area = layer.add()
        area.id.id = name
        for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1)):
            area.polygon.point.add(x=x, y=y)
    path.write_bytes(world.SerializeToString())
    return path


@pytest.fixture(scope="module")
def spec(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> MonitorSpec:
    path = write_map(tmp_path_factory.mktemp("map") / "base_map.bin")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("APOLLO_MAP", str(path))
        spec = load_spec(repository / "config" / "apollo.yaml")
        compile_spec(spec)
    return spec.model_copy(
        update={
            "shapes": {
                name: each.model_copy(update={"file": str(path)})
                for name, each in spec.shapes.items()
            }
        }
    )


@pytest.fixture(scope="module")
def abstraction(spec: MonitorSpec) -> Any:
    return compile_spec(spec).abstraction


def values_of(spec: MonitorSpec, abstraction: Any, messages: dict[str, Any]) -> Values:
    types = {c: own_pool().message_type(name) for c, name in spec.topics.items()}
    feed = open_feed(spec, abstraction, types)
    for channel, message in messages.items():
        feed.accept(channel, NOW, message.SerializeToString())
    values, _ = abstraction.complete(feed.snapshot(feed.grid.tick_at_or_after(NOW)).values)
    found = dict(zip(abstraction.signals, values, strict=True))
    observation = abstraction.evaluate(values)
    for at, name in enumerate(abstraction.vocabulary.predicates):
        known = observation.known >> at & 1
        found[f"? {name}"] = bool(observation.mask >> at & 1) if known else None
    return found


@pytest.fixture
def scene(spec: MonitorSpec, abstraction: Any) -> Scene:
    """Return a maker of scenes: the values of all signals, and of predicates under '? name'."""

    def build(
        x: float = 50.0,
        y: float = 0.0,
        heading: float = 0.0,
        speed: float = 10.0,
        objects: tuple[dict[str, Any], ...] = (),
        lights: tuple[tuple[str, int, bool], ...] = (),
        route: tuple[str, ...] = (),
        plan: dict[str, Any] | None = None,
        chassis: dict[str, Any] | None = None,
        predicted: tuple[tuple[float, float, float], ...] = (),
        **others: Any,
    ) -> Values:
        car = own_class("apollo.canbus.Chassis")(speed_mps=speed, driving_mode=1, **(chassis or {}))
        pose = own_class("apollo.localization.LocalizationEstimate")()
        pose.pose.position.x, pose.pose.position.y, pose.pose.heading = x, y, heading
        seen = own_class("apollo.perception.PerceptionObstacles")()
        for each in objects:
            it = seen.perception_obstacle.add(
                type=each.get("type", 5), theta=each.get("theta", 0.0), length=each.get("length", 4)
            )
            it.position.x, it.position.y = each["at"]
            it.velocity.x, it.velocity.y = each.get("velocity", (0.0, 0.0))
        told = own_class("apollo.perception.TrafficLightDetection")()
        for name, colour, blink in lights:
            told.traffic_light.add(id=name, color=colour, blink=blink)
        planned = own_class("apollo.planning.ADCTrajectory")(**(plan or {}))
        planned.right_of_way_status = planned.right_of_way_status or 0
        for name in route:
            planned.lane_id.add(id=name)
        future = own_class("apollo.prediction.PredictionObstacles")()
        if predicted:
            one = future.prediction_obstacle.add()
            one.perception_obstacle.type = 5
            trajectory = one.trajectory.add()
            for time, px, py in predicted:
                point = trajectory.trajectory_point.add(relative_time=time)
                point.path_point.x, point.path_point.y = px, py
        return values_of(
            spec,
            abstraction,
            {
                "/apollo/canbus/chassis": car,
                "/apollo/localization/pose": pose,
                "/apollo/perception/obstacles": seen,
                "/apollo/perception/traffic_light": told,
                "/apollo/planning": planned,
                "/apollo/prediction": future,
                **others,
            },
        )

    return build


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


def test_acceleration_is_that_along_the_vehicle(spec: MonitorSpec, abstraction: Any) -> None:
    pose = own_class("apollo.localization.LocalizationEstimate")()
    pose.pose.heading = math.pi / 2
    pose.pose.linear_acceleration.x, pose.pose.linear_acceleration.y = 3.0, -2.0
    found = values_of(spec, abstraction, {"/apollo/localization/pose": pose})
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
    assert scene(x=88, lights=(("elsewhere", 1, False),))["red_ahead"] is False


def test_the_nearest_vehicle_in_our_lane(scene: Scene) -> None:
    found = scene(
        x=50,
        objects=(
            {"at": (80, 0.5), "velocity": (4, 3), "length": 5},
            {"at": (70, 3.5), "velocity": (9, 0)},  # the next lane
            {"at": (40, 0.0), "velocity": (9, 0)},  # behind us
            {"at": (60, 0.0), "type": 3},  # a pedestrian
            {"at": (90, 0.0), "velocity": (8, 0)},  # further ahead
        ),
    )
    assert found["npc_ahead"] == pytest.approx(80 - 50 - 5 / 2 - FRONT)
    assert found["npc_ahead_speed"] == pytest.approx(5.0)
    assert found["pedestrian_ahead"] == pytest.approx(10 - FRONT)
    nobody = scene(x=50)
    assert (nobody["npc_ahead"], nobody["npc_ahead_speed"]) == (math.inf, math.inf)


def test_a_vehicle_around_the_bend_is_ahead_on_the_route(scene: Scene) -> None:
    found = scene(x=90, route=("left", "north"), objects=({"at": (130, 60)},))
    arc = 30 * math.pi / 2
    assert found["npc_ahead"] == pytest.approx(10 + arc + 30 - 2 - FRONT, abs=0.01)
    assert scene(x=90, objects=({"at": (130, 60)},))["npc_ahead"] == math.inf


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


def test_vehicles_around_us(scene: Scene) -> None:
    # We are at (50, 0) and look east: our front is at x = 53.89, our rear at x = 48.96.
    around = (
        {"at": (52, 3.5), "velocity": (9, 0)},  # beside us in the left lane
        {"at": (46, -3.0), "velocity": (3, 4)},  # beside us in the right lane, 5 m away
        {"at": (38, 0.5), "velocity": (6, 8), "length": 5},  # behind us
        {"at": (30, 0.0), "velocity": (5, 0)},  # further behind
        {"at": (80, 6.0), "velocity": (-12, 5), "theta": math.pi, "length": 6},  # comes towards us
        {"at": (90, 6.0), "velocity": (-3, 0), "theta": 2.9},
        {"at": (51, 0.5), "type": 3},  # a pedestrian is no vehicle
    )
    found = scene(x=50, objects=around)
    assert found["nearest_npc"] == pytest.approx(math.sqrt(2 * 2 + 3.5 * 3.5))
    assert found["nearest_npc_speed"] == 9.0
    assert scene(x=50, objects=around[1:])["nearest_npc"] == pytest.approx(5.0)
    assert scene(x=50, objects=around[1:])["nearest_npc_speed"] == pytest.approx(5.0)
    assert (found["npc_left"], found["npc_right"]) == (pytest.approx(3.5), pytest.approx(3.0))
    assert found["npc_back"] == pytest.approx(50 - 38 - 5 / 2 - 1.04)
    assert found["npc_back_speed"] == pytest.approx(10.0)
    assert found["npc_opposite"] == pytest.approx(80 - 50 - 6 / 2 - FRONT)
    assert found["npc_opposite_speed"] == pytest.approx(13.0)
    assert found["npc_ahead"] == math.inf
    nobody = scene(x=50)
    for name in ("nearest_npc", "npc_left", "npc_right", "npc_back", "npc_opposite"):
        assert nobody[name] == math.inf, name
        assert nobody.get(f"{name}_speed", math.inf) == math.inf, name


def test_left_and_right_turn_with_us(scene: Scene) -> None:
    # We are at (130, 80) and look north: left is towards smaller x.
    beside = ({"at": (127, 82)}, {"at": (134.5, 79)}, {"at": (130, 70), "length": 4})
    found = scene(x=130, y=80, heading=math.pi / 2, objects=beside)
    assert (found["npc_left"], found["npc_right"]) == (pytest.approx(3.0), pytest.approx(4.5))
    assert found["npc_back"] == pytest.approx(10 - 2 - 1.04)


@pytest.mark.parametrize("at", [(60, 3.5), (43, 3.5), (50, 5.3), (50, 1.7)])
def test_who_is_not_beside_us_is_not_left_of_us(scene: Scene, at: tuple[float, float]) -> None:
    # Ahead of the front, behind the rear, two lanes away, in our own lane.
    assert scene(x=50, objects=({"at": at},))["npc_left"] == math.inf


def test_following_close(scene: Scene) -> None:
    # The gap is 70 - 50 - 2 - 3.89 = 14.11 m.
    ahead = ({"at": (70, 0.0), "velocity": (10, 0)},)
    assert scene(x=50, speed=14.0, objects=ahead)["? following_close"] is False
    assert scene(x=50, speed=14.5, objects=ahead)["? following_close"] is True


def test_pedestrians_on_the_next_crosswalk_have_priority(scene: Scene) -> None:
    on_it = ({"at": (100, -5.0), "type": 3},)
    assert scene(x=80, objects=on_it)["priority_pedestrians"] is True
    assert scene(x=90, objects=on_it)["? pedestrians_first"] is True  # 98 - 90 - 3.89 = 4.11 m
    assert scene(x=50, objects=on_it)["? pedestrians_first"] is False  # 44.11 m
    at_the_kerb = ({"at": (100, -8.9), "type": 3},)
    assert scene(x=80, objects=at_the_kerb)["priority_pedestrians"] is True
    for elsewhere in ({"at": (100, -9.1), "type": 3}, {"at": (85, 0.0), "type": 3}):
        assert scene(x=80, objects=(elsewhere,))["priority_pedestrians"] is False
    vehicle = ({"at": (100, -5.0), "type": 5},)
    assert scene(x=80, objects=vehicle)["priority_pedestrians"] is False


def test_a_vehicle_of_another_direction_has_priority_where_we_have_no_right_of_way(
    scene: Scene,
) -> None:
    coming = ({"at": (115, -22.0), "theta": math.pi / 2, "velocity": (0.0, 8.0)},)  # 7 m before it
    assert scene(x=90, objects=coming)["priority_npc"] is True
    protected = {"right_of_way_status": 1}
    assert scene(x=90, objects=coming, plan=protected)["priority_npc"] is False
    assert scene(x=50, objects=coming)["priority_npc"] is False  # the junction is 51 m away
    for other in (
        {"at": (115, -22.0), "theta": math.pi / 2},  # standing
        {"at": (115, -26.0), "theta": math.pi / 2, "velocity": (0.0, 8.0)},  # 11 m before it
        {"at": (115, 0.0), "theta": 0.1, "velocity": (8.0, 0.0)},  # our direction
    ):
        assert scene(x=90, objects=(other,))["priority_npc"] is False


def test_a_predicted_crossing_of_our_path(scene: Scene) -> None:
    crossing = tuple((t, 115.0, -20.0 + 8.0 * t) for t in (0.0, 1.0, 2.0, 2.5, 3.0))
    assert scene(x=90, predicted=crossing)["crossing_npc"] is True
    assert scene(x=60, predicted=crossing)["crossing_npc"] is False  # 55 m ahead
    late = tuple((t, 115.0, -20.0 + 5.0 * t) for t in (0.0, 1.0, 2.0, 3.0, 4.0))
    assert scene(x=90, predicted=late)["crossing_npc"] is False  # there after 3 s only


def test_lane_changes_and_overtaking(scene: Scene) -> None:
    changing = {"decision": {"main_decision": {"change_lane": {"type": 1}}}}
    cruising = {"decision": {"main_decision": {"cruise": {"change_lane_type": 2}}}}
    keeping = {"decision": {"main_decision": {"cruise": {"change_lane_type": 0}}}}
    slow = ({"at": (80, 0.0), "velocity": (4.0, 0.0)},)
    assert scene(plan=changing)["lane_changing"] is True
    assert scene(plan=cruising)["lane_changing"] is True
    assert scene(plan=keeping)["lane_changing"] is False
    assert scene(plan=changing, objects=slow)["overtaking"] is True
    assert scene(plan=keeping, objects=slow)["overtaking"] is False
    assert scene(plan=changing)["overtaking"] is False
    fast = ({"at": (80, 0.0), "velocity": (14.0, 0.0)},)
    assert scene(plan=changing, objects=fast)["overtaking"] is False


def test_a_traffic_jam_is_two_standing_vehicles_ahead(scene: Scene) -> None:
    queue = ({"at": (70, 0.0), "velocity": (1.0, 0.0)}, {"at": (77, 0.0)})
    assert scene(x=50, objects=queue)["traffic_jam"] is True
    assert scene(x=50, objects=queue[:1])["traffic_jam"] is False
    moving = (queue[0], {"at": (77, 0.0), "velocity": (3.0, 0.0)})
    assert scene(x=50, objects=moving)["traffic_jam"] is False
    assert scene(x=20, objects=queue)["traffic_jam"] is False  # 50 m and more


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
    found = compile_spec(spec).abstraction
    pose = own_class("apollo.localization.LocalizationEstimate")()
    # On lane_19, which goes from (586983.6, 4141309.5) to (587039.4, 4141519.9) over 217.7 m, 30 m
    # before its end; there lane_29 (right) and lane_31 (straight) fork off towards signal_1.
    world = own_class("apollo.hdmap.Map").FromString(path.read_bytes())
    lane = next(each for each in world.lane if each.id.id == "lane_19")
    points = [p for s in lane.central_curve.segment for p in s.line_segment.point]
    (ax, ay), (bx, by) = ((p.x, p.y) for p in points[-2:])
    length = math.hypot(bx - ax, by - ay)
    ux, uy = (bx - ax) / length, (by - ay) / length
    pose.pose.position.x, pose.pose.position.y = bx - 30 * ux, by - 30 * uy
    pose.pose.heading = math.atan2(uy, ux)
    plan = own_class("apollo.planning.ADCTrajectory")()
    plan.lane_id.add(id="lane_31")
    values = values_of(spec, found, {"/apollo/localization/pose": pose, "/apollo/planning": plan})
    assert values["lane"] == "lane_19"
    assert values["speed_limit"] == pytest.approx(15.646, abs=1e-3)
    assert "signal_1" in values["governing_lights"]
    # From the end of lane_19 at (587039.4, 4141519.9), lane_31 meets the stop line, which runs
    # through (587044.4, 4141560.2) and (587049.4, 4141558.9), near (587046.9, 4141559.6).
    straight = math.hypot(587046.9 - 587039.4, 4141559.6 - 4141519.9)
    assert values["stop_line_ahead"] == pytest.approx(30 + straight - FRONT, abs=1.0)
