"""Starts the monitor: ros2 launch forewarn_bringup monitor.launch.py config:=FILE model:=FILE."""

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

ALWAYS = {"config": str, "mode": str, "use_sim_time": bool, "autostart": bool}
"""Arguments that become parameters, whatever params_file says, and their types."""
IF_GIVEN = {
    "model": (str, "model file; without any, the one that the monitor file names"),
    "record": (str, "MCAP file for all inputs and verdicts, for `forewarn verify`"),
    "journal": (str, "file that keeps obligations, alerts and what is in force through a crash"),
    "learn_to": (str, "model file to write at the end, with `learning: {online: true}`"),
    "bond": (bool, "true: form a bond with Nav2's lifecycle manager"),
    "executor": (str, "single or events: rclpy's executor"),
    "queue_depth": (int, "messages that may wait on each input between two ticks"),
}
"""Arguments that become parameters if they are not empty; else params_file decides."""


def declared_arguments() -> list[DeclareLaunchArgument]:
    """Declare the arguments."""
    default_parameters = PathJoinSubstitution(
        [FindPackageShare("forewarn_bringup"), "config", "monitor.params.yaml"]
    )
    return [
        DeclareLaunchArgument("config", description="monitor file (YAML)"),
        *(
            DeclareLaunchArgument(
                name, default_value="", description=f"{text}; empty: as params_file says"
            )
            for name, (_, text) in IF_GIVEN.items()
        ),
        DeclareLaunchArgument(
            "mode",
            default_value="observe",
            choices=["observe", "act"],
            description="act: intervene, if the monitor file says `mode: act` as well",
        ),
        DeclareLaunchArgument("name", default_value="monitor", description="name of the node"),
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
            description="ROS parameters (YAML); arguments that are given win over it",
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


def monitor(context: LaunchContext) -> list[LifecycleNode]:
    """Return the node, with the arguments that were given as parameters."""
    given = {
        name: kind
        for name, (kind, _) in IF_GIVEN.items()
        if LaunchConfiguration(name).perform(context)
    }
    parameters = {
        name: ParameterValue(LaunchConfiguration(name), value_type=kind)
        for name, kind in {**ALWAYS, **given}.items()
    }
    return [
        LifecycleNode(
            package="monitor_node",
            executable="monitor_node",
            name=LaunchConfiguration("name"),
            namespace=LaunchConfiguration("namespace"),
            output="screen",
            emulate_tty=True,
            parameters=[LaunchConfiguration("params_file"), parameters],
            arguments=["--ros-args", "--log-level", LaunchConfiguration("log_level")],
        )
    ]


def generate_launch_description() -> LaunchDescription:
    """Describe the one lifecycle node and its arguments."""
    return LaunchDescription([*declared_arguments(), OpaqueFunction(function=monitor)])
