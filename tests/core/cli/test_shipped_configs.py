"""The monitor files for Autoware and Nav2, without either installed.

The definitions below are stand-ins: the fields that the files read, under the names that
autoware_msgs and navigation2 give them, with as little around them as the layout needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from forewarn.cli import main
from forewarn.config.file import load_spec
from forewarn.learning.observing import observe
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.messages.definitions import message_type
from forewarn.messages.extraction import compile_extractor
from forewarn.recordings.registry import open_recording
from forewarn.recordings.writing import RecordingWriter
from forewarn.signals.sources import stored_value
from forewarn.states.predicates.validity import build_validity

START_NS = 1_700_000_000_000_000_000
STAND_INS = {
    "autoware_vehicle_msgs/msg/VelocityReport": """
        std_msgs/Header header
        float32 longitudinal_velocity
        float32 lateral_velocity
        float32 heading_rate""",
    "autoware_vehicle_msgs/msg/ControlModeReport": """
        uint8 AUTONOMOUS = 1
        builtin_interfaces/Time stamp
        uint8 mode""",
    "autoware_perception_msgs/msg/ObjectClassification": "uint8 label\nfloat32 probability",
    "autoware_perception_msgs/msg/PredictedObjectKinematics": """
        geometry_msgs/PoseWithCovariance initial_pose_with_covariance
        geometry_msgs/TwistWithCovariance initial_twist_with_covariance""",
    "autoware_perception_msgs/msg/Shape": "uint8 type\ngeometry_msgs/Vector3 dimensions",
    "autoware_perception_msgs/msg/PredictedObject": """
        float32 existence_probability
        ObjectClassification[] classification
        PredictedObjectKinematics kinematics
        Shape shape""",
    "autoware_perception_msgs/msg/PredictedObjects": """
        std_msgs/Header header
        PredictedObject[] objects""",
    "autoware_perception_msgs/msg/TrafficLightElement": """
        uint8 color
        uint8 shape
        uint8 status
        float32 confidence""",
    "autoware_perception_msgs/msg/TrafficLightGroup": """
        int64 traffic_light_group_id
        TrafficLightElement[] elements""",
    "autoware_perception_msgs/msg/TrafficLightGroupArray": """
        builtin_interfaces/Time stamp
        TrafficLightGroup[] traffic_light_groups""",
    "autoware_planning_msgs/msg/TrajectoryPoint": """
        geometry_msgs/Pose pose
        float32 longitudinal_velocity_mps""",
    "autoware_planning_msgs/msg/Trajectory": """
        std_msgs/Header header
        TrajectoryPoint[] points""",
    "nav2_msgs/msg/CollisionMonitorState": "uint8 action_type\nstring polygon_name",
}


@pytest.fixture(scope="module")
def store() -> Any:
    found = get_typestore(Stores.ROS2_HUMBLE)
    for name, text in STAND_INS.items():
        plain = "\n".join(line.strip() for line in text.splitlines())
        found.register(get_types_from_msg(plain, name))
    return found


class Maker:
    """Makes messages by field name; what is left out is zero."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def __call__(self, name: str, **values: Any) -> Any:
        _, fields = self.store.get_msgdef(name).fields, self.store.fielddefs[name][1]
        return self.store.types[name](
            **{field: values.get(field, self.zero(desc)) for field, desc in fields}
        )

    def zero(self, desc: Any) -> Any:
        node, detail = int(desc[0]), desc[1]
        if node == 1:
            return {"string": "", "bool": False}.get(detail[0], 0)
        if node == 2:
            return self(detail)
        element, size = detail
        if element[0] == 1 or int(element[0]) == 1:
            return np.zeros(size if node == 3 else 0, dtype=element[1][0])
        return []

    def turned(self, yaw: float) -> Any:
        return self("geometry_msgs/msg/Quaternion", z=math.sin(yaw / 2), w=math.cos(yaw / 2))

    def pose(self, x: float, y: float, yaw: float = 0.0) -> Any:
        point = self("geometry_msgs/msg/Point", x=x, y=y)
        return self("geometry_msgs/msg/Pose", position=point, orientation=self.turned(yaw))

    def twist(self, speed: float, turning: float = 0.0) -> Any:
        vector = "geometry_msgs/msg/Vector3"
        return self(
            "geometry_msgs/msg/Twist", linear=self(vector, x=speed), angular=self(vector, z=turning)
        )

    def header(self, frame: str, seconds: int) -> Any:
        stamp = self("builtin_interfaces/msg/Time", sec=seconds)
        return self("std_msgs/msg/Header", stamp=stamp, frame_id=frame)

    def path(self, header: Any, *places: tuple[float, float]) -> Any:
        poses = [self("geometry_msgs/msg/PoseStamped", pose=self.pose(x, y)) for x, y in places]
        return self("nav_msgs/msg/Path", header=header, poses=poses)

    def place(self, x: float, y: float) -> Any:
        transform = self(
            "geometry_msgs/msg/Transform",
            translation=self("geometry_msgs/msg/Vector3", x=x, y=y),
            rotation=self.turned(0.0),
        )
        link = self(
            "geometry_msgs/msg/TransformStamped",
            header=self.header("map", 100),
            child_frame_id="base_link",
            transform=transform,
        )
        return self("tf2_msgs/msg/TFMessage", transforms=[link])

    def odometry(
        self, speed: float, x: float, y: float, yaw: float, turning: float = 0.0, **others: Any
    ) -> Any:
        twist, pose = (
            "geometry_msgs/msg/TwistWithCovariance",
            "geometry_msgs/msg/PoseWithCovariance",
        )
        return self(
            "nav_msgs/msg/Odometry",
            **others,
            pose=self(pose, pose=self.pose(x, y, yaw)),
            twist=self(twist, twist=self.twist(speed, turning)),
        )


