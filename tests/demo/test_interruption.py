"""Whichever signal ends the demo, it ends all that it started and says so in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.ros


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def demo(repository: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "scripts/demo.py", "--output", str(tmp_path), "--rate", "1"]
    with subprocess.Popen(
        command,
        cwd=repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_running(demo: subprocess.Popen[str], number: signal.Signals) -> None:
    assert demo.stdout is not None
    for line in demo.stdout:
        if line.startswith("    2.0 s"):
            break
    started = descendants(demo.pid)
    assert len(started) == 2, "the node and the player"
    demo.send_signal(number)
    assert "demo: interrupted; all that it started is stopped" in demo.stdout.read()
    assert demo.wait() == 128 + number
    assert not any(is_alive(pid) for pid in started)
