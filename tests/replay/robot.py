"""A robot that tells where it is: the place of its lidar once, its own 20 times a second."""

from __future__ import annotations

import rclpy
from geometry_msgs.msg import TransformStamped
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from tf2_msgs.msg import TFMessage

KEPT = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Robot(Node):
    """It drives one metre a second, and knows its drift on the map ten times as seldom."""

    def __init__(self) -> None:
        super().__init__("robot")
        self.static = self.create_publisher(TFMessage, "/tf_static", KEPT)
        self.moving = self.create_publisher(TFMessage, "/tf", 100)
        self.count = 0
        self.static.publish(TFMessage(transforms=[self.transform("base_link", "lidar", 0.5)]))
        self.create_timer(0.05, self.tell)

    def transform(self, parent: str, child: str, x: float, ago: float = 0.0) -> TransformStamped:
        """Return a transform that was so, `ago` seconds before."""
        found = TransformStamped(child_frame_id=child)
        found.header.frame_id = parent
        found.header.stamp = (self.get_clock().now() - Duration(seconds=ago)).to_msg()
        found.transform.translation.x = x
        return found

    def tell(self) -> None:
        """Publish where it is, each link by itself."""
        if self.count % 10 == 0:
            self.moving.publish(TFMessage(transforms=[self.transform("map", "odom", 1.0, 0.02)]))
        driven = self.transform("odom", "base_link", self.count / 20)
        self.moving.publish(TFMessage(transforms=[driven]))
        self.count += 1


if __name__ == "__main__":
    rclpy.init()
    rclpy.spin(Robot())
