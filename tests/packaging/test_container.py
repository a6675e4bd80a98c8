"""The Dockerfile and the continuous integration's script, as far as they can be checked unbuilt."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

HADOLINT = Path(sys.executable).with_name("hadolint")


@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint is not in this environment")
def test_dockerfile_is_clean(repository: Path) -> None:
    result = subprocess.run(
        [HADOLINT, "--no-color", repository / "Dockerfile"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout


def test_dockerfile_copies_only_what_is_there(repository: Path) -> None:
    text = (repository / "Dockerfile").read_text()
    assert "FROM ros:${ROS_DISTRO}-ros-base" in text
    assert (repository / "requirements" / "ros.txt").exists()
    assert "src/forewarn/requirements/ros.txt" in text
    assert ".venv" in (repository / ".dockerignore").read_text().split()


def test_compose_starts_what_the_image_has(repository: Path) -> None:
    services = yaml.safe_load((repository / "compose.yaml").read_text())["services"]
    assert set(services) == {"monitor", "player", "foxglove"}
    stages = re.findall(r"^FROM \S+ AS (\w+)$", (repository / "Dockerfile").read_text(), re.M)
    for service in services.values():
        assert service.get("build", {"target": "monitor"})["target"] in stages
    launch = services["monitor"]["command"]
    assert (repository / "launch" / launch[3]).exists()
    described = (repository / "launch" / launch[3]).read_text()
    for argument in launch[4:]:
        assert f'"{argument.partition(":=")[0]}"' in described
    player = services["player"]["command"]
    assert f"{player[3]} = " in (repository / "monitor_node" / "setup.cfg").read_text()


def test_continuous_integration_calls_make_test(repository: Path) -> None:
    script = repository / ".ci" / "run"
    assert script.stat().st_mode & 0o111, ".ci/run is not executable"
    assert subprocess.run(["sh", "-n", script], check=False).returncode == 0
    assert script.read_text().splitlines()[-1] == "exec make test"
