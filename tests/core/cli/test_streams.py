"""Streams that cannot be written to: full, closed, or left by their reader."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("forewarn")
EXPLAIN = "explain 'always(a implies eventually[0:2](b))'"


def run(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"{PROGRAM} {command}"], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("command", [EXPLAIN, f"{EXPLAIN} --json", "--help", "--version"])
def test_a_full_disk_is_an_error_and_no_finding(command: str) -> None:
    done = run(f"{command} > /dev/full")
    assert done.returncode == 2
    assert done.stderr == (
        "forewarn: error: the output cannot be written: No space left on device\n"
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize("command", [EXPLAIN, f"{EXPLAIN} --json", "--help"])
def test_without_streams_a_command_does_what_it_does(command: str, closed: str) -> None:
    done = run(f"{command} {closed}")
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) is (">&- " not in f" {closed} ".replace("2>&-", ""))


def test_errors_without_streams_keep_their_exit_code() -> None:
    assert run("explain 'always(' >&- 2>&-").returncode == 2
    assert run("explain 'always(' 2>/dev/full").returncode == 2


@pytest.mark.parametrize("command", [EXPLAIN, "--help"])
def test_a_reader_who_has_gone_is_no_error(command: str) -> None:
    done = run(f"{command} | true; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (0, "")
