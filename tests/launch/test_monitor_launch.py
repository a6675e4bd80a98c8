"""The launch file: what it declares, and what it starts where `launch` is installed."""

from __future__ import annotations

import ast
import configparser
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ARGUMENTS = {
    "config",
    "model",
    "namespace",
    "use_sim_time",
    "params_file",
    "log_level",
    "autostart",
}


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
    text = launch_file.read_text()
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
        parameters = yaml.safe_load((repository / "config" / name).read_text())
        assert set(parameters["/**"]) == {"ros__parameters"}


def test_readme_names_every_argument(repository: Path, launch_file: Path) -> None:
    declared = re.findall(r'DeclareLaunchArgument\(\s*"(\w+)"', launch_file.read_text())
    assert set(declared) == ARGUMENTS
    readme = (repository / "README.md").read_text()
    assert not [name for name in declared if f"`{name}`" not in readme]


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
        "namespace": "ego",
        "use_sim_time": "true",
        "params_file": str(repository / "config" / "monitor.params.yaml"),
        "autostart": "false",
        "log_level": "debug",
    }
    context.launch_configurations.update(values)
    node = description.entities[-1]
    node._perform_substitutions(context)
    assert node.node_name == "/ego/monitor"
    given: dict[str, Any] = {}
    for parameters, is_file in node._Node__expanded_parameter_arguments:
        assert is_file
        for section in yaml.safe_load(Path(parameters).read_text()).values():
            given.update(section["ros__parameters"])
    assert given["config"] == "/data/monitor.yaml"
    assert given["model"] == "/data/model.json"
    assert given["use_sim_time"] is True
    assert given["autostart"] is False