@pytest.fixture(scope="module")
def make(store: Any) -> Maker:
    return Maker(store)


@pytest.fixture
def record(store: Any, tmp_path: Path) -> Callable[[Mapping[str, Any]], Path]:
    """Return a function that records each message at five ticks."""

    def write(messages: Mapping[str, Any]) -> Path:
        path = tmp_path / "bag.mcap"
        with RecordingWriter(path) as writer:
            for i in range(6):
                for topic, message in messages.items():
                    name = message.__msgtype__
                    text, _ = store.generate_msgdef(name, ros_version=2)
                    data = store.serialize_cdr(message, name)
                    writer.write(topic, name, text, START_NS + i * 100_000_000, bytes(data))
        return path

    return write


def compiled(repository: Path, name: str) -> CompiledSpec:
    return compile_spec(load_spec(repository / "config" / name))


@pytest.mark.parametrize("name", ["autoware.yaml", "nav2.yaml"])
def test_file_compiles_and_watches_within_reach(repository: Path, name: str) -> None:
    found = compiled(repository, name)
    build_validity(found.spec, found.abstraction)
    assert found.spec.mode == "observe"
    for section, automaton in zip(found.spec.properties.values(), found.automata, strict=True):
        assert automaton.violated is not None
        bound = automaton.countdown or 0
        assert section.horizon * found.spec.rate > bound, "nothing could be foreseen"
        assert section.description


@pytest.mark.parametrize("name", ["autoware.yaml", "nav2.yaml"])
def test_validate_finds_no_errors_and_says_what_it_cannot_check(
    repository: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["validate", str(repository / "config" / name)])
    out = capsys.readouterr().out
    assert code in (0, 1)
    assert "error:" not in out
    if code:
        assert "is not installed here: its fields are not checked" in out


def signals_and_predicates(found: CompiledSpec, bag: Path) -> tuple[dict[str, Any], frozenset[str]]:
    """Return all signals and the predicates that hold at the last tick."""
    abstraction = found.abstraction
    with open_recording(bag) as recording:
        *_, (snapshot, (observation, _, values, failed), *_) = observe(
            recording, found.spec, abstraction
        )
    assert not snapshot.failures
    assert not failed
    assert observation.active is True
    assert observation.state is not None, "something is unknown"
    names = abstraction.vocabulary.predicates
    held = {name for i, name in enumerate(names) if observation.state >> i & 1}
    return dict(zip(abstraction.signals, values, strict=True)), frozenset(held)


