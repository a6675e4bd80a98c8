"""Starts the monitor: ros2 launch forewarn_bringup monitor.launch.py config:=FILE model:=FILE."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare


def declared_arguments() -> list[DeclareLaunchArgument]:
    """Declare the arguments."""
    default_parameters = PathJoinSubstitution(
        [FindPackageShare("forewarn_bringup"), "config", "monitor.params.yaml"]
    )
    return [
        DeclareLaunchArgument("config", description="monitor file (YAML)"),
        DeclareLaunchArgument(
            "model",
            default_value="",
            description="model file; empty: the one that the monitor file names",
        ),
        DeclareLaunchArgument(
            "mode",
            default_value="observe",
            choices=["observe", "act"],
            description="act: intervene, if the monitor file says `mode: act` as well",
        ),
        DeclareLaunchArgument("namespace", default_value="", description="namespace of the node"),
        DeclareLaunchArgument(
            "use_sim_time",
            default_value="false",
            choices=["true", "false"],
            description="take the time from /clock",
        ),
        DeclareLaunchArgument(
            "params_file",
            default_value=default_parameters,
            description="ROS parameters (YAML); the arguments above win over it",
        ),
        DeclareLaunchArgument(
            "log_level",
            default_value="info",
            choices=["debug", "info", "warn", "error", "fatal"],
            description="severity from which on the node logs",
        ),
        DeclareLaunchArgument(
            "autostart",
            default_value="true",
            choices=["true", "false"],
            description="configure and activate at once; false leaves that to a lifecycle manager",
        ),
    ]


def generate_launch_description() -> LaunchDescription:
    """Describe the one lifecycle node and its arguments."""
    monitor = LifecycleNode(
        package="monitor_node",
        executable="monitor_node",
        name="monitor",
        namespace=LaunchConfiguration("namespace"),
        output="screen",
        emulate_tty=True,
        parameters=[
            LaunchConfiguration("params_file"),
            {
                "config": ParameterValue(LaunchConfiguration("config"), value_type=str),
                "model": ParameterValue(LaunchConfiguration("model"), value_type=str),
                "mode": ParameterValue(LaunchConfiguration("mode"), value_type=str),
                "use_sim_time": ParameterValue(
                    LaunchConfiguration("use_sim_time"), value_type=bool
                ),
                "autostart": ParameterValue(LaunchConfiguration("autostart"), value_type=bool),
            },
        ],
        arguments=["--ros-args", "--log-level", LaunchConfiguration("log_level")],
    )
    return LaunchDescription([*declared_arguments(), monitor])
