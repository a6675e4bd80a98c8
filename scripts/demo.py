"""`make demo`: learn from recordings, watch one that nobody has seen, over real ROS 2 topics.

Three processes: the lifecycle node, a player that feeds it in lock-step, and this one, which
listens. Whatever happens, the other two are stopped.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forewarn.files.interpreters import command
from forewarn.threads import compute_in_one_thread

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = ROOT / "evaluation" / "sumo" / "recordings"
CONFIG = ROOT / "config" / "demo.yaml"
SHIPPED_MODEL = ROOT / "config" / "demo.model.json.gz"
MEET = 120.0
"""Seconds in which a process has to speak. Only one that hangs takes longer, however busy the
machine is; one that ends is noticed at once."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BAR = 8
COLOURS = ("green", "yellow", "red")
LEVELS = ("", "WARN", "ACT")


class DemoError(Exception):
    """Something failed; the text says what, and what to do."""


class Interrupted(BaseException):
    """A signal came; no KeyboardInterrupt, after which `subprocess` leaves children unburied."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0, 1 if a step failed, or 128 and the number of the signal that ended it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=6.0, help="times real time (default: 6)")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "out" / "demo", help="folder (default: out/demo)"
    )
    options = parser.parse_args(arguments)
    compute_in_one_thread()
    signals = Signals()
    demo = Demo(options.rate, options.output, signals)
    try:
        demo.run()
    except (Exception, Interrupted) as error:
        if signals.signalled:
            for process in demo.processes:  # one was maybe about to be stopped
                _stop(process)
            print("demo: interrupted; all that it started is stopped", file=sys.stderr)
            return 128 + signals.signalled
        if not isinstance(error, DemoError):
            raise
        print(f"demo: error: {error}", file=sys.stderr)
        return 1
    return 0


class Signals:
    """Leaves by way of every `finally`, which stop the processes, and does so undisturbed."""

    def __init__(self) -> None:
        self.signalled = 0
        self._held = False
        for number in SIGNALS:
            signal.signal(number, self._interrupt)

    def _interrupt(self, number: int, frame: object) -> None:
        for one_signal in SIGNALS:
            signal.signal(one_signal, signal.SIG_IGN)
        self.signalled = number
        if not self._held:
            raise Interrupted

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let a signal wait.

        Nobody could stop a process that is only just being started, and an exception that comes up
        while C++ converts a message becomes another one.
        """
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self.signalled:
            raise Interrupted


