"""Whichever signal ends the demo, it ends all that it started and says so in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytestmark = [pytest.mark.ros, pytest.mark.slow]

LIMIT = 240.0
DEMO = """
import sys
from pathlib import Path
sys.path.insert(0, "scripts")
import demo
demo.CONFIG = Path(sys.argv.pop(1))
sys.exit(demo.main())
"""


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children]


def started(demo: subprocess.Popen[str], number: int) -> list[int]:
    """Return the processes that it has started once there are so many."""
    end = time.monotonic() + LIMIT
    while len(found := descendants(demo.pid)) < number:
        assert time.monotonic() < end, f"only {found}"
        with suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"it has ended: {demo.wait(0.001)}")
    return found


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def demo(repository: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    config = tmp_path / "demo.yaml"
    shipped = (repository / "config" / "demo.yaml").read_text(encoding="utf-8")
    # Else most of the time goes into choosing estimates and into their bounds.
    config.write_text(shipped.replace("estimator: ensemble", "estimator: chain"), encoding="utf-8")
    command = [sys.executable, "-c", DEMO, config, "--output", tmp_path, "--rate", "1"]
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


@pytest.mark.parametrize(
    ("number", "moment", "processes"),
    [
        pytest.param(signal.SIGTERM, "[1/4]", 1, id="SIGTERM while it learns"),
        pytest.param(signal.SIGHUP, "[1/4]", 1, id="SIGHUP while it learns"),
        pytest.param(signal.SIGINT, "    0.0 s", 2, id="SIGINT while node and player talk"),
    ],
)
def test_nothing_is_left_running(
    demo: subprocess.Popen[str], number: signal.Signals, moment: str, processes: int
) -> None:
    assert demo.stdout is not None
    said = []
    for line in demo.stdout:
        said.append(line)
        if line.startswith(moment):
            break
    else:
        raise AssertionError("".join(said))
    found = started(demo, processes)
    assert len(found) == processes
    demo.send_signal(number)
    assert "demo: interrupted; all that it started is stopped" in demo.stdout.read()
    assert demo.wait() == 128 + number
    assert not any(is_alive(pid) for pid in found)
