"""What it costs to read signals from messages, against rclpy and rosbags decoding them whole.

Three messages: an odometry, an array of 200 markers with 8 points each, and a stand-in for
Autoware's PredictedObjects with 200 objects of 5 predicted paths of 50 poses.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from benchmarks._harness import LEAST, Cell, Table, Target, run, take_turns
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.definitions import MessageType, installed_message_type
from forewarn.messages.extraction import compile_extractor

OBJECTS = """\
std_msgs/Header header
PredictedObject[] objects
{line}
MSG: standin_msgs/PredictedObject
unique_identifier_msgs/UUID object_id
float32 existence_probability
ObjectClassification[] classification
geometry_msgs/PoseWithCovariance initial_pose_with_covariance
geometry_msgs/TwistWithCovariance initial_twist_with_covariance
geometry_msgs/AccelWithCovariance initial_acceleration_with_covariance
PredictedPath[] predicted_paths
Shape shape
{line}
MSG: standin_msgs/ObjectClassification
uint8 CAR=1
uint8 label
float32 probability
{line}
MSG: standin_msgs/PredictedPath
geometry_msgs/Pose[] path
builtin_interfaces/Duration time_step
float32 confidence
{line}
MSG: standin_msgs/Shape
uint8 type
geometry_msgs/Polygon footprint
geometry_msgs/Vector3 dimensions
"""
SPEED = ["hypot(twist.twist.linear.x, twist.twist.linear.y)"]
MARKERS = [
    "[m.pose.position.x for m in markers]",
    "[m.pose.position.y for m in markers]",
    "[m.id for m in markers]",
    "[m.color.r for m in markers]",
]
FILTERED = [
    "min([hypot(m.pose.position.x, m.pose.position.y) for m in markers if m.ns == 'vehicle'],"
    " default=inf)"
]
ONE_BY_ONE = ["[m.points[len(m.points) - 1].z for m in markers]"]
PREDICTED = [
    "[o.initial_pose_with_covariance.pose.position.x for o in objects]",
    "[o.initial_pose_with_covariance.pose.position.y for o in objects]",
    "[o.initial_twist_with_covariance.twist.linear.x for o in objects]",
    "[o.classification[0].label for o in objects]",
    "[o.existence_probability for o in objects]",
]


class Case(NamedTuple):
    """A message, and the expressions read from it."""

    name: str
    mtype: MessageType
    data: bytes
    expressions: list[str]
    target: Target | None


def odometry() -> tuple[MessageType, bytes]:
    """Return an odometry message."""
    mtype = installed_message_type("nav_msgs/msg/Odometry")
    make = mtype.typestore.types
    message = make[mtype.name](
        header(make),
        "base_link",
        posed(make),
        make["geometry_msgs/msg/TwistWithCovariance"](twist(make), np.zeros(36)),
    )
    return mtype, bytes(mtype.typestore.serialize_cdr(message, mtype.name))


def header(make: Any) -> Any:
    """Return a header."""
    return make["std_msgs/msg/Header"](make["builtin_interfaces/msg/Time"](1, 2), "map")


def twist(make: Any) -> Any:
    """Return a velocity."""
    vector = make["geometry_msgs/msg/Vector3"]
    return make["geometry_msgs/msg/Twist"](vector(5.0, 0.1, 0.0), vector(0.0, 0.0, 0.1))


def pose(make: Any, x: float = 1.0) -> Any:
    """Return a pose."""
    turn = make["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
    return make["geometry_msgs/msg/Pose"](make["geometry_msgs/msg/Point"](x, 2.0, 0.0), turn)


def posed(make: Any, x: float = 1.0) -> Any:
    """Return a pose with covariance."""
    return make["geometry_msgs/msg/PoseWithCovariance"](pose(make, x), np.zeros(36))


def markers(count: int = 200, points: int = 8) -> tuple[MessageType, bytes]:
    """Return an array of markers."""
    mtype = installed_message_type("visualization_msgs/msg/MarkerArray")
    make = mtype.typestore.types
    empty = np.zeros(0, np.uint8)
    point = make["geometry_msgs/msg/Point"](1.0, 2.0, 3.0)

    def marker(at: int) -> Any:
        return make["visualization_msgs/msg/Marker"](
            header(make),
            "vehicle" if at % 2 else "pedestrian",
            at,
            1,
            0,
            pose(make, float(at)),
            make["geometry_msgs/msg/Vector3"](1.0, 1.0, 1.0),
            make["std_msgs/msg/ColorRGBA"](1.0, 0.0, 0.0, 1.0),
            make["builtin_interfaces/msg/Duration"](0, 0),
            False,
            [point] * points,
            [],
            "",
            make["sensor_msgs/msg/CompressedImage"](header(make), "", empty),
            [],
            "",
            "",
            make["visualization_msgs/msg/MeshFile"]("", empty),
            False,
        )

    message = make[mtype.name]([marker(at) for at in range(count)])
    return mtype, bytes(mtype.typestore.serialize_cdr(message, mtype.name))


def predicted_objects(
    count: int = 200, paths: int = 5, poses: int = 50
) -> tuple[MessageType, bytes]:
    """Return objects with their predicted paths."""
    name = "standin_msgs/msg/PredictedObjects"
    own = get_types_from_msg(OBJECTS.format(line="=" * 80), name)
    mtype = MessageType(name, {**get_typestore(Stores.LATEST).fielddefs, **own})
    make = mtype.typestore.types
    standin = {name.split("/")[-1]: cls for name, cls in make.items() if "standin" in name}
    vector = make["geometry_msgs/msg/Vector3"]
    acceleration = make["geometry_msgs/msg/Accel"](vector(0.1, 0.0, 0.0), vector(0.0, 0.0, 0.0))
    path = standin["PredictedPath"](
        [pose(make)] * poses, make["builtin_interfaces/msg/Duration"](0, 500_000_000), 0.5
    )

    def item(at: int) -> Any:
        return standin["PredictedObject"](
            make["unique_identifier_msgs/msg/UUID"](np.full(16, at, np.uint8)),
            0.9,
            [standin["ObjectClassification"](1 + at % 7, 0.8)],
            posed(make, float(at)),
            make["geometry_msgs/msg/TwistWithCovariance"](twist(make), np.zeros(36)),
            make["geometry_msgs/msg/AccelWithCovariance"](acceleration, np.zeros(36)),
            [path] * paths,
            standin["Shape"](0, make["geometry_msgs/msg/Polygon"]([]), vector(4.0, 2.0, 1.5)),
        )

    message = make[mtype.name](header(make), [item(at) for at in range(count)])
    return mtype, bytes(mtype.typestore.serialize_cdr(message, mtype.name))


def rclpy_decoder(name: str) -> Callable[[bytes], Any] | None:
    """Return rclpy's decoder of a message type, or None where either is not installed."""
    package, _, base = name.split("/")
    try:
        serialization = importlib.import_module("rclpy.serialization")
        cls = getattr(importlib.import_module(f"{package}.msg"), base)
    except ImportError:
        return None

    def decode(data: bytes) -> Any:
        return serialization.deserialize_message(data, cls)

    return decode


