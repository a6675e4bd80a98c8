"""The least that a bridge must do, in one process: what Cyber RT and rclpy alone take.

Each chassis message on Cyber becomes one Signals in ROS, each Intervention in ROS one pad message
on Cyber; nothing is checked, sorted, derived or repeated. The argument is the executor that serves
it, ``single`` or ``events``.
"""

from __future__ import annotations

import json
import sys

import rclpy
from builtin_interfaces.msg import Time
from forewarn_msgs.msg import Intervention, Signals
from pycyber import cyber
from rclpy.qos import DurabilityPolicy, QoSProfile

from apollo_bridge.layouts import own_class
from benchmarks._live import spin


def main() -> None:
    """Relay until the process is ended."""
    cyber.init("relay")
    rclpy.init()
    ros, node = rclpy.create_node("relay"), cyber.Node("relay")
    chassis = own_class("apollo.canbus.Chassis")
    pad = own_class("apollo.planning.PadMessage")
    publisher = ros.create_publisher(Signals, "/monitor/input/signals", 10)
    writer = node.create_writer("/apollo/planning/pad", pad, 10)
    number = 0

    def to_ros(data: bytes) -> None:
        speed = chassis.FromString(data).speed_mps
        publisher.publish(Signals(names=["speed"], values=[speed], stamps=[Time()]))

    def to_cyber(message: Intervention) -> None:
        nonlocal number
        number += 1
        command = pad(action=4 if message.active else 5)
        command.header.sequence_num = number
        writer.write(command)

    node.create_rawdata_reader("/apollo/canbus/chassis", to_ros)
    latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    ros.create_subscription(Intervention, "/bench/output/intervention", to_cyber, latched)
    print(json.dumps({"relaying": True}), flush=True)
    spin(ros, sys.argv[1])  # and end at once: Cyber's own shutdown takes seconds


if __name__ == "__main__":
    main()
