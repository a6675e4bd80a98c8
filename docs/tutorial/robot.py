"""A small robot in a corridor, for docs/tutorial: it records bags, or drives live over ROS 2.

People step into its way. Its planner brakes for them, but is inattentive at times.

    python robot.py record drives/1 --minutes 10 --seed 1
    python robot.py drive --seconds 20 --seed 10

Its topics are /odom, /scan and /cmd_vel, what the planner commands. The wheels of `drive` obey
/cmd_vel, or another topic that is named with `--obey`, such as the output of a gate.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from pathlib import Path

import numpy as np

RATE = 20.0  # steps a second; every second one has a scan
LENGTH, HALF_WIDTH = 20.0, 1.0  # of the corridor, in m
RADIUS = 0.25  # of a person
SPEED, ACCELERATION, BRAKES = 0.8, 1.0, 3.0  # m/s, m/s^2
BEAMS = np.linspace(-1.0, 1.0, 81)  # angles of the scanner, which sits on the bumper
NEAR, MOVING = 0.3, 0.1  # the rule: nearer than this nothing moves


class Robot:
    """The robot, the people, and the planner that drives."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.x, self.direction, self.speed = 1.0, 1.0, 0.0
        self.turning = 0.0  # seconds that it still turns for
        self.person: float | None = None
        self.change = self.random.expovariate(1 / 8)  # seconds until somebody comes or goes
        self.distracted = 0.0
        self.command = 0.0
        self.too_close = self.breaches = self.people = 0

    @property
    def gap(self) -> float:
        """Return the metres between the bumper and what is ahead."""
        wall = LENGTH - self.x if self.direction > 0 else self.x
        if self.person is None:
            return wall
        return min(wall, abs(self.person - self.x) - RADIUS)

    def step(self, obeyed: float | None = None) -> None:
        """Go on by one step; `obeyed` is the command of somebody else than the planner."""
        step = 1 / RATE
        self._people(step)
        self._plan(step)
        wanted = self.command if obeyed is None else obeyed
        self.speed += min(max(wanted - self.speed, -BRAKES * step), ACCELERATION * step)
        self.speed = max(0.0, min(self.speed, max(self.gap, 0.0) / step))  # nobody is run through
        self.x += self.direction * self.speed * step
        close = self.gap < NEAR and self.speed > MOVING
        self.breaches += close and not self.too_close
        self.too_close = close

    def _people(self, step: float) -> None:
        self.change -= step
        if self.change > 0:
            return
        if self.person is not None:
            self.person, self.change = None, self.random.expovariate(1 / 8)
        elif not self.turning:
            ahead = self.random.uniform(0.9, 3.5) + RADIUS
            there = self.x + self.direction * ahead
            if RADIUS < there < LENGTH - RADIUS:
                self.person, self.people = there, self.people + 1
            self.change = self.random.uniform(2, 5)

    def _plan(self, step: float) -> None:
        self.distracted -= step
        if self.turning:
            self.turning = max(0.0, self.turning - step)
            self.command = 0.0
        elif self.person is None and self.gap < 0.8 and self.speed < 0.05:
            self.direction, self.turning = -self.direction, 3.0
        elif self.distracted <= 0:
            if self.random.random() < step / 6:
                self.distracted = self.random.uniform(0.8, 2.5)  # the last command stays
            else:
                room = max(0.0, self.gap - 0.6)
                self.command = min(SPEED, math.sqrt(2 * 0.6 * room))

    def ranges(self) -> np.ndarray:
        """Return what the scanner sees, in m."""
        along, across = np.cos(BEAMS), np.abs(np.sin(BEAMS))
        wall = LENGTH - self.x if self.direction > 0 else self.x
        with np.errstate(divide="ignore"):
            seen = np.minimum(wall / along, HALF_WIDTH / across)
        if self.person is not None:
            centre = abs(self.person - self.x)
            root = RADIUS**2 - (centre * across) ** 2
            hit = centre * along - np.sqrt(np.maximum(root, 0))
            seen = np.where(root >= 0, np.minimum(seen, hit), seen)
        noise = np.array([self.random.gauss(0, 0.01) for _ in BEAMS])
        return np.maximum(seen + noise, 0.05).astype(np.float32)