class Demo:
    """One run.

    Parameters
    ----------
    rate : float
        Times real time.
    output : Path
        Where model, record, logs and report go.
    signals : Signals
        What ends it before its time.
    """

    def __init__(self, rate: float, output: Path, signals: Signals) -> None:
        self.signals = signals
        self.processes: list[subprocess.Popen[Any]] = []
        self.rate = rate
        self.output = output
        self.model = output / "model.json"
        self.record = output / "record.mcap"
        self.report = output / "report.html"
        # Nobody else's topics, and nobody else's ears.
        self.domain = int(os.environ.get("ROS_DOMAIN_ID", 20 + os.getpid() % 70))
        self.environment = {
            **os.environ,
            "ROS_DOMAIN_ID": str(self.domain),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "PYTHONUNBUFFERED": "1",
        }

    def run(self) -> None:
        """Learn, watch, replay, report."""
        begun = time.monotonic()
        self.output.mkdir(parents=True, exist_ok=True)
        self.record.unlink(missing_ok=True)
        training = sorted(RECORDINGS.glob("train_*"))
        held_out = RECORDINGS / "held_out"
        if not training or not held_out.exists() or not SHIPPED_MODEL.exists():
            raise DemoError(f"no sample recordings below {RECORDINGS}: check them out again")
        self._say(
            "1/4", f"learning from {len(training)} recordings, and adding the counts that ship"
        )
        self._learn(training)
        self._say("2/4", f"watching {held_out.name}, which neither has seen, over ROS 2 topics")
        self._watch(held_out)
        self._say("3/4", "replaying the node's own record")
        self._replay()
        self._say("4/4", "writing the report")
        self._forewarn("report", held_out, "-c", CONFIG, "-m", self.model, "-o", self.report, "-q")
        print(f"\nreport: {self.report}\nrecord: {self.record}")
        print(f"done in {time.monotonic() - begun:.0f} s; all processes are stopped")

    def _say(self, step: str, text: str) -> None:
        print(f"\n[{step}] {text}", flush=True)

    def _forewarn(self, *arguments: object) -> str:
        """Run a command, and return what it prints."""
        program = command("from forewarn.cli import main; sys.exit(main())", *arguments)
        pipe = subprocess.PIPE
        with self._process(program, stdout=pipe, stderr=pipe, text=True) as process:
            output, errors = process.communicate()
        if process.returncode != 0:
            error = " | ".join((errors.strip() or output.strip()).splitlines())
            raise DemoError(f"`forewarn {arguments[0]}` failed: {error or 'it said nothing'}")
        return output

    def _learn(self, training: Sequence[Path]) -> None:
        output = self._forewarn(
            "learn",
            *training,
            "-c",
            CONFIG,
            "-o",
            self.model,
            "--add-to",
            SHIPPED_MODEL,
            "-j0",
            "-q",
        )
        print(f"      {output.splitlines()[-1]}")

    def _watch(self, bag: Path) -> None:
        monitor = {
            "config": CONFIG,
            "model": self.model,
            "record": self.record,
            "autostart": "true",
            "use_sim_time": "true",
        }
        player = {"bag": bag, "lockstep": "true", "rate": self.rate, "timeout": MEET}
        with self._listener() as listener, self._node("monitor_node", monitor) as watching:
            listener.meet(watching)
            with self._node("bag_player_node", player) as playing:
                listener.listen(playing, watching)
        listener.summary()

    @contextmanager
    def _listener(self) -> Iterator[Any]:
        from forewarn.config.file import load_spec

        period = 1.0 / load_spec(CONFIG).rate
        with self.signals.held():
            listener = Listener(self.domain, self.output, period, self.signals)
        try:
            yield listener
        finally:
            with self.signals.held():
                listener.close()

    @contextmanager
    def _node(self, name: str, parameters: dict[str, object]) -> Iterator[subprocess.Popen[bytes]]:
        """Run an executable of monitor_node in its own process; it is stopped at the end."""
        log = self.output / f"{name}.log"
        program = command(f"from monitor_node.console import {name}; {name}()", "--ros-args")
        for key, value in parameters.items():
            program += ["-p", f"{key}:={value}"]
        with log.open("w") as file:
            options = {"env": self.environment, "stdout": file, "stderr": file}
            with self._process(program, **options) as process:
                yield process

    @contextmanager
    def _process(self, program: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
        process: subprocess.Popen[Any] | None = None
        try:
            with self.signals.held():
                process = subprocess.Popen(program, **options)
                self.processes.append(process)
            yield process
        finally:
            if process is not None:
                _stop(process)

    def _replay(self) -> None:
        from forewarn.assessment.record_replay import replay_record

        ticks = 0
        for tick in replay_record(self.record):
            ticks += 1
            for difference in tick.differences():
                raise DemoError(
                    "the record does not replay to the same bits: "
                    f"tick {tick.result.verdict.tick}: {difference}"
                )
        if not ticks:
            raise DemoError(
                f"the record {self.record} holds no ticks: see {self.output}/monitor_node.log"
            )
        print(f"      {ticks} ticks, every field of every risk the same to the last bit")


def _stop(process: subprocess.Popen[bytes]) -> None:
    for number, patience in ((signal.SIGINT, 5.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0)):
        if process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue


class Listener:
    """Hears what the monitor publishes and prints it: risk, alerts, violations with lead times.

    Parameters
    ----------
    domain : int
        Domain of the other two processes.
    logs : Path
        Where they write.
    period : float
        Seconds between ticks.
    signals : Signals
        What ends it before its time.
    """

    def __init__(self, domain: int, logs: Path, period: float, signals: Signals) -> None:
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        import rclpy
        from forewarn_msgs.msg import RiskArray
        from rclpy.context import Context
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.node import Node
        from rclpy.signals import SignalHandlerOptions
        from rich.console import Console

        self._logs = logs
        self._period = period
        self._signals = signals
        self._console = Console(highlight=False)
        self._rclpy, self._context = rclpy, Context()
        rclpy.init(
            context=self._context,
            domain_id=domain,
            signal_handler_options=SignalHandlerOptions.NO,
        )
        self._node = Node("demo", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._subscription = self._node.create_subscription(
            RiskArray, "/monitor/output/risk", self._on_risk, 1000
        )
        self._first = self._ticks = 0
        self._levels: dict[str, int] = {}
        self._alerts: dict[str, int] = {}
        self._counted: dict[str, int] = {}
        self._leads: list[float | None] = []

    def close(self) -> None:
        """Leave the domain."""
        self._executor.shutdown()
        self._node.destroy_node()
        self._rclpy.shutdown(context=self._context)

    def meet(self, watching: subprocess.Popen[bytes]) -> None:
        """Wait until the monitor publishes risk."""
        end = time.monotonic() + MEET
        while not self._subscription.get_publisher_count():
            self._check(watching, "the monitor", "monitor_node")
            if time.monotonic() > end:
                error = self._last_error("monitor_node")
                raise DemoError(f"the monitor did not start in {MEET:g} s: {error}")
            self._serve()

    def listen(self, playing: subprocess.Popen[bytes], watching: subprocess.Popen[bytes]) -> None:
        """Print until the player is through."""
        while playing.poll() is None:
            self._check(watching, "the monitor", "monitor_node")
            self._serve()
        if playing.returncode != 0:
            raise DemoError(f"the player failed: {self._last_error('bag_player_node')}")
        if not self._ticks:
            raise DemoError(f"no verdict came: {self._last_error('monitor_node')}")

    def _serve(self) -> None:
        with self._signals.held():
            self._executor.spin_once(timeout_sec=0.1)

    def _check(self, process: subprocess.Popen[bytes], what: str, name: str) -> None:
        if process.poll() is not None:
            raise DemoError(f"{what} has ended: {self._last_error(name)}")

    def _last_error(self, name: str) -> str:
        log = self._logs / f"{name}.log"
        lines = log.read_text(errors="replace").splitlines()
        errors = [line for line in lines if "[ERROR]" in line or "Error" in line]
        return f"{errors[-1] if errors else 'it said nothing'} (all of it in {log})"

    def _on_risk(self, message: Any) -> None:
        self._ticks += 1
        self._first = self._first or message.risks[0].tick
        for risk in message.risks:
            self._follow(risk)
        if (self._ticks - 1) % round(1 / self._period) == 0:
            parts = (f"{risk.property} {_bar(risk)}" for risk in message.risks)
            self._print(message.risks[0].tick, "   ".join(parts))

    def _follow(self, risk: Any) -> None:
        """Print the beginning of alerts, and violations."""
        name, tick = risk.property, risk.tick
        before = self._levels.get(name, 0)
        self._levels[name] = risk.level
        if risk.level == risk.LEVEL_ACT and before != risk.LEVEL_ACT:
            self._alerts[name] = tick
            text = f"risk {risk.probability:.2f} within {risk.horizon:g} s, while {risk.state}"
            self._print(tick, f"[bold yellow]ALERT {name}[/]: {text}")
        if risk.violations > self._counted.get(name, 0):
            since = self._alerts.get(name)
            foreseen = since is not None and since < tick and risk.level == risk.LEVEL_ACT
            lead = None
            if foreseen and since is not None:
                lead = min((tick - since) * self._period, risk.horizon)
            self._leads.append(lead)
            outcome = "not foreseen" if lead is None else f"foreseen {lead:.1f} s before"
            self._print(tick, f"[bold red]VIOLATION {name}[/]: {outcome}")
        self._counted[name] = risk.violations

    def _print(self, tick: int, text: str) -> None:
        self._console.print(f"{(tick - self._first) * self._period:7.1f} s  {text}", soft_wrap=True)

    def summary(self) -> None:
        """Print how many violations were foreseen."""
        leads = sorted(lead for lead in self._leads if lead is not None)
        by = f" by {leads[0]:.1f} to {leads[-1]:.1f} s" if leads else ""
        foreseen = f"{len(leads)} of {len(self._leads)} violations foreseen{by}"
        print(f"      {self._ticks} ticks; {foreseen}")


def _bar(risk: Any) -> str:
    value = risk.probability
    if value != value:
        return f"[magenta]{'?' * BAR}   never seen[/]"
    filled = round(value * BAR)
    colour = COLOURS[risk.level]
    bar = f"[{colour}]{'█' * filled}[/][dim]{'░' * (BAR - filled)}[/]"
    return f"{bar} [{colour}]{value:.2f}[/] {LEVELS[risk.level]:4}"


if __name__ == "__main__":
    sys.exit(main())
