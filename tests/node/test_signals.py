"""Told to stop at any moment, a process ends in good order, with a middleware that still works."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from live_process import LIMIT, Process, environment, standstill
from live_ros import Probe, monitor_parameters
from small_world import GATED, MONITOR

from forewarn.assessment.record_replay import replay_record
from forewarn_ros.process import END, MAKING, SIGNALS, Interrupt

pytestmark = pytest.mark.ros
LONG = pytest.mark.long
IMPATIENT = "from forewarn_ros import process\nprocess.END = process.LAST = 1.0\n"
READY = 'print("ready", flush=True)'
HANGS = f"""\
{IMPATIENT}
import contextlib, ctypes, threading
mutex, libc = ctypes.create_string_buffer(64), ctypes.CDLL(None)
def hang(library):
    while True:
        library.pthread_mutex_lock(mutex)  # it is locked by the first time
def wait():
    with contextlib.suppress(KeyboardInterrupt), interrupt.raising():
        {READY}
        threading.Event().wait()
with process.Interrupt() as interrupt:
"""
SIGNALLED = Path(__file__).resolve().parents[1] / "signalled.py"


def run(
    domain: int, module: str, kind: str, number: int, parameters: dict[str, Any]
) -> tuple[int, str]:
    """Run an executable that is told to stop while it publishes; return exit code and output."""
    command = [sys.executable, str(SIGNALLED), f"monitor_node.{module}", kind, str(int(number))]
    command.append("--ros-args")
    for name, value in parameters.items():
        command += ["-p", f"{name}:={json.dumps(value)}"]
    done = subprocess.run(
        command,
        env=environment(domain),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=4 * LIMIT,
    )
    assert f"signal {int(number)} at {kind}" in done.stdout
    return done.returncode, done.stdout


def assert_in_good_order(output: str) -> None:
    for word in ("Traceback", "Error", "ERROR", "invalid"):
        assert word not in output, output


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        pytest.param("ParameterEvent", signal.SIGTERM, id="made", marks=LONG),
        pytest.param("String", signal.SIGTERM, id="activated"),
        pytest.param("RiskArray", signal.SIGTERM, id="running", marks=LONG),
        pytest.param("RiskArray", signal.SIGINT, id="interrupted"),
    ],
)
def test_a_monitor(
    world: Path, tmp_path: Path, domain: int, kind: str, number: signal.Signals
) -> None:
    record = tmp_path / "record.mcap"
    files = {"record": str(record), "journal": str(tmp_path / "journal")}
    parameters = monitor_parameters(world, diagnostics_period=0.9, **files)
    code, output = run(domain, "main", kind, number, parameters)
    assert code == 0, output
    assert_in_good_order(output)
    if kind == "RiskArray":
        # The tick that was being published when the signal came was published and written, and with
        # it those that were due as well.
        ticks = list(replay_record(record))
        assert ticks
        assert not [difference for tick in ticks for difference in tick.differences()]
        assert (tmp_path / "journal").exists()
    else:
        assert record.exists() == (kind == "String")


def moments(kind: str, name: str) -> pytest.MarkDecorator:
    """Let a test send signals when the node is made, and when it publishes a kind of message."""
    return pytest.mark.parametrize(
        ("kind", "number"),
        [
            pytest.param("ParameterEvent", signal.SIGTERM, id="made", marks=LONG),
            pytest.param(kind, signal.SIGTERM, id=name),
            pytest.param(kind, signal.SIGINT, id="interrupted", marks=LONG),
        ],
    )


@moments("DiagnosticArray", "running")
def test_a_gate(tmp_path: Path, domain: int, kind: str, number: signal.Signals) -> None:
    file = tmp_path / "monitor.yaml"
    file.write_text(f"{MONITOR}{GATED}\n")
    code, output = run(domain, "twist_gate_node", kind, number, {"config": str(file)})
    assert code == 0, output
    assert_in_good_order(output)


@moments("Odometry", "playing")
def test_a_player(world: Path, domain: int, kind: str, number: signal.Signals) -> None:
    parameters = {"bag": str(world / "bag.mcap"), "rate": 1.0}
    code, output = run(domain, "bag_player", kind, number, parameters)
    assert code == 130, output
    assert_in_good_order(output)


@pytest.mark.parametrize("executable", ["main", "bag_player"])
def test_before_anything_is_imported(
    world: Path, tmp_path: Path, domain: int, executable: str
) -> None:
    file = tmp_path / "monitor.yaml"
    file.write_text(f"{MONITOR}{GATED}\n")
    parameters = {"bag": str(world / "bag.mcap")} if "bag" in executable else {"config": str(file)}
    process = Process(executable, domain, parameters)
    assert process.stop() == (130 if "bag" in executable else 0), process.output
    assert_in_good_order(process.output)


@pytest.fixture
def interrupt() -> Iterator[Interrupt]:
    """Return one that holds the signals, which are given back at the end."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    with Interrupt() as held:
        yield held
    faulthandler.cancel_dump_traceback_later()
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_raises_only_where_it_may(interrupt: Interrupt, number: signal.Signals) -> None:
    with interrupt.raising():
        pass
    os.kill(os.getpid(), number)
    assert interrupt.signalled
    with pytest.raises(KeyboardInterrupt):
        interrupt.check()
    with pytest.raises(KeyboardInterrupt), interrupt.raising():
        raise AssertionError("a signal that came before is not forgotten")


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_what_takes_long(interrupt: Interrupt, number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), interrupt.raising():
        os.kill(os.getpid(), number)
        while True:
            pass
    os.kill(os.getpid(), number)  # nothing is raised any more while the rest is tidied up


