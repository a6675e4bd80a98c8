"""The seven packages as colcon sees them, at the top and in a user's workspace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = {
    "agent_guard": "ros.ament_python",
    "apollo_bridge": "ros.ament_python",
    "forewarn": "ros.ament_python",
    "forewarn_bringup": "ros.ament_cmake",
    "forewarn_msgs": "ros.ament_cmake",
    "forewarn_ros": "ros.ament_python",
    "monitor_node": "ros.ament_python",
}
SOURCES = (
    "Makefile", "agent_guard", "apollo_bridge", "config", "forewarn", "forewarn_ros", "launch",
    "monitor_node", "pyproject.toml", "ros2_ws", "tests",
)  # fmt: skip
COLCON = Path(sys.executable).with_name("colcon")

pytestmark = pytest.mark.skipif(not COLCON.exists(), reason="colcon is not in this environment")


def colcon(*arguments: object, folder: Path) -> str:
    environment = dict(os.environ, AMENT_PREFIX_PATH=sys.prefix, CMAKE_PREFIX_PATH=sys.prefix)
    environment["PATH"] = os.pathsep.join([str(COLCON.parent), environment["PATH"]])
    result = subprocess.run(
        [COLCON, *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def listed(base: Path, folder: Path) -> dict[str, str]:
    rows = colcon("--log-base", folder / "log", "list", "--base-paths", base, folder=folder)
    found = [row.split("\t") for row in rows.splitlines()]
    assert len({name for name, _, _ in found}) == len(found), f"a package is found twice: {rows}"
    return {name: kind.strip("()") for name, _, kind in found}


@pytest.fixture
def workspace(repository: Path, tmp_path: Path) -> Path:
    """Return a workspace whose src holds a copy of the sources, as a clone would."""
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in SOURCES:
        source, target = repository / name, tmp_path / "src" / "forewarn" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=skip)
        else:
            shutil.copy(source, target)
    return tmp_path


def test_lists_seven_packages_at_the_top(repository: Path, tmp_path: Path) -> None:
    # An invalid package.xml would silently degrade to a plain "python" or "cmake" package.
    assert listed(repository, tmp_path) == PACKAGES


@pytest.mark.parametrize("mode", [[], ["--symlink-install"]], ids=["copies", "symlinks"])
def test_workspace_builds_what_ros2_run_and_launch_look_for(
    workspace: Path, mode: list[str]
) -> None:
    # The messages are built by `make setup` already; they would take half a minute here.
    colcon(
        "build", "--packages-ignore", "forewarn_msgs", *mode, "--cmake-args", "-DBUILD_TESTING=OFF",
        folder=workspace,
    )  # fmt: skip
    install = workspace / "install"
    for executable in ("monitor_node", "bag_player_node"):
        path = install / "monitor_node" / "lib" / "monitor_node" / executable
        assert os.access(path, os.X_OK), f"ros2 run monitor_node {executable} would find nothing"
    assert os.access(install / "forewarn" / "bin" / "forewarn", os.X_OK)
    for package in PACKAGES.keys() - {"forewarn_msgs"}:
        share = install / package / "share"
        assert (share / "ament_index/resource_index/packages" / package).exists()
        assert (share / package / "package.xml").exists()
    bringup = install / "forewarn_bringup" / "share" / "forewarn_bringup"
    sources = workspace / "src" / "forewarn"
    for folder in ("launch", "config"):
        wanted = {f.relative_to(sources) for f in (sources / folder).rglob("*") if f.is_file()}
        there = {f.relative_to(bringup) for f in (bringup / folder).rglob("*") if f.is_file()}
        assert there == wanted
        assert wanted, f"{folder}/ is empty"


def test_bringup_is_built_alone_as_bloom_leaves_it(repository: Path, tmp_path: Path) -> None:
    alone = tmp_path / "forewarn_bringup"
    shutil.copytree(repository / "ros2_ws" / "src" / "forewarn_bringup", alone)
    environment = dict(os.environ, AMENT_PREFIX_PATH=sys.prefix, CMAKE_PREFIX_PATH=sys.prefix)
    environment["PATH"] = os.pathsep.join([str(COLCON.parent), environment["PATH"]])

    def cmake(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["cmake", *map(str, arguments)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    build, prefix = tmp_path / "build", tmp_path / "install"
    configure = ("-S", alone, "-B", build, f"-DCMAKE_INSTALL_PREFIX={prefix}")
    configure += ("-DBUILD_TESTING=OFF",)  # ament's linters come with ROS alone
    refused = cmake(*configure)
    assert refused.returncode != 0
    assert "has no folder launch" in refused.stderr
    for folder in ("launch", "config"):
        shutil.copytree(repository / folder, alone / folder)
    for arguments in (configure, ("--install", build)):
        done = cmake(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
    for folder in ("launch", "config"):
        there = sorted(p.name for p in (prefix / "share/forewarn_bringup" / folder).iterdir())
        assert there == sorted(p.name for p in (repository / folder).iterdir())
