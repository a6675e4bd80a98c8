"""Processes for the benchmarks over real topics: a robot that publishes, a bare timer, listeners.

``python -m benchmarks._live ROLE ...`` runs one of them until it is interrupted.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rclpy
from forewarn_msgs.msg import RiskArray
from geometry_msgs.msg import Point
from nav_msgs.msg import Odometry
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image
from std_msgs.msg import Float64
from visualization_msgs.msg import Marker, MarkerArray

from benchmarks._harness import processor_seconds
from forewarn_ros.messages import to_time

ROOT = Path(__file__).resolve().parent.parent
KEPT = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
SCALARS = tuple(f"/robot/s{i}" for i in range(1, 8))


def make_executor(kind: str) -> Any:
    """Return an executor by the name that the monitor's parameter gives it."""
    if kind == "single":
        return SingleThreadedExecutor()
    from rclpy.experimental import EventsExecutor

    return EventsExecutor()


def spin(node: Node, kind: str) -> None:
    """Serve a node until it is interrupted."""
    executor = make_executor(kind)
    executor.add_node(node)
    try:
        while rclpy.ok():
            executor.spin_once(timeout_sec=0.5)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    os._exit(0)  # nothing is worth tidying up, and some executors hang when they are


def crowd(markers: int, points: int) -> bytes:
    """Return a MarkerArray of so many markers with so many points each, serialized."""
    message = MarkerArray()
    for i in range(markers):
        marker = Marker(id=i, ns="vehicle", points=[Point(x=float(i), y=1.0)] * points)
        marker.pose.position.x = float(i)
        message.markers.append(marker)
    return bytes(serialize_message(message))


def robot(options: argparse.Namespace) -> None:
    """Publish odometry at 50 Hz, seven numbers at 10 Hz, and a crowd at 10 Hz if it has any."""
    node = Node("robot")
    odometry = node.create_publisher(Odometry, "/robot/odometry", 10)
    scalars = [node.create_publisher(Float64, topic, 10) for topic in SCALARS]
    objects = node.create_publisher(MarkerArray, "/robot/objects", 2)
    payload = crowd(options.markers, options.points) if options.markers else b""
    image = Image(data=bytes(options.camera)) if options.camera else None
    picture = b"" if image is None else bytes(serialize_message(image))
    camera = node.create_publisher(Image, "/robot/camera", 10)
    steps = iter(range(1 << 60))

    def step() -> None:
        number = next(steps)
        message = Odometry()
        message.twist.twist.linear.x = (number % 100) / 100
        odometry.publish(message)
        if picture:
            camera.publish(picture)
        if number % 5 == 0:
            for i, publisher in enumerate(scalars):
                publisher.publish(Float64(data=((number // 5 + 13 * i) % 100) / 100))
            if payload:
                objects.publish(payload)

    node.create_timer(0.02, step)
    spin(node, "events")


def bare(options: argparse.Namespace) -> None:
    """Publish one message over and over from a timer, stamped with the time of its tick."""
    node = Node("bare")
    publisher = node.create_publisher(RiskArray, "/bare/output/risk", KEPT)
    received: list[RiskArray] = []
    subscription = node.create_subscription(
        RiskArray, "/monitor/output/risk", received.append, KEPT
    )
    while not received:
        rclpy.spin_once(node, timeout_sec=0.1)
    node.destroy_subscription(subscription)
    message = received[0]

    def tick() -> None:
        # rcl has set the next call already: this one was due one period before it.
        due_ns = time.time_ns() + timer.time_until_next_call() - timer.timer_period_ns
        message.header.stamp = to_time(due_ns)
        publisher.publish(message)

    timer = node.create_timer(1.0 / options.rate, tick, clock=node.get_clock())
    spin(node, options.executor)


def listener(options: argparse.Namespace) -> None:
    """Receive what the monitor would, raw, and do nothing with it: the floor for its CPU."""
    node = Node("listener")
    topics = [("/robot/odometry", Odometry), ("/robot/objects", MarkerArray)]
    topics += [(topic, Float64) for topic in SCALARS]
    for topic, kind in topics:
        node.create_subscription(kind, topic, lambda payload: None, 10, raw=True)
    spin(node, options.executor)


def taker(options: argparse.Namespace) -> None:
    """Take raw messages of the camera at the monitor's rate, as it takes them, and let them go."""
    node = Node("taker")
    subscription = node.create_subscription(
        Image, "/robot/camera", lambda payload: None, 50, raw=True
    )
    while rclpy.ok():
        time.sleep(1.0 / options.rate)
        with subscription.handle:
            while subscription.handle.take_message(Image, True) is not None:
                pass


@contextmanager
def process(*arguments: str, domain: int, module: str = "benchmarks._live") -> Iterator[int]:
    """Run a role, or a node, in its own process and yield its number."""
    environment = {
        **os.environ,
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
    }
    command = [sys.executable, "-m", module, *arguments]
    if module.startswith("monitor_node"):
        command[1:3] = ["-c", f"from {module} import main; main()"]
    with subprocess.Popen(
        command,
        env=environment,
        cwd=ROOT,
        stderr=None if "FOREWARN_BENCH_LOUD" in os.environ else subprocess.DEVNULL,
    ) as child:
        try:
            yield child.pid
            if child.poll() is not None:
                raise RuntimeError(f"{' '.join(command)} has ended by itself: {child.returncode}")
        finally:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(5.0)
            except subprocess.TimeoutExpired:
                child.kill()


@contextmanager
def monitor(folder: Path, domain: int, executor: str, **parameters: object) -> Iterator[int]:
    """Run an active monitor of ``folder/monitor.yaml`` in its own process."""
    arguments = ["--ros-args", "-p", "autostart:=true", "-p", f"executor:={executor}"]
    for key, value in {"config": folder / "monitor.yaml", **parameters}.items():
        arguments += ["-p", f"{key}:={value}"]
    with process(*arguments, domain=domain, module="monitor_node.main") as pid:
        yield pid


def share(pid: int, seconds: float) -> float:
    """Return how much of a core a process uses over a while, in percent."""
    begin, used = time.monotonic(), processor_seconds(pid)
    time.sleep(seconds)
    return 100 * (processor_seconds(pid) - used) / (time.monotonic() - begin)


def main() -> None:
    """Run one role."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=("robot", "bare", "listener", "taker"))
    parser.add_argument("--rate", type=float, default=10.0)
    parser.add_argument("--executor", default="single")
    parser.add_argument("--markers", type=int, default=0)
    parser.add_argument("--points", type=int, default=0)
    parser.add_argument("--camera", type=int, default=0)
    options = parser.parse_args()
    rclpy.init()
    roles = {"robot": robot, "bare": bare, "listener": listener, "taker": taker}
    roles[options.role](options)


if __name__ == "__main__":
    main()