def test_nav2_signals_from_recorded_messages(
    repository: Path, make: Maker, record: Callable[[Mapping[str, Any]], Path]
) -> None:
    # A scanner that starts at angle 0 and turns full circle: a beam every 10 degrees.
    ranges = np.full(36, math.inf, dtype=np.float32)
    ranges[0], ranges[18], ranges[9], ranges[1] = 1.12, 0.5, math.nan, 0.0
    step = math.radians(10)
    bag = record(
        {
            "/odom": make.odometry(0.5, 0, 0, 0, turning=-0.7),
            "/scan": make(
                "sensor_msgs/msg/LaserScan",
                angle_increment=step, range_min=0.12, range_max=3.5, ranges=ranges,
            ),
            "/cmd_vel": make("geometry_msgs/msg/TwistStamped", twist=make.twist(0.4)),
            "/collision_monitor_state": make(
                "nav2_msgs/msg/CollisionMonitorState", action_type=2, polygon_name="slow"
            ),
            "/plan": make.path(make.header("", 0), (0, 0), (0, 0), (0, 0)),
            "/tf": make.place(0, 0),
        }
    )  # fmt: skip
    values, held = signals_and_predicates(compiled(repository, "nav2.yaml"), bag)
    assert values["nearest"] == pytest.approx(0.5)
    assert values["clearance_ahead"] == pytest.approx(1.12 - 0.3)
    assert values["time_to_contact"] == pytest.approx((1.12 - 0.3) / 0.5)
    assert values["plan_points"] == 3
    assert values["collision_monitor"] == 2
    assert held == {
        "moving", "fast", "turns", "commands", "has_plan", "clearance<0.5", "time_to_contact<3",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ({}, math.inf),
        ({"frame": "odom"}, 1.2),
        ({"seconds": 97}, 1.2),
        ({"aside": 0.6}, 1.2),
        ({"places": ()}, 1.2),
        ({"places": ((4.0, 5.0), (5.0, 5.0))}, 1.2),
        ({"places": ((5.0, 5.0), (7.0, 5.0))}, 1.2),
    ],
    ids=["followed", "other frame", "stale", "too far", "empty", "behind", "straight"],
)
def test_nav2_judges_the_way_along_the_path_or_else_straight_on(
    repository: Path,
    make: Maker,
    record: Callable[[Mapping[str, Any]], Path],
    plan: dict[str, Any],
    expected: float,
) -> None:
    # The robot heads along x, to a wall 1.5 m ahead; its planner means to turn left before it.
    header = make.header(plan.get("frame", "map"), plan.get("seconds", 99))
    left = ((5.0, 5.0), (5.5, 5.0), (5.9, 5.4), (5.9, 8.0))
    places = [(x, y + plan.get("aside", 0.0)) for x, y in plan.get("places", left)]
    ranges = np.full(36, math.inf, dtype=np.float32)
    ranges[0], ranges[1], ranges[35] = 1.5, 1.523, 1.523
    bag = record(
        {
            "/odom": make.odometry(0.4, 0, 0, 0, header=make.header("odom", 100)),
            "/scan": make(
                "sensor_msgs/msg/LaserScan",
                angle_increment=math.radians(10), range_min=0.12, range_max=3.5, ranges=ranges,
            ),
            "/cmd_vel": make("geometry_msgs/msg/TwistStamped", twist=make.twist(0.4)),
            "/collision_monitor_state": make("nav2_msgs/msg/CollisionMonitorState"),
            "/plan": make.path(header, *places),
            "/tf": make.place(5, 5),
        }
    )  # fmt: skip
    values, held = signals_and_predicates(compiled(repository, "nav2.yaml"), bag)
    assert values["clearance_ahead"] == pytest.approx(expected, abs=1e-3)
    assert ("time_to_contact<3" in held) == (expected / 0.4 < 3)


def test_nav2_goes_on_without_topics_that_speak_only_at_events(
    repository: Path, make: Maker, record: Callable[[Mapping[str, Any]], Path]
) -> None:
    ranges = np.full(8, 2.0, dtype=np.float32)
    bag = record(
        {
            "/odom": make.odometry(0.0, 0, 0, 0),
            "/scan": make("sensor_msgs/msg/LaserScan", range_min=0.1, ranges=ranges),
        }
    )
    model_free = ["replay", str(bag), "-c", str(repository / "config" / "nav2.yaml"), "-q"]
    assert main(model_free) == 2
    assert main([*model_free, "--allow-missing"]) == 0


def autoware_object(
    make: Maker, x: float, y: float, speed: float, label: int, existence: float = 0.9
) -> Any:
    package = "autoware_perception_msgs/msg"
    kinematics = make(
        f"{package}/PredictedObjectKinematics",
        initial_pose_with_covariance=make(
            "geometry_msgs/msg/PoseWithCovariance", pose=make.pose(x, y, math.pi / 2)
        ),
        initial_twist_with_covariance=make(
            "geometry_msgs/msg/TwistWithCovariance", twist=make.twist(speed)
        ),
    )
    return make(
        f"{package}/PredictedObject",
        existence_probability=existence,
        classification=[
            make(f"{package}/ObjectClassification", label=label, probability=0.8),
            make(f"{package}/ObjectClassification", label=0, probability=0.2),
        ],
        kinematics=kinematics,
        shape=make(
            f"{package}/Shape", dimensions=make("geometry_msgs/msg/Vector3", x=4.0, y=2.0, z=1.0)
        ),
    )


