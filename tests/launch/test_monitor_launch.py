"""The launch file: what it declares, and what it starts where `launch` is installed."""

from __future__ import annotations

import ast
import configparser
import importlib.util
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_process import LIMIT, free_domain

from monitor_node.parameters import NODE_PARAMETERS

ARGUMENTS = {
    "config",
    "model",
    "mode",
    "namespace",
    "use_sim_time",
    "params_file",
    "log_level",
    "autostart",
    "name",
    "record",
    "journal",
    "learn_to",
    "bond",
    "executor",
    "queue_depth",
}
BESIDE = ("nav2.launch.xml", "autoware.launch.xml")


@pytest.fixture
def launch_file(repository: Path) -> Path:
    """Return the launch file as it is in the repository."""
    return repository / "launch" / "monitor.launch.py"


@pytest.fixture
def description(launch_file: Path) -> Any:
    """Return the launch description; skip where ROS 2's launch is absent."""
    # The repository's own folder launch/ passes for a package of that name: ask for what is in it.
    for module in ("launch.actions", "launch_ros.actions"):
        pytest.importorskip(module, reason=f"{module} comes with ROS 2, it has no wheel")
    spec = importlib.util.spec_from_file_location("monitor_launch", launch_file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generate_launch_description()


def test_installed_with_the_files_it_names(repository: Path, launch_file: Path) -> None:
    text = launch_file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    keywords = {
        keyword.arg: keyword.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if isinstance(keyword.value, ast.Constant)
    }
    setup = configparser.ConfigParser()
    setup.read(repository / keywords["package"] / "setup.cfg")
    scripts = setup["options.entry_points"]["console_scripts"]
    assert re.search(rf"^{keywords['executable']} =", scripts, re.M)
    for name in re.findall(r'"(\w[\w.]*\.yaml)"', text):
        parameters = yaml.safe_load((repository / "config" / name).read_text(encoding="utf-8"))
        assert set(parameters["/**"]) == {"ros__parameters"}


def declared_in(launch_file: Path) -> set[str]:
    """Return the arguments of the launch file, without ROS 2."""
    text = launch_file.read_text(encoding="utf-8")
    tables = (n for n in ast.parse(text).body if isinstance(n, ast.Assign))
    [given] = (t.value for t in tables if ast.unparse(t.targets[0]) == "IF_GIVEN")
    assert isinstance(given, ast.Dict)
    names = {key.value for key in given.keys if isinstance(key, ast.Constant)}
    return {*re.findall(r'DeclareLaunchArgument\(\s*"(\w+)"', text), *map(str, names)}


def test_readme_names_every_argument(repository: Path, launch_file: Path) -> None:
    declared = declared_in(launch_file)
    assert declared == ARGUMENTS
    readme = (repository / "README.md").read_text(encoding="utf-8")
    assert not [name for name in declared if f"`{name}`" not in readme]


def test_arguments_that_become_parameters_are_parameters_of_the_node() -> None:
    names = {parameter.name for parameter in NODE_PARAMETERS} | {"use_sim_time"}
    of_launch = {"name", "namespace", "params_file", "log_level"}
    assert ARGUMENTS - of_launch <= names


@pytest.mark.parametrize("name", BESIDE)
def test_beside_others_the_monitor_gets_all_that_the_other_file_may_have_too(
    repository: Path, launch_file: Path, name: str
) -> None:
    root = ET.parse(repository / "launch" / name).getroot()
    declared = {arg.get("name"): arg for arg in root.findall("arg")}
    assert all(arg.get("description") for arg in declared.values())
    theirs, ours = root.findall("group/include")
    assert str(ours.get("file")).endswith("/launch/monitor.launch.py")
    given = {str(arg.get("name")): str(arg.get("value")) for arg in ours.findall("arg")}
    assert given.keys() <= declared_in(launch_file)
    # What is given to the other file must not reach this one by a common name.
    assert {"config", "params_file", "autostart", "name", "namespace", "mode"} <= given.keys()
    named = {arg.get("name") for arg in theirs.findall("arg")}
    assert not {n for n in declared if str(n).startswith("monitor_")} & named
    for value in (*given.values(), *(str(arg.get("value")) for arg in theirs.findall("arg"))):
        for variable in re.findall(r"\$\(var (\w+)\)", value):
            assert variable in declared


def test_the_params_file_is_what_is_generated(repository: Path) -> None:
    path = repository / "scripts" / "params_file.py"
    spec = importlib.util.spec_from_file_location("params_file", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (repository / "config" / "monitor.params.yaml").read_text(encoding="utf-8")
    assert text == module.text(), "run `.venv/bin/python scripts/params_file.py`"
    values = yaml.safe_load(text)["/**"]["ros__parameters"]
    assert values.pop("use_sim_time") is False
    assert values == {parameter.name: parameter.default for parameter in NODE_PARAMETERS}


def test_arguments_are_described_and_only_config_is_required(description: Any) -> None:
    arguments = {a.name: a for a in description.get_launch_arguments()}
    assert set(arguments) == ARGUMENTS
    assert [name for name, a in arguments.items() if a.default_value is None] == ["config"]
    assert all(a.description for a in arguments.values())


def test_starts_the_node_with_the_arguments_as_parameters(
    description: Any, tmp_path: Path, repository: Path
) -> None:
    from launch import LaunchContext

    context = LaunchContext()
    values = {
        "config": "/data/monitor.yaml",
        "model": "/data/model.json",
        "mode": "act",
        "name": "watchdog",
        "namespace": "ego",
        "bond": "",
        "executor": "",
        "journal": "",
        "learn_to": "",
        "queue_depth": "70",
        "record": "/data/live.mcap",
        "use_sim_time": "true",
        "params_file": str(repository / "config" / "monitor.params.yaml"),
        "autostart": "false",
        "log_level": "debug",
    }
    context.launch_configurations.update(values)
    [node] = description.entities[-1].execute(context)
    node._perform_substitutions(context)
    assert node.node_name == "/ego/watchdog"
    given: dict[str, Any] = {}
    for parameters, is_file in node._Node__expanded_parameter_arguments:
        assert is_file
        for section in yaml.safe_load(Path(parameters).read_text()).values():
            given.update(section["ros__parameters"])
    assert given["config"] == "/data/monitor.yaml"
    assert given["model"] == "/data/model.json"
    assert given["mode"] == "act"
    assert given["use_sim_time"] is True
    assert given["autostart"] is False
    assert given["record"] == "/data/live.mcap"
    assert given["queue_depth"] == 70
    # What was not given is as in params_file.
    assert given["bond"] is False
    assert given["journal"] == ""


MONITOR = """
version: 1
rate: 10
signals:
  speed: {topic: /speed, type: std_msgs/msg/Float64, value: data, timeout: 0.5}
predicates:
  fast: speed > 5
properties:
  slow_down:
    formula: always(not fast)
    horizon: 1.0
    thresholds: {warn: 0.3, act: 0.6, release: 0.2}
    intervention: WARN
"""


def learn(folder: Path) -> tuple[Path, Path]:
    """Write a small monitor file and learn its model; returns both paths."""
    config, trace, model = folder / "monitor.yaml", folder / "drive.jsonl", folder / "model.json"
    config.write_text(MONITOR)
    lines = [f'{{"t": {k / 10}, "speed": {3 + k % 60 / 20}}}' for k in range(600)]
    trace.write_text("\n".join(lines))
    command = [sys.executable, "-m", "forewarn", "learn", trace, "-c", config, "-o", model]
    subprocess.run(command, check=True, capture_output=True)
    return config, model


@pytest.fixture
def domain() -> Iterator[int]:
    """Return a domain id of the test's own."""
    with free_domain() as number:
        yield number


@pytest.mark.ros
def test_ros2_launch_brings_the_node_up_active(
    description: Any, domain: int, tmp_path: Path
) -> None:
    import rclpy
    from lifecycle_msgs.msg import State
    from lifecycle_msgs.srv import GetState

    config, model = learn(tmp_path)
    environment = dict(os.environ, ROS_DOMAIN_ID=str(domain), ROS_LOG_DIR=str(tmp_path / "log"))
    environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    main = "import sys; from ros2cli.cli import main; sys.exit(main())"
    words = ["launch", "forewarn_bringup", "monitor.launch.py", "namespace:=ego"]
    launched = subprocess.Popen(
        [sys.executable, "-c", main, *words, f"config:={config}", f"model:={model}"],
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    context = rclpy.Context()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            rclpy.init(context=context, domain_id=domain)
        node = rclpy.create_node("asker", context=context)
        executor = rclpy.executors.SingleThreadedExecutor(context=context)
        executor.add_node(node)
        client = node.create_client(GetState, "/ego/monitor/get_state")
        # The service is there before autostart has gone through its transitions.
        state = 0
        while state != State.PRIMARY_STATE_ACTIVE and launched.poll() is None:
            if client.wait_for_service(timeout_sec=1):
                answer = client.call_async(GetState.Request())
                executor.spin_until_future_complete(answer, timeout_sec=10)
                # A server drops the response to a client that it has not discovered in time.
                state = answer.result().current_state.id if answer.done() else state
    finally:
        rclpy.try_shutdown(context=context)
        launched.send_signal(signal.SIGINT)
        output, _ = launched.communicate(timeout=LIMIT)
    assert state == State.PRIMARY_STATE_ACTIVE, output
    assert launched.returncode == 0, output
    assert "process has finished cleanly" in output
