"""What config/apollo.yaml derives of the others on the road, in plain scenes."""

from __future__ import annotations

import math

import pytest
from apollo_scenes import FRONT, Scene


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
