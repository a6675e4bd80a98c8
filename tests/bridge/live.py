"""Processes for the live tests and the benchmark: a small Apollo, the bridge, the monitor.

Not a conftest: imported by name.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

MONITOR = """\
version: 1
rate: {rate}
startup_grace: 120
signals:
  speed:
    channel: /apollo/canbus/chassis
    message: apollo.canbus.Chassis
    value: speed_mps
    timeout: 1.0
predicates:
  fast: speed > 5
bins:
  speed: [2, 4]
properties:
  not_fast:
    formula: always(not fast)
    horizon: 1.0
    thresholds: {{warn: 0.3, act: 0.5, release: 0.2}}
    enter: 1
    exit: 1
    hold: 0
    intervention: COMFORTABLE_STOP
mode: act
model: monitor.model.json
"""
LIMIT = 240.0
SIGNALLED = Path(__file__).resolve().parents[1] / "signalled.py"


class Process:
    """A process whose lines of output are told apart by a thread.

    Parameters
    ----------
    command : list of str
        What to start.
    log : Path
        Where its standard error goes.
    """

    def __init__(self, command: list[str], log: Path, environment: dict[str, str]) -> None:
        self.log = log
        self.lines: queue.Queue[Any] = queue.Queue()
        self._error = log.open("ab")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._error,
            env=environment,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                self.lines.put(json.loads(line))
        self.lines.put(None)

    def tell(self, **command: Any) -> None:
        """Send a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def wait_for(self, wanted: Callable[[dict[str, Any]], bool], limit: float = LIMIT) -> Any:
        """Return the first line that is wanted; others are dropped."""
        while True:
            try:
                line = self.lines.get(timeout=limit)
            except queue.Empty:
                raise AssertionError(f"nothing came: {self.log.read_text()[-2000:]}") from None
            if line is None:
                raise AssertionError(f"it ended: {self.log.read_text()[-2000:]}")
            if wanted(line):
                return line

    def interrupt(self) -> str:
        """End it as Ctrl-C does, and return what it has written to its log."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(LIMIT) == 0
        return self.log.read_text()

    def stop(self, *, kill: bool = False) -> None:
        """End it."""
        (self.process.kill if kill else self.process.terminate)()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._error.close()


class World:
    """All processes of one test, in domains of their own.

    Parameters
    ----------
    folder : Path
        For files and logs.
    domain, cyber_domain : int
        Numbers for ROS and for Cyber RT, which both use DDS.
    """

    def __init__(self, folder: Path, domain: int, cyber_domain: int) -> None:
        self.folder = folder
        self.domain = domain
        self.environment = dict(
            os.environ,
            ROS_DOMAIN_ID=str(domain),
            ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST",
            ROS_LOG_DIR=str(folder),
            CYBER_DOMAIN_ID=str(cyber_domain),
            CYBER_IP="127.0.0.1",
            GLOG_log_dir=str(folder),
        )
        self.processes: list[Process] = []

    def start(self, name: str, *command: str, **environment: str) -> Process:
        """Start a process."""
        log = self.folder / f"{name}.log"
        process = Process([sys.executable, *command], log, {**self.environment, **environment})
        self.processes.append(process)
        return process

    def apollo(self, rate: float, **environment: str) -> Process:
        """Start the small Apollo and wait until it publishes."""
        script = Path(__file__).with_name("apollo_process.py")
        process = self.start("apollo", str(script), str(rate), **environment)
        process.wait_for(lambda line: "ready" in line)
        return process

    def ros(
        self,
        name: str,
        module: str,
        parameters: dict[str, Any],
        environment: dict[str, str] | None = None,
        told: tuple[str, int] | None = None,
        files: Sequence[str] = (),
    ) -> Process:
        """Start a ROS node of ours, to be sent a signal at its first message of a type."""
        given = [f"{key}:={_yaml(value)}" for key, value in parameters.items()]
        words = [word for argument in given for word in ("-p", argument)]
        words += [word for file in files for word in ("--params-file", file)]
        code = ["-c", f"from {module} import main; main()"]
        if told is not None:
            code = [str(SIGNALLED), module, told[0], str(int(told[1]))]
        return self.start(name, *code, "--ros-args", *words, **(environment or {}))

    def monitor(self, **parameters: Any) -> Process:
        """Start the monitor."""
        config = str(self.folder / "monitor.yaml")
        given = {"config": config, "autostart": True, "mode": "act", **parameters}
        return self.ros("monitor", "monitor_node.main", given)

    def bridge(
        self,
        environment: dict[str, str] | None = None,
        told: tuple[str, int] | None = None,
        files: Sequence[str] = (),
        **parameters: Any,
    ) -> Process:
        """Start the bridge; see `ros`."""
        given = {
            "config": str(self.folder / "monitor.yaml"),
            "autostart": True,
            "diagnostics_period": 0.1,
            **parameters,
        }
        return self.ros("bridge", "apollo_bridge.main", given, environment, told, files)

    def close(self) -> None:
        """End all processes."""
        for process in reversed(self.processes):
            if process.process.poll() is None:
                process.stop()


class Running:
    """Apollo, monitor and bridge that several tests use one after the other.

    Every test asks for what it needs; only what is not there, or was started with other parameters,
    is started.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.parts: dict[str, tuple[dict[str, Any], Process]] = {}
        self.records = 0

    def _part(self, name: str, key: dict[str, Any], start: Callable[[], Process]) -> Process:
        known, process = self.parts.get(name, (None, None))
        if process is not None and process.process.poll() is None:
            if known == key:
                return process
            process.stop()
        process = start()
        self.parts[name] = (key, process)
        return process

    @property
    def apollo(self) -> Process:
        """The small Apollo."""
        return self._part("apollo", {}, lambda: self.world.apollo(50))

    @property
    def monitor(self) -> Process:
        """The monitor, which records its session."""

        def start() -> Process:
            self.records += 1
            return self.world.monitor(record=self.record)

        return self._part("monitor", {}, start)

    @property
    def record(self) -> Path:
        """Where the monitor records."""
        return self.world.folder / f"session{self.records}.mcap"

    def bridge(self, environment: dict[str, str] | None = None, **parameters: Any) -> Process:
        """Return the bridge with these parameters."""
        key = {"environment": environment, **parameters}
        return self._part("bridge", key, lambda: self.world.bridge(environment, **parameters))


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def write_monitor(folder: Path, record: Path, rate: float = 10.0) -> Path:
    """Write a monitor file, and its model learned from a record."""
    from forewarn.config.file import load_spec
    from forewarn.learning.pipeline import learn
    from forewarn.models.file import save_model
    from forewarn.monitoring.build import compile_spec

    path = folder / "monitor.yaml"
    path.write_text(MONITOR.format(rate=rate))
    spec = load_spec(path)
    compiled = compile_spec(spec)
    save_model(learn([record], spec, compiled.abstraction).model, folder / "monitor.model.json")
    return path
