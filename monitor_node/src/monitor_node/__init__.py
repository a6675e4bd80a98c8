"""The Forewarn monitor as a ROS 2 node: a thin shell around `forewarn.monitoring`."""