@pytest.mark.parametrize(
    ("lights", "red"),
    [
        ([], False),
        ([(3, 0.9)], False),
        ([(3, 0.9), (1, 0.9)], True),
        ([(1, 0.3)], None),
        ([(0, 0.9), (3, 0.9)], None),
        ([(0, 0.9), (1, 0.9)], True),
    ],
)
def test_a_light_whose_colour_nobody_can_tell_is_not_taken_for_no_red_light(
    repository: Path, make: Maker, lights: list[tuple[int, float]], red: bool | None
) -> None:
    package = "autoware_perception_msgs/msg"
    elements = [
        make(f"{package}/TrafficLightElement", color=color, confidence=confidence)
        for color, confidence in lights
    ]
    group = make(f"{package}/TrafficLightGroup", elements=elements)
    message = make(f"{package}/TrafficLightGroupArray", traffic_light_groups=[group])
    name, store = message.__msgtype__, make.store
    definition, _ = store.generate_msgdef(name, ros_version=2)
    sources = compiled(repository, "autoware.yaml").abstraction.sources
    (source,) = (one for one in sources if one.name == "red_light")
    extract = compile_extractor(message_type(name, definition, "ros2msg"), [source.expression])
    (found,) = extract(bytes(store.serialize_cdr(message, name)))
    assert stored_value(found) is red


def test_autoware_signals_from_recorded_messages(
    repository: Path, make: Maker, record: Callable[[Mapping[str, Any]], Path]
) -> None:
    # The car stands at (10, 20) and heads along y with 10 m/s. A car 50 m ahead does 6 m/s, a
    # pedestrian waits 20 m ahead and 2.5 m aside, and a ghost that hardly exists is in the way.
    perception, planning = "autoware_perception_msgs/msg", "autoware_planning_msgs/msg"
    element = make(f"{perception}/TrafficLightElement", color=1, confidence=0.9)
    points = [
        make(
            f"{planning}/TrajectoryPoint",
            pose=make.pose(10.0, 20.0 + 4 * i),
            longitudinal_velocity_mps=max(10.0 - 2.0 * i, 0.0),
        )
        for i in range(8)
    ]
    acceleration = make(
        "geometry_msgs/msg/AccelWithCovariance",
        accel=make("geometry_msgs/msg/Accel", linear=make("geometry_msgs/msg/Vector3", x=-2.0)),
    )
    bag = record(
        {
            "/vehicle/status/velocity_status": make(
                "autoware_vehicle_msgs/msg/VelocityReport", longitudinal_velocity=10.0
            ),
            "/vehicle/status/control_mode": make(
                "autoware_vehicle_msgs/msg/ControlModeReport", mode=1
            ),
            "/localization/acceleration": make(
                "geometry_msgs/msg/AccelWithCovarianceStamped", accel=acceleration
            ),
            "/localization/kinematic_state": make.odometry(10.0, 10.0, 20.0, math.pi / 2),
            "/perception/object_recognition/objects": make(
                f"{perception}/PredictedObjects",
                objects=[
                    autoware_object(make, 10.5, 70.0, 6.0, label=1),
                    autoware_object(make, 12.5, 40.0, 0.0, label=7),
                    autoware_object(make, 10.0, 26.0, 0.0, label=1, existence=0.1),
                ],
            ),
            "/perception/traffic_light_recognition/traffic_signals": make(
                f"{perception}/TrafficLightGroupArray",
                traffic_light_groups=[make(f"{perception}/TrafficLightGroup", elements=[element])],
            ),
            "/planning/trajectory": make(f"{planning}/Trajectory", points=points),
        }
    )
    found = compiled(repository, "autoware.yaml")
    values, held = signals_and_predicates(found, bag)
    assert values["ttc"] == pytest.approx((50 - 2 - 3.8) / 4)
    assert values["person"] == pytest.approx(20 - 2 - 3.8)
    assert values["plan_stop"] == pytest.approx(20.0)
    assert values["red_light"] is True or values["red_light"] == 1
    assert held == {"moving", "fast", "braking", "red", "plan_stops", "person<15"}
    assert main(["validate", str(found.spec.file), "--bag", str(bag)]) == 0
