"""What the monitor's node and the bridge need of ROS 2 alike; below both, and it knows neither."""
