"""Starts bridge and monitor: ros2 launch forewarn_bringup apollo.launch.py config:=FILE."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

PASSED_ON = ("config", "model", "mode", "autostart", "log_level")
OWN = {
    "transport": ("cyber", "cyber: Cyber RT itself; tcp: Apollo's cyber_bridge", str),
    "version": ("9", "version of Apollo, 7 to 11", int),
    "way": ("pad", "commands to planning: pad, or action from Apollo 9 on", str),
    "host": ("127.0.0.1", "where cyber_bridge listens, for the transport tcp", str),
    "port": ("9090", "TCP port of cyber_bridge", int),
    "layouts": ("", "a .record file of this Apollo: message layouts for the transport tcp", str),
    "max_rate": ("0.0", "Hz at which signals are sent at most; 0: five times the monitor's", float),
    "repeat": ("1.0", "seconds after which a command in force is written again", float),
    "journal": ("", "file that tells the bridge's next life what is in force; empty: none", str),
    "python": ("", "interpreter that has Cyber's package; empty: the bridge's own", str),
}


def declared_arguments() -> list[DeclareLaunchArgument]:
    """Declare the arguments."""
    return [
        DeclareLaunchArgument("config", description="monitor file (YAML), for both nodes"),
        DeclareLaunchArgument(
            "model",
            default_value="",
            description="model file; without any, the one that the monitor file names",
        ),
        DeclareLaunchArgument(
            "mode",
            default_value="observe",
            choices=["observe", "act"],
            description="act: intervene, if the monitor file says `mode: act` as well",
        ),
        DeclareLaunchArgument(
            "autostart",
            default_value="true",
            choices=["true", "false"],
            description="configure and activate at once; false leaves that to a lifecycle manager",
        ),
        DeclareLaunchArgument(
            "log_level",
            default_value="info",
            choices=["debug", "info", "warn", "error", "fatal"],
            description="severity from which on the nodes log",
        ),
        DeclareLaunchArgument(
            "monitor_journal",
            default_value="",
            description="journal of the monitor: not the bridge's; empty: as its params_file says",
        ),
        *(
            DeclareLaunchArgument(name, default_value=default, description=text)
            for name, (default, text, _) in OWN.items()
        ),
    ]


def generate_launch_description() -> LaunchDescription:
    """Describe the bridge, and the launch file of the monitor, with their arguments."""
    parameters = {
        name: ParameterValue(LaunchConfiguration(name), value_type=kind)
        for name, (_, _, kind) in OWN.items()
    }
    bridge = LifecycleNode(
        package="apollo_bridge",
        executable="apollo_bridge",
        name="apollo_bridge",
        namespace="",
        output="screen",
        emulate_tty=True,
        parameters=[
            {
                **parameters,
                "config": ParameterValue(LaunchConfiguration("config"), value_type=str),
                "autostart": ParameterValue(LaunchConfiguration("autostart"), value_type=bool),
            }
        ],
        arguments=["--ros-args", "--log-level", LaunchConfiguration("log_level")],
    )
    monitor = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(
            PathJoinSubstitution(
                [FindPackageShare("forewarn_bringup"), "launch", "monitor.launch.py"]
            )
        ),
        launch_arguments={
            **{name: LaunchConfiguration(name) for name in PASSED_ON},
            # Both have a journal, and one file cannot be that of both.
            "journal": LaunchConfiguration("monitor_journal"),
        }.items(),
    )
    return LaunchDescription([*declared_arguments(), bridge, GroupAction([monitor])])