def compare(case: Case, turns: int) -> tuple[Cell, ...]:
    """Time one case in all ways."""
    parsed = [parse_expression(expression) for expression in case.expressions]
    extract = compile_extractor(case.mtype, parsed)
    whole = rclpy_decoder(case.mtype.name)
    store, name, data = case.mtype.typestore, case.mtype.name, case.data
    works = [
        lambda: extract(data),
        lambda: store.deserialize_cdr(data, name),
        *([] if whole is None else [lambda: whole(data)]),
    ]
    ours, *others = (
        take_turn.seconds * 1e6 for take_turn in take_turns(*works, turns=turns, least=LEAST)
    )
    rosbags, rclpy = (*others, None)[:2]
    return (
        case.name,
        len(data) / 1e3,
        ours,
        case.target,
        rosbags,
        rclpy,
        rosbags / ours,
        None if rclpy is None else rclpy / ours,
    )


def cases() -> list[Case]:
    """Return what is measured."""
    marker_array, objects = markers(), predicted_objects()
    return [
        Case("odometry: speed", *odometry(), SPEED, Target(10.0)),
        Case("200 markers: 4 fields", *marker_array, MARKERS, Target(500.0)),
        Case("200 markers: nearest of a kind", *marker_array, FILTERED, Target(500.0)),
        Case("200 markers: one by one", *marker_array, ONE_BY_ONE, None),
        Case("200 objects, 1000 paths: 5 fields", *objects, PREDICTED, Target(1000.0)),
    ]


def measure(turns: int = 20) -> list[Table]:
    """Measure all cases."""
    columns = (
        "Message and signals",
        "kB",
        "Forewarn, us",
        "Target",
        "rosbags, whole message, us",
        "rclpy, whole message, us",
        "rosbags / Forewarn",
        "rclpy / Forewarn",
    )
    return [Table(columns, [compare(case, turns) for case in cases()])]


if __name__ == "__main__":
    sys.exit(run(measure))