def record(path: Path, minutes: float, seed: int) -> None:
    """Write a bag of a drive: /odom and /cmd_vel 20 times a second, /scan 10 times."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    kinds = {"/odom": "nav_msgs/msg/Odometry", "/scan": "sensor_msgs/msg/LaserScan",
             "/cmd_vel": "geometry_msgs/msg/Twist"}  # fmt: skip
    robot = Robot(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        topics = {topic: bag.add_connection(topic, kind, typestore=store)
                  for topic, kind in kinds.items()}  # fmt: skip
        for step in range(round(minutes * 60 * RATE)):
            now = 1_700_000_000_000_000_000 + round(step * 1e9 / RATE)
            robot.step()
            for topic, message in messages(robot, step, now, store.types):
                bag.write(topics[topic], now, store.serialize_cdr(message, kinds[topic]))
    print(f"{path}: {minutes:g} min, {robot.people} people, {robot.breaches} times too close")


def messages(robot: Robot, step: int, now: int, types: dict) -> list[tuple[str, object]]:
    """Return the messages of one step, with the classes that `types` has for their names."""
    stamp = types["builtin_interfaces/msg/Time"](sec=now // 10**9, nanosec=now % 10**9)
    vector, numbers = types["geometry_msgs/msg/Vector3"], np.zeros(36)

    def header(frame: str) -> object:
        return types["std_msgs/msg/Header"](stamp=stamp, frame_id=frame)

    def twist(speed: float) -> object:
        still = vector(x=0.0, y=0.0, z=0.0)
        return types["geometry_msgs/msg/Twist"](linear=vector(x=speed, y=0.0, z=0.0), angular=still)

    facing = 0.0 if robot.direction > 0 else 1.0
    pose = types["geometry_msgs/msg/Pose"](
        position=types["geometry_msgs/msg/Point"](x=robot.x, y=0.0, z=0.0),
        orientation=types["geometry_msgs/msg/Quaternion"](x=0.0, y=0.0, z=facing, w=1.0 - facing),
    )
    odometry = types["nav_msgs/msg/Odometry"](
        header=header("odom"),
        child_frame_id="base_link",
        pose=types["geometry_msgs/msg/PoseWithCovariance"](pose=pose, covariance=numbers),
        twist=types["geometry_msgs/msg/TwistWithCovariance"](
            twist=twist(robot.speed), covariance=numbers
        ),
    )
    found = [("/odom", odometry), ("/cmd_vel", twist(robot.command))]
    if step % 2 == 0:
        scan = types["sensor_msgs/msg/LaserScan"](
            header=header("scanner"), angle_min=float(BEAMS[0]), angle_max=float(BEAMS[-1]),
            angle_increment=float(BEAMS[1] - BEAMS[0]), time_increment=0.0, scan_time=0.1,
            range_min=0.02, range_max=25.0, ranges=robot.ranges(),
            intensities=np.zeros(0, np.float32),
        )  # fmt: skip
        found.append(("/scan", scan))
    return found


def drive(seconds: float, seed: int, topic: str) -> None:
    """Drive live: publish /odom, /scan and /cmd_vel, and obey the commands on a topic."""
    import rclpy
    from builtin_interfaces.msg import Time
    from geometry_msgs.msg import (
        Point,
        Pose,
        PoseWithCovariance,
        Quaternion,
        Twist,
        TwistWithCovariance,
        Vector3,
    )
    from nav_msgs.msg import Odometry
    from sensor_msgs.msg import LaserScan
    from std_msgs.msg import Header

    kinds = (Header, Odometry, LaserScan, Twist, Vector3, Point, Quaternion, Pose, Time,
             PoseWithCovariance, TwistWithCovariance)  # fmt: skip
    types = {f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}": kind for kind in kinds}
    rclpy.init()
    node = rclpy.create_node("robot")
    published = {"/odom": Odometry, "/scan": LaserScan, "/cmd_vel": Twist}
    publishers = {name: node.create_publisher(kind, name, 10) for name, kind in published.items()}
    heard = [(0.0, 0.0)]  # the last command, and when it came

    def hear(twist: Twist) -> None:
        heard[0] = (twist.linear.x, time.monotonic())

    node.create_subscription(Twist, topic, hear, 10)
    robot, step = Robot(seed), 0
    robot.command = SPEED  # it waits until somebody lets that pass
    next_step = time.monotonic()
    print(f"waiting for a command on {topic}", flush=True)
    while step < seconds * RATE:
        for name, message in messages(robot, step, time.time_ns(), types):
            publishers[name].publish(message)
        next_step += 1 / RATE
        while (left := next_step - time.monotonic()) > 0:
            rclpy.spin_once(node, timeout_sec=left)
        command, came = heard[0]
        if step == 0 and command > 0:
            robot = Robot(seed)  # the same people, however long that took
        if step or command > 0:
            fresh = time.monotonic() - came < 0.5  # a base brakes when it hears nothing
            robot.step(command if fresh else 0.0)
            step += 1
    print(f"{seconds:g} s, {robot.people} people, {robot.breaches} times too close")
    node.destroy_node()
    rclpy.shutdown()


def main() -> None:
    """Record or drive."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="write a bag")
    recording.add_argument("path", type=Path)
    recording.add_argument("--minutes", type=float, default=10.0)
    driving = commands.add_parser("drive", help="drive live")
    driving.add_argument("--seconds", type=float, default=20.0)
    driving.add_argument("--obey", metavar="TOPIC", default="/cmd_vel")
    for parser_of_one in (recording, driving):
        parser_of_one.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.command == "record":
        record(options.path, options.minutes, options.seed)
    else:
        drive(options.seconds, options.seed, options.obey)


if __name__ == "__main__":
    main()