def test_a_node_that_is_made_leaves_the_end_to_signals(interrupt: Interrupt) -> None:
    with interrupt.making():
        assert signal.getitimer(signal.ITIMER_REAL)[0] > END
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
    with interrupt.making():
        os.kill(os.getpid(), signal.SIGINT)
    assert 0.0 < signal.getitimer(signal.ITIMER_REAL)[0] < MAKING


def test_another_error_that_is_made_of_a_signal_is_none(interrupt: Interrupt) -> None:
    with pytest.raises(KeyboardInterrupt), interrupt.raising():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            while True:
                pass
        except KeyboardInterrupt:
            raise TypeError("cannot be converted") from None
    with pytest.raises(ZeroDivisionError), Interrupt().raising():
        _ = 1 / 0


@pytest.mark.parametrize(
    ("lines", "number", "code"),
    [
        pytest.param([READY, "hang(libc)"], signal.SIGINT, 1, id="before it was told"),
        pytest.param(
            ["wait()", "hang(ctypes.PyDLL(None))"],
            signal.SIGTERM,
            1,
            id="and holds the interpreter",
        ),
        pytest.param(
            [
                "process.MAKING = 1.0",
                "block = interrupt.making()",
                "block.__enter__()",
                READY,
                "hang(ctypes.PyDLL(None))",
            ],
            signal.SIGINT,
            1,
            id="and holds it before it was told",
        ),
        pytest.param(
            ["libc.on_exit(libc.pause, None)", "wait()"],
            signal.SIGINT,
            -signal.SIGALRM,
            id="when the interpreter is gone",
        ),
    ],
)
def test_a_process_that_hangs_ends(lines: list[str], number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-c", HANGS + "".join(f"    {line}\n" for line in lines)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        try:
            _, told = process.communicate(timeout=LIMIT)
        finally:
            process.kill()  # else the block waits for what hangs
    assert process.returncode == code
    assert ("in hang" in told.decode()) == (code == 1)


def test_a_monitor_whose_output_nobody_reads_ends(world: Path, domain: int, probe: Probe) -> None:
    unread, full = os.pipe()
    os.set_blocking(full, False)
    with suppress(BlockingIOError):
        while True:
            os.write(full, b"x")
    os.set_blocking(full, True)
    command = [sys.executable, "-c", f"{IMPATIENT}from monitor_node.main import main; main()"]
    with subprocess.Popen(command, stderr=full, env=environment(domain)) as process:
        try:
            probe.wait(lambda: "monitor" in probe.node.get_node_names(), "a monitor")
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT) == -signal.SIGALRM
        finally:
            process.kill()
    os.close(unread)
    os.close(full)


def test_a_process_that_does_not_go_on_tells_where_it_is(
    world: Path, domain: int, probe: Probe
) -> None:
    process = Process("main", domain, monitor_parameters(world, autostart=False))
    probe.wait(lambda: "unconfigured; next" in process.output, "a node")
    with pytest.raises(AssertionError, match=f"process {process.process.pid}; who holds") as told:
        process.wait(0.0)
    assert f"\n{process.process.pid}: Name: " in str(told.value)  # each thread, by the kernel
    assert "process.py" in process.output and " in spin\n" in process.output  # and by Python
    assert process.stop() == 0
    assert not standstill()
