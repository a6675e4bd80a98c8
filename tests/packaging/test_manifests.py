"""What the packages say about themselves agrees, and with what their code imports."""

from __future__ import annotations

import ast
import configparser
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PYTHON_PACKAGES = ("forewarn", "forewarn_ros", "monitor_node", "apollo_bridge", "agent_guard")
MANIFESTS = (
    *(f"{name}/package.xml" for name in PYTHON_PACKAGES),
    "ros2_ws/src/forewarn_msgs/package.xml",
    "ros2_ws/src/forewarn_bringup/package.xml",
)
# Names of Debian packages in rosdep, where they differ from the requirement's.
ROSDEP = {"numpy": "python3-numpy", "scipy": "python3-scipy", "pyyaml": "python3-yaml"}
ROSDEP["rich"] = "python3-rich"
MODULES = {"yaml": "python3-yaml", "pytest": "python3-pytest", "google": "python3-protobuf"}


def setup_cfg(folder: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(folder / "setup.cfg")
    return parser


def requirement_names(lines: list[str]) -> dict[str, str]:
    """Map names in lower case to their version ranges."""
    found = {}
    for line in lines:
        text = line.split("#")[0].split(";")[0].strip()
        match = re.match(r"[A-Za-z0-9._-]+", text)
        if match:
            found[match.group().lower().replace("_", "-")] = text[match.end() :]
    return found


def imports(folder: Path) -> set[str]:
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_manifest_is_format_3_with_one_version_and_a_licence(
    repository: Path, manifest: str
) -> None:
    root = ET.parse(repository / manifest).getroot()
    assert root.get("format") == "3"
    assert root.findtext("license") == "Apache-2.0"
    assert root.findtext("name") == (repository / manifest).parent.name
    assert root.findtext("version") == setup_cfg(repository / "forewarn")["metadata"]["version"]


@pytest.mark.parametrize("package", PYTHON_PACKAGES)
def test_setup_and_manifest_agree(repository: Path, package: str) -> None:
    metadata = setup_cfg(repository / package)["metadata"]
    root = ET.parse(repository / package / "package.xml").getroot()
    name = root.findtext("name")
    assert metadata["name"] == ("forewarn_agent_guard" if name == "agent_guard" else name)
    assert metadata["version"] == root.findtext("version")
    assert root.findtext("export/build_type") == "ament_python"


@pytest.mark.parametrize("package", PYTHON_PACKAGES[1:])
def test_what_is_imported_is_declared(repository: Path, package: str) -> None:
    root = ET.parse(repository / package / "package.xml").getroot()
    declared = {e.text for e in root if e.tag.endswith("depend")} | {package}
    options = setup_cfg(repository / package)
    lines = options["options"]["install_requires"].splitlines()
    if options.has_section("options.extras_require"):
        lines += "\n".join(options["options.extras_require"].values()).splitlines()
    required = requirement_names(lines)
    declared |= {name.replace("-", "_") for name in required}
    modules = imports(repository / package / "src") - sys.stdlib_module_names
    foreign = {MODULES.get(name, name) for name in modules}
    assert foreign <= declared, f"package.xml of {package} lacks {sorted(foreign - declared)}"


def test_machines_with_ros_get_every_requirement(repository: Path) -> None:
    # From rosdep or from requirements/ros.txt, or the library would not import there.
    options = setup_cfg(repository / "forewarn")["options"]
    needed = requirement_names(options["install_requires"].splitlines())
    root = ET.parse(repository / "forewarn" / "package.xml").getroot()
    debian = {e.text for e in root if e.tag.endswith("depend")}
    lines = (repository / "requirements" / "ros.txt").read_text().splitlines()
    pip = requirement_names(lines)
    missing = [name for name in needed if name not in pip and ROSDEP.get(name) not in debian]
    assert not missing
    numpy = [Requirement(line) for line in lines if line.startswith("numpy")]
    for python, builds_with in (("3.10", "1.21.5"), ("3.12", "1.26.4"), ("3.14", "2.3.5")):
        (wanted,) = [r for r in numpy if r.marker.evaluate({"python_version": python})]
        assert builds_with in wanted.specifier, f"what ROS on Python {python} was built against"
        assert ("2.0" in wanted.specifier) is False


def test_top_level_is_no_package(repository: Path) -> None:
    # Else colcon takes the repository for one package and does not look below.
    assert not (repository / "package.xml").exists()
    assert not (repository / "setup.py").exists()
    assert "\n[project]" not in (repository / "pyproject.toml").read_text()
