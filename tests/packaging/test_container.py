"""The Dockerfile and the continuous integration's script, as far as they can be checked unbuilt."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
    assert "FROM ros:kilted-ros-base" in text
    assert (repository / "requirements" / "ros.txt").exists()
    assert "src/forewarn/requirements/ros.txt" in text
    assert ".venv" in (repository / ".dockerignore").read_text().split()


def test_continuous_integration_calls_make_test(repository: Path) -> None:
    script = repository / ".ci" / "run"
    assert script.stat().st_mode & 0o111, ".ci/run is not executable"
    assert subprocess.run(["sh", "-n", script], check=False).returncode == 0
    assert script.read_text().splitlines()[-1] == "exec make test"
