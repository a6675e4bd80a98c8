"""The demo stops what it has started though a signal comes while it does so anyway."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def demo(repository: Path) -> Iterator[Any]:
    """Return the script as a module; the handlers of signals are given back at the end."""
    spec = importlib.util.spec_from_file_location("demo_script", repository / "scripts" / "demo.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    before = {number: signal.getsignal(number) for number in module.SIGNALS}
    yield module
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_while_a_process_is_stopped_leaves_none_running(
    demo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    stop = demo._stop

    class Short(demo.Demo):  # type: ignore[misc]
        def run(self) -> None:
            with self._process([sys.executable, "-c", "import signal; signal.pause()"]) as process:
                started.append(process)

    def interrupted(process: Any) -> None:
        monkeypatch.setattr(demo, "_stop", stop)
        os.kill(os.getpid(), signal.SIGTERM)
        stop(process)

    monkeypatch.setattr(demo, "Demo", Short)
    monkeypatch.setattr(demo, "_stop", interrupted)
    try:
        assert demo.main(["--output", str(tmp_path)]) == 128 + signal.SIGTERM
        assert started[0].poll() is not None
    finally:
        started[0].kill()
        started[0].wait()
