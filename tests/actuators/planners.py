"""Stand-in planners in processes of their own, and the interfaces that they need.

The interfaces have the names and fields of Autoware's and Nav2's. Only
processes that are given `interfaces` see them: this one does not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from interface_builds import built
from live_ros import KEPT, Probe, Process, environment
from std_msgs.msg import String

PACKAGES = Path(__file__).resolve().parents[1] / "interfaces"
STAND_IN = Path(__file__).with_name("stand_in.py")
NAMES = ("autoware_adapi_v1_msgs", "autoware_internal_planning_msgs", "bond", "nav2_msgs")


@pytest.fixture(scope="session")
def interfaces(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Build the interfaces; return the variables with which a process finds them."""
    work = tmp_path_factory.mktemp("interfaces")
    prefix = built(PACKAGES, repository / ".ros" / "interfaces", work)
    found = os.environ.get("AMENT_PREFIX_PATH", sys.prefix)
    library = os.environ.get("LD_LIBRARY_PATH", str(Path(sys.prefix) / "lib"))
    python = [str(next((prefix / "lib").glob("python3*/site-packages")))]
    python += [path for path in [os.environ.get("PYTHONPATH")] if path]
    return {
        "AMENT_PREFIX_PATH": f"{prefix}{os.pathsep}{found}",
        "LD_LIBRARY_PATH": f"{prefix / 'lib'}{os.pathsep}{library}",
        "PYTHONPATH": os.pathsep.join(python),
    }


@pytest.fixture
def installed(interfaces: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Let all processes that the test starts find the interfaces; return the variables."""
    for name, value in interfaces.items():
        monkeypatch.setenv(name, value)
    return interfaces


class Planner:
    """A stand-in that tells what it hears and does what it is told.

    Parameters
    ----------
    kind : str
        ``autoware`` or ``nav2``.
    probe : Probe
        A node on the same domain.
    interfaces : dict
        Variables with which the process finds the interfaces.
    settings : bool
        How it misbehaves from its beginning; see `stand_in.py`.
    """

    def __init__(
        self, kind: str, probe: Probe, interfaces: dict[str, str], **settings: Any
    ) -> None:
        self.probe = probe
        self.kind = kind
        self.heard: list[dict[str, Any]] = []
        name = f"/{kind}_{len(probe.node.get_topic_names_and_types())}"
        self._subscription = probe.node.create_subscription(
            String, f"{name}/heard", self._on_heard, KEPT
        )
        self._control = probe.node.create_publisher(String, f"{name}/control", KEPT)
        self.process = subprocess.Popen(
            [sys.executable, STAND_IN, kind, name, json.dumps(settings)],
            env={**environment(probe.domain), **interfaces},
        )

    def _on_heard(self, message: Any) -> None:
        self.heard.append(json.loads(message.data))

    def tell(self, **settings: Any) -> None:
        """Change how it behaves; returns once it does."""
        known = self.count("settings")
        self._control.publish(String(data=json.dumps(settings)))
        self.probe.wait(lambda: self.count("settings") > known, "the planner to obey")

    def of(self, what: str) -> list[dict[str, Any]]:
        """Return all that it heard of one kind."""
        return [item for item in self.heard if item["what"] == what]

    def count(self, what: str) -> int:
        """Return how much it heard of one kind."""
        return len(self.of(what))

    def wait(self, what: str, accept: Callable[[dict[str, Any]], bool] = bool) -> dict[str, Any]:
        """Wait until the newest of what it heard is accepted, and return that."""

        def newest() -> dict[str, Any] | None:
            found = self.of(what)
            assert found or self.process.poll() is None, f"it has ended: {self.process.returncode}"
            return found[-1] if found and accept(found[-1]) else None

        return self.probe.wait(newest, lambda: f"{what}: {self.heard}")

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        try:
            self.process.wait(10)
        finally:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Planner:
        self.wait("ready")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


__all__ = ["Planner", "Process", "installed", "interfaces"]
