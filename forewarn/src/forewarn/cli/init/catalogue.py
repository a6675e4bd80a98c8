"""What is worth watching in messages of well-known types.

Fields and units are those of the packages' own definitions; every proposal is compiled against
the definition in the recording, and left out where that differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class Role(Enum):
    """What a signal can be used for in the example properties."""

    SPEED = "speed"
    DISTANCE = "distance"
    FLAG = "flag"
    OTHER = "other"


class Proposal(NamedTuple):
    """One signal.

    Attributes
    ----------
    name : str
        Its name where no other signal has it.
    value : str
        Expression over the message's fields.
    unit, remark : str
        For the file's comments.
    role : Role
        What it is good for.
    within : str
        Which messages of a tick count, where it is not the last one alone.
    """

    name: str
    value: str
    unit: str = ""
    remark: str = ""
    role: Role = Role.OTHER
    within: str = "last"


def _nearest(pose: str, items: str) -> str:
    return f"min((hypot({pose}.x, {pose}.y) for m in {items}), default=inf)"


NEAREST_SCAN = "nearest_beam(ranges, range_min, range_max)"
_TWIST = (
    Proposal("commanded_speed", "linear.x", "m/s"),
    Proposal("commanded_yaw_rate", "angular.z", "rad/s"),
)
_STAMPED_TWIST = tuple(
    field_name._replace(value=f"twist.{field_name.value}") for field_name in _TWIST
)
_CLIMB = (
    Proposal("altitude", "pose.pose.position.z", "m"),
    Proposal("climb_rate", "twist.twist.linear.z", "m/s"),
)
ALOFT = {"altitude": 1.0, "climb_rate": 0.2}
"""What only says something where it changes by as much: in the air."""
_NUMBER = (Proposal("", "data"),)
STAMPED_TWIST = "geometry_msgs/msg/TwistStamped"

CATALOGUE: Mapping[str, tuple[Proposal, ...]] = {
    "apollo.canbus.Chassis": (
        Proposal("speed", "speed_mps", "m/s", "", Role.SPEED),
        Proposal("brake", "brake_percentage", "%"),
        Proposal("autonomous", "driving_mode == COMPLETE_AUTO_DRIVE", "", "", Role.FLAG),
    ),
    "apollo.localization.LocalizationEstimate": (
        Proposal("x", "pose.position.x", "m"),
        Proposal("y", "pose.position.y", "m"),
        Proposal("heading", "pose.heading", "rad"),
    ),
    "apollo.perception.PerceptionObstacles": (Proposal("objects", "len(perception_obstacle)"),),
    "apollo.perception.TrafficLightDetection": (
        Proposal(
            "red_light",
            "any(each.color == RED for each in traffic_light)",
            "",
            "any light in sight, also those of other lanes",
            Role.FLAG,
        ),
    ),
    "apollo.planning.ADCTrajectory": (
        Proposal("planned_estop", "has(estop) and estop.is_estop", "", "", Role.FLAG),
        Proposal("planned_points", "len(trajectory_point)"),
    ),
    "nav_msgs/msg/Odometry": (
        Proposal("speed", "twist.twist.linear.x", "m/s", "forward", Role.SPEED),
        Proposal("yaw_rate", "twist.twist.angular.z", "rad/s"),
        *_CLIMB,
    ),
    "sensor_msgs/msg/LaserScan": (
        Proposal(
            "nearest",
            NEAREST_SCAN,
            "m",
            "inf: nothing in range; without a reading unknown (REP-117). 0.0 is no reading",
            Role.DISTANCE,
        ),
    ),
    "sensor_msgs/msg/Range": (Proposal("distance", "msg.range", "m", "", Role.DISTANCE),),
    "sensor_msgs/msg/Imu": (  # what it means, `axes` says by its values
        Proposal("turn_rate", "angular_velocity.z", "rad/s"),
    ),
    "sensor_msgs/msg/JointState": (
        Proposal("joint_speed", "max(abs(v) for v in velocity)", "rad/s", "fastest"),
        Proposal("joint_effort", "max(abs(v) for v in effort)", "N m", "greatest"),
    ),
    "control_msgs/msg/JointTrajectoryControllerState": (
        Proposal("tracking_error", "max(abs(v) for v in error.positions)", "rad", "greatest"),
    ),
    "geometry_msgs/msg/WrenchStamped": (
        Proposal("force", "norm(wrench.force)", "N", "", within="max"),
        Proposal("torque", "norm(wrench.torque)", "N m", "", within="max"),
    ),
    "sensor_msgs/msg/BatteryState": (Proposal("battery", "percentage", "", "0 to 1"),),
    "sensor_msgs/msg/NavSatFix": (Proposal("gnss_fix", "status.status", "", "-1: no fix"),),
    "geometry_msgs/msg/Twist": _TWIST,
    STAMPED_TWIST: _STAMPED_TWIST,
    "geometry_msgs/msg/TwistWithCovarianceStamped": (
        Proposal("speed", "twist.twist.linear.x", "m/s", "forward", Role.SPEED),
        Proposal("yaw_rate", "twist.twist.angular.z", "rad/s"),
    ),
    "geometry_msgs/msg/AccelWithCovarianceStamped": (
        Proposal("acceleration", "accel.accel.linear.x", "m/s2", "forward"),
    ),
    "geometry_msgs/msg/PoseStamped": (
        Proposal("x", "pose.position.x", "m"),
        Proposal("y", "pose.position.y", "m"),
        Proposal("altitude", "pose.position.z", "m"),
    ),
    "geometry_msgs/msg/PoseWithCovarianceStamped": (
        Proposal("x", "pose.pose.position.x", "m"),
        Proposal("y", "pose.pose.position.y", "m"),
        Proposal("position_variance", "pose.covariance[0] + pose.covariance[7]", "m2"),
    ),
    "nav_msgs/msg/Path": (Proposal("path_points", "len(poses)"),),
    "visualization_msgs/msg/MarkerArray": (
        Proposal("markers", "len(msg.markers)"),
        Proposal(
            "nearest_marker",
            _nearest("m.pose.position", "msg.markers"),
            "m",
            "from the origin of the markers' frame",
            Role.DISTANCE,
        ),
    ),
    "ackermann_msgs/msg/AckermannDriveStamped": (
        Proposal("commanded_speed", "drive.speed", "m/s"),
        Proposal("commanded_steering", "drive.steering_angle", "rad"),
    ),
    "nav2_msgs/msg/CollisionMonitorState": (
        Proposal("collision_monitor", "action_type", "", "0 none, 1 stop, 2 slow down, 3 approach"),
    ),
    "nav2_msgs/msg/SpeedLimit": (
        Proposal("speed_limit", "msg.speed_limit", "m/s", "0: no limit; may be a percentage"),
    ),
    "autoware_vehicle_msgs/msg/VelocityReport": (
        Proposal("speed", "longitudinal_velocity", "m/s", "", Role.SPEED),
        Proposal("yaw_rate", "heading_rate", "rad/s"),
    ),
    "autoware_vehicle_msgs/msg/ControlModeReport": (
        Proposal("autonomous", "mode == 1", "", "AUTONOMOUS", Role.FLAG),
    ),
    "autoware_vehicle_msgs/msg/SteeringReport": (
        Proposal("steering", "steering_tire_angle", "rad"),
    ),
    "autoware_perception_msgs/msg/PredictedObjects": (
        Proposal("objects", "len(msg.objects)"),
        Proposal(
            "nearest_object",
            _nearest(
                "m.kinematics.initial_pose_with_covariance.pose.position", "msg.objects"
            ),
            "m",
            "from the origin of the objects' frame, the map's: subtract your own position",
            Role.DISTANCE,
        ),
    ),
    "autoware_perception_msgs/msg/TrafficLightGroupArray": (
        Proposal(
            "red_light",
            "any(e.color == 1 for g in traffic_light_groups for e in g.elements)",
            "",
            "any light in sight, also those of other lanes",
            Role.FLAG,
        ),
    ),
    "autoware_planning_msgs/msg/Trajectory": (
        Proposal(
            "planned_speed",
            "min(p.longitudinal_velocity_mps for p in points)",
            "m/s",
            "slowest point of the plan",
        ),
    ),
    "std_msgs/msg/Bool": (Proposal("", "data", "", "", Role.FLAG),),
    **{
        f"std_msgs/msg/{kind}{width}": _NUMBER
        for kind in ("Float", "Int", "UInt")
        for width in ((32, 64) if kind == "Float" else (8, 16, 32, 64))
    },
    "std_msgs/msg/String": (Proposal("", "data", "", "text: compare with == 'value'"),),
}  # fmt: skip

_MEASURED = (
    Proposal("speed", "linear.x", "m/s", "forward, as measured", Role.SPEED),
    Proposal("yaw_rate", "angular.z", "rad/s"),
)
MEASURED: Mapping[str, tuple[Proposal, ...]] = {
    "geometry_msgs/msg/Twist": _MEASURED,
    STAMPED_TWIST: tuple(p._replace(value=f"twist.{p.value}") for p in _MEASURED),
}
"""Instead, for topics that tell a motion and ask for none."""


class Positions(NamedTuple):
    """Where a message says the positions of others, and in which frame.

    Attributes
    ----------
    frame : str
        Expression for the name of the frame.
    x, y : str
        Expressions for their coordinates.
    nearest : str
        The proposal that holds their distance from the frame's origin.
    """

    frame: str
    name: str
    x: str
    y: str
    nearest: str


def _positions(frame: str, name: str, pose: str, items: str) -> Positions:
    return Positions(
        frame,
        name,
        f"[m.{pose}.x for m in {items}]",
        f"[m.{pose}.y for m in {items}]",
        f"nearest_{name}",
    )


POSITIONS: Mapping[str, Positions] = {
    "visualization_msgs/msg/MarkerArray": _positions(
        "msg.markers[0].header.frame_id", "marker", "pose.position", "msg.markers"
    ),
    "autoware_perception_msgs/msg/PredictedObjects": _positions(
        "header.frame_id",
        "object",
        "kinematics.initial_pose_with_covariance.pose.position",
        "msg.objects",
    ),
}
OWN_POSE = "nav_msgs/msg/Odometry"
OWN_FRAME = "header.frame_id"
