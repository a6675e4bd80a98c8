"""Scenes for config/apollo.yaml: a map and messages whose numbers are plain.

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
from forewarn.config.file import MonitorSpec, load_spec
from forewarn.logic.specification import compile_spec
from forewarn.states.inputs import open_feed

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
    for item in after:
        lane.successor_id.add(id=item)


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
    lanes = {item.id.id: item for item in world.lane}
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
def scene_spec(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> MonitorSpec:
    path = write_map(tmp_path_factory.mktemp("map") / "base_map.bin")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("APOLLO_MAP", str(path))
        spec = load_spec(repository / "config" / "apollo.yaml")
        compile_spec(spec)
    return spec.model_copy(
        update={
            "shapes": {
                name: shape.model_copy(update={"file": str(path)})
                for name, shape in spec.shapes.items()
            }
        }
    )


@pytest.fixture(scope="module")
def scene_abstraction(scene_spec: MonitorSpec) -> Any:
    return compile_spec(scene_spec).abstraction


class Player:
    """Plays scenes one after the other, 10 s apart: by then, all of the one before is stale."""

    def __init__(self, spec: MonitorSpec, abstraction: Any) -> None:
        types = {c: own_pool().message_type(name) for c, name in spec.topics.items()}
        self.abstraction = abstraction
        self.feed = open_feed(spec, abstraction, types)
        self.now_ns = NOW

    def play(self, messages: dict[str, Any]) -> Values:
        self.now_ns += 10_000_000_000
        for channel, message in messages.items():
            self.feed.accept(channel, self.now_ns, message.SerializeToString())
        tick = self.feed.clock.tick_at_or_after(self.now_ns)
        values, *_ = self.abstraction.complete(self.feed.snapshot(tick).values)
        found = dict(zip(self.abstraction.signals, values, strict=True))
        observation = self.abstraction.evaluate(values)
        for at, name in enumerate(self.abstraction.vocabulary.predicates):
            known = observation.known >> at & 1
            found[f"? {name}"] = bool(observation.mask >> at & 1) if known else None
        return found


@pytest.fixture(scope="module")
def player(scene_spec: MonitorSpec, scene_abstraction: Any) -> Player:
    return Player(scene_spec, scene_abstraction)


@pytest.fixture
def scene(player: Player) -> Scene:
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
        for one_object in objects:
            it = seen.perception_obstacle.add(
                type=one_object.get("type", 5),
                theta=one_object.get("theta", 0.0),
                length=one_object.get("length", 4),
            )
            it.position.x, it.position.y = one_object["at"]
            it.velocity.x, it.velocity.y = one_object.get("velocity", (0.0, 0.0))
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
        return player.play(
            {
                "/apollo/canbus/chassis": car,
                "/apollo/localization/pose": pose,
                "/apollo/perception/obstacles": seen,
                "/apollo/perception/traffic_light": told,
                "/apollo/planning": planned,
                "/apollo/prediction": future,
                **others,
            }
        )

    return build
