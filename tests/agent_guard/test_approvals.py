"""Runs the tests of `approvals/` where Inspect is: in one process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from own_environment import NotInstalledError, variables

FOLDER = Path(__file__).parent / "approvals"


def test_the_approver_in_evaluations_of_inspect() -> None:
    try:
        environment = variables("inspect")
    except NotInstalledError as error:
        pytest.skip(f"Inspect cannot be installed here: {error}")
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
        "-W", "ignore", str(FOLDER),
    ]  # fmt: skip
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "7 passed" in ran.stdout
