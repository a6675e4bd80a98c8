"""`monitor_top` in a pseudo-terminal, with a real monitor over real topics."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from extent import examples
from forewarn_msgs.srv import ListAlerts
from hypothesis import given, settings
from hypothesis import strategies as st
from live_process import LIMIT, Process, environment
from live_ros import Probe, Stepper, alert, free_domain, monitor_parameters

from monitor_node.top_screen import Heard, screen

pytestmark = pytest.mark.ros

ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>])")
HOME = "\x1b[H"
COMMAND = (sys.executable, "-c", "from monitor_node.console import monitor_top; monitor_top()")


class Terminal:
    """A program in a pseudo-terminal."""

    def __init__(
        self, domain: int, *words: str, columns: int = 80, lines: int = 24, **variables: str
    ) -> None:
        self._end, self.device = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(self.device)
        found = {**environment(domain), "TERM": "xterm-256color", **variables}
        for name in ("COLUMNS", "LINES", *(() if "NO_COLOR" in variables else ("NO_COLOR",))):
            found.pop(name, None)
        self.process = subprocess.Popen(
            [*COMMAND, *words], env=found,
            stdin=self.device, stdout=self.device, stderr=self.device,
            start_new_session=True,
        )  # fmt: skip
        self.written = ""

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._end, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self) -> None:
        while select.select([self._end], [], [], 0.02)[0]:
            self.written += os.read(self._end, 1 << 16).decode(errors="replace")

    def press(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    @property
    def lines(self) -> list[str]:
        """The newest whole screen."""
        self.read()
        frames = self.written.split(HOME)
        newest = frames[-1] if frames[-1].count("\n") == frames[-2].count("\n") else frames[-2]
        return [line.rstrip("\r") for line in ESCAPES.sub("", newest).split("\n")]

    def wait(self, text: str, meanwhile: Callable[[], Any] = lambda: None) -> list[str]:
        """Wait until a text is on the screen, and return its lines."""
        end = time.monotonic() + LIMIT
        while HOME not in self.written or text not in "\n".join(self.lines):
            self.read()
            meanwhile()
            assert self.process.poll() is None, self.written
            assert time.monotonic() < end, f"{text!r} never came: {self.written[-3000:]}"
        return self.lines

    def left(self) -> int:
        """Wait for its end; the terminal is as it was."""
        end = time.monotonic() + LIMIT
        while self.process.poll() is None:
            self.read()
            assert time.monotonic() < end, "it does not end"
        self.read()
        assert termios.tcgetattr(self.device) == self.before
        assert self.written.rindex("\x1b[?1049l") > self.written.rindex("\x1b[?1049h")
        assert self.written.rindex("\x1b[?25h") > self.written.rindex("\x1b[?25l")
        assert "Traceback" not in self.written
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._end)
        os.close(self.device)


@contextmanager
def terminal(domain: int, *words: str, **settings: Any) -> Iterator[Terminal]:
    found = Terminal(domain, *words, **settings)
    try:
        yield found
    finally:
        found.close()


@pytest.mark.slow
def test_risks_alerts_and_keys_in_eighty_columns(world: Path) -> None:
    """The monitor is killed and comes back meanwhile, and the window changes its size."""
    with free_domain() as domain, terminal(domain) as top:
        top.wait("no node publishes its risk: waiting")
        probe = Probe(domain)
        parameters = monitor_parameters(world, use_sim_time=True)
        with Process("main", domain, parameters) as process:
            stepper = Stepper(probe)
            stepper.begin()
            stepper.step(speed=1.0, distance=30.0)
            lines = top.wait("> brake")
            assert "no unacknowledged alert" in "\n".join(lines)
            assert len(lines) == 24
            assert all(len(line) <= 80 for line in lines)
            alert(stepper)
            (number,) = probe.call(
                ListAlerts, "list_alerts", properties=["brake"], unacknowledged=True
            ).alerts
            top.wait(f"{number.id} brake acting")
            lines = top.wait(" ACT")
            (row,) = [line for line in lines if line.startswith("> brake")]
            assert "ACT" in row and "\N{FULL BLOCK}" in row
            assert "\x1b[38;2;" in top.written or "\x1b[38;5;" in top.written
            top.resize(40, 8)
            top.process.send_signal(signal.SIGWINCH)
            while len(lines := top.lines) != 8:
                assert top.process.poll() is None
            assert all(len(line) <= 40 for line in lines)
            top.resize(10, 2)
            top.wait("more room")
            top.resize(80, 24)
            top.wait("q quit")
            top.press("a")
            top.wait("acknowledged (by")
            listed = probe.call(
                ListAlerts, "list_alerts", properties=["brake"], unacknowledged=True
            )
            assert listed.alerts == []
            top.press("m")
            top.wait("muted for 60 s: brake")
            stepper.step(speed=3.0, distance=5.0)
            top.wait(" muted violated" if "violated" in "".join(top.lines) else " muted")
            top.press("u")
            top.wait("brake")
            top.press("\x1b[B")
            top.wait("> no_collision")
            process.process.kill()
            process.wait()
        top.wait("no node publishes its risk: waiting")
        probe.close()
        probe = Probe(domain)
        with Process("main", domain, parameters):
            again = Stepper(probe, start=stepper.tick + 100)
            again.begin()
            again.step(speed=1.0, distance=30.0)
            top.wait(f"tick {again.tick - 1}")
            top.press("q")
            assert top.left() == 0
        probe.close()


def test_a_signal_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("/top: {ros__parameters: {mute: 9.0}}\n")
    words = ("--ros-args", "--params-file", str(file))
    with free_domain() as domain, terminal(domain, *words, NO_COLOR="1") as top:
        top.wait("no node publishes its risk")
        warning = f"{file}: no parameters for this node, /monitor_top: its parameters are for"
        assert warning in top.written
        drawn = top.written.partition("\x1b[?1049h")[2]
        assert HOME in drawn
        assert not re.search(r"\x1b\[[0-9;]*3[0-9]", drawn), "NO_COLOR"
        top.process.send_signal(signal.SIGINT)
        assert top.left() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become a user without a name")
def test_a_user_without_a_name_is_a_number() -> None:
    code = "from monitor_node.top import os, user; os.setuid(54321); print(user())"
    names = ("LOGNAME", "USER", "LNAME", "USERNAME")
    found = {key: value for key, value in environment(0).items() if key not in names}
    done = subprocess.run(
        [sys.executable, "-c", code], env=found, capture_output=True, text=True, check=False
    )
    assert done.stdout == "user 54321\n", done.stderr


def test_without_a_terminal_it_says_so() -> None:
    with free_domain() as domain:
        done = subprocess.run(
            COMMAND, env=environment(domain), capture_output=True, text=True, timeout=LIMIT,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    assert done.returncode == 2
    assert "it needs a terminal" in done.stderr


def test_a_long_name_leaves_room_for_the_reason() -> None:
    name = "keeps_its_distance_from_people_who_stand_where_nobody_should_stand"
    alert = SimpleNamespace(
        id=7, property=name, state=2, ENDED=3, acted=SimpleNamespace(sec=1, nanosec=0),
        acknowledged_by="", reason=f"{name}: risk 0.745 within 2 s is at least 0.4",
    )  # fmt: skip
    shown = screen(Heard("/monitor", present=True, silent=0.1, alerts=[alert]), 80, 10).plain
    assert "  7 keeps_its_distance_from_pe acting: risk 0.745 within 2 s" in shown


names = st.text(min_size=1, max_size=60)
risks = st.builds(
    SimpleNamespace,
    property=names,
    probability=st.floats(0, 1) | st.just(float("nan")),
    threshold_act=st.floats(0, 1),
    level=st.integers(0, 2),
    muted=st.booleans(),
    violations=st.integers(0, 10**9),
    stale_signals=st.lists(names, max_size=3),
    stale_ages=st.lists(st.floats(0, 1e9) | st.just(float("inf")), min_size=3, max_size=3),
)
alerts = st.builds(
    SimpleNamespace,
    id=st.integers(0, 10**9), property=names, state=st.integers(1, 3), ENDED=st.just(3),
    acted=st.just(SimpleNamespace(sec=1, nanosec=0)), acknowledged_by=st.just(""), reason=names,
)  # fmt: skip


@settings(max_examples=examples(24), deadline=None)
@given(
    st.lists(risks, max_size=6), st.lists(alerts, max_size=6), st.integers(0, 30),
    st.integers(1, 130), st.integers(1, 40),
)  # fmt: skip
def test_any_content_fits_any_window(
    risks: list[Any], alerts: list[Any], chosen: int, width: int, height: int
) -> None:
    heard = Heard("/monitor", present=True, silent=0.1, mode="act", risks=risks, alerts=alerts)
    heard.choose(chosen)
    lines = screen(heard, width, height).split("\n", allow_blank=True)
    assert len(lines) <= height
    assert all(line.cell_len <= width for line in lines)
    if width >= 40 and height >= 8 and risks:
        assert any(line.plain.startswith("> ") for line in lines), "the chosen one is in view"
