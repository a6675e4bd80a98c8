"""Executables of monitor_node in processes of their own, each test's on a domain of its own."""

from __future__ import annotations

import atexit
import fcntl
import functools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import IO, Any

from forewarn_ros.process import END

LIMIT = 240.0
STACKS = signal.SIGUSR1
OF_STATUS = ("Name", "State", "SigBlk", "SigPnd", "ShdPnd")
PRELOADED = Path(__file__).with_name("preloaded.py")
TURNS = cycle(range(0, 29, 2))
ALL: weakref.WeakSet[Process] = weakref.WeakSet()
DOMAINS = (*range(91, 102), *range(215, 233))  # their ports are no ephemeral ones on Linux
PORTS, FIRST_PORT = 250, 7400  # of a domain, by the RTPS specification 9.6.1.1
FINISHED = (2).to_bytes(4, sys.byteorder)  # what a port of shared memory that is ready begins with


def lockable(path: Path) -> IO[bytes]:
    """Open a file that another user may have made.

    Linux lets nobody, not even root, open another's file in /tmp as one that may have to be made.
    """
    while True:
        with suppress(FileNotFoundError):
            return path.open("rb")
        with suppress(FileExistsError):
            path.touch(exist_ok=False)
            path.chmod(0o644)  # whatever the umask


def inhabited_domains() -> set[int]:
    """Return the domains that somebody on this machine listens on, whoever started him.

    A test that was killed may have left its monitor behind, and a lock dies with its owner.
    """
    lines = [
        line
        for table in ("udp", "udp6")
        for line in Path(f"/proc/net/{table}").read_text("ascii").splitlines()[1:]
    ]
    ports = (int(line.split()[1].rpartition(":")[2], 16) for line in lines)
    return {(port - FIRST_PORT) // PORTS for port in ports}


def remove_abandoned_ports(domain: int) -> None:
    """Remove the shared memory that killed processes left of the ports of a domain.

    Fast DDS takes up a port that is there, with whatever its last owner left in it. In one run a
    monitor and a stand-in that did so heard nothing of each other for 240 s.
    """
    first = FIRST_PORT + PORTS * domain
    for port in range(first, first + PORTS):
        for name in (
            f"fastdds_port{port}",
            f"fastdds_port{port}_el",
            f"sem.fastdds_port{port}_mutex",
        ):
            with suppress(FileNotFoundError, PermissionError):  # it may be another user's
                Path("/dev/shm", name).unlink()


def remove_unfinished_ports(folder: Path = Path("/dev/shm")) -> None:
    """Remove ports whose makers were killed before they had finished them.

    Whoever opens such a port waits for ever for its maker (Boost's `managed_open_or_create_impl`),
    before his node is made. Beside those of its domain, each process takes ports from 7000 on.
    """
    for port in folder.glob("fastdds_port*[0-9]"):
        with suppress(FileNotFoundError, PermissionError), port.open("rb") as file:
            age = time.time() - os.fstat(file.fileno()).st_mtime
            if file.read(4) != FINISHED and age > 10.0:  # it takes a millisecond to make one
                port.unlink()


@contextmanager
def free_domain() -> Iterator[int]:
    """Reserve a domain id that no other test, of whatever process, uses meanwhile.

    Each test gets another one than the test before it, which may still echo.
    """
    turn = next(TURNS)
    for domain in (*DOMAINS[turn:], *DOMAINS[:turn]):
        path = Path(tempfile.gettempdir()) / f"forewarn-test-domain-{domain}"
        with lockable(path) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            if domain in inhabited_domains():
                continue
            remove_abandoned_ports(domain)
            remove_unfinished_ports()
            yield domain
            return
    raise AssertionError("all domain ids are in use")


def environment(domain: int) -> dict[str, str]:
    """Return the environment of a process on one domain that stays on this machine."""
    return {
        **os.environ,
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_LOCALHOST_ONLY": "1" if os.environ.get("ROS_DISTRO") == "humble" else "0",
        "PYTHONUNBUFFERED": "1",
    }


@functools.lru_cache
def preloaded(*fixed: tuple[str, str | None]) -> socket.socket:
    """Return the socket of `preloaded.py`, run with variables that count when a process begins."""
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    variables = {**os.environ, "PYTHONUNBUFFERED": "1"}
    variables.update({name: value for name, value in fixed if value is not None})
    with other:
        process = subprocess.Popen(
            [sys.executable, PRELOADED, str(other.fileno())],
            env=variables,
            pass_fds=[other.fileno()],
        )

    def end() -> None:
        own.close()
        process.wait(LIMIT)

    atexit.register(end)
    return own


class Forked:
    """A process that `preloaded.py` forks; it looks like one of `subprocess.Popen`.

    It runs an executable of monitor_node, or a module as ``python -m`` does.
    """

    def __init__(
        self,
        name: str,
        arguments: list[str],
        env: Mapping[str, str],
        output: IO[Any],
        errors: IO[Any] | None = None,
        module: bool = False,
    ) -> None:
        fixed = ((name, env.get(name)) for name in ("LD_LIBRARY_PATH", "PYTHONPATH"))
        self._requests = preloaded(*fixed)
        self.returncode: int | None = None
        self._life, held = os.pipe()
        request = {
            "run": name, "module": module, "arguments": arguments, "environment": dict(env)
        }  # fmt: skip
        self.pid = self._ask(request, output.fileno(), (errors or output).fileno(), held)
        os.close(held)

    def _ask(self, request: dict[str, Any], *files: int) -> int:
        socket.send_fds(self._requests, [json.dumps(request).encode()], files)
        return int(self._requests.recv(64))

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit code."""
        if self.returncode is None:
            if not select.select([self._life], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            os.close(self._life)
            self.returncode = self._ask({"bury": self.pid})
        return self.returncode

    def poll(self) -> int | None:
        """Return its exit code if it has ended."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """Send a signal, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it without asking."""
        self.send_signal(signal.SIGKILL)

    def holders(self) -> list[int]:
        """Return the processes that hold the pipe by which its end is noticed."""
        pipe, found = os.readlink(f"/proc/self/fd/{self._life}"), []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it may end meanwhile, or be another user's
                if any(os.readlink(file) == pipe for file in (folder / "fd").iterdir()):
                    found.append(int(folder.name))
        return [pid for pid in found if pid != os.getpid()]


class Process:
    """An executable of monitor_node in its own process; its output can be waited for."""

    def __init__(
        self, executable: str, domain: int, parameters: Mapping[str, Any], *more: str
    ) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, self._output.close)  # a test may drop it without `with`
        arguments = ["--ros-args"]
        for name, value in parameters.items():
            arguments += ["-p", f"{name}:={json.dumps(value)}"]
        self.process = Forked(executable, [*arguments, *more], environment(domain), self._output)
        ALL.add(self)

    @property
    def output(self) -> str:
        """All that it has written so far."""
        # The process writes at the position of a file that it shares with us: leave that alone.
        file = self._output.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")

    def wait(self, limit: float = LIMIT) -> int:
        """Wait for its end and return its exit code."""
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it has not ended: {self.stacks()}{self.output}") from None

    def stacks(self) -> str:
        """Return where all its threads are: what to look at when it does not go on."""
        pid = self.process.pid
        told = [f"process {pid}; who holds its pipe: {self.process.holders()}"]
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # a thread may end meanwhile
                status = (task / "status").read_text().splitlines()
                kept = " ".join(line for line in status if line.startswith(OF_STATUS))
                told.append(f"{task.name}: {kept} {(task / 'wchan').read_text()}".expandtabs(1))
        self.process.send_signal(STACKS)  # preloaded.py has it written to the output
        if debugger := shutil.which("gdb"):
            command = [debugger, "-p", str(pid), "-batch", "-ex", "thread apply all bt 40"]
            told.append(subprocess.run(command, capture_output=True, text=True).stdout)
        else:
            with suppress(subprocess.TimeoutExpired):  # time to write
                self.process.wait(2.0)
        return "\n".join([*told, ""])

    def stop(self) -> int:
        """Interrupt it, as Ctrl-C does, and return its exit code."""
        self.process.send_signal(signal.SIGINT)
        try:
            return self.wait(END - 10.0)  # before it ends by itself, whatever hangs
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        written = self.output
        self._output.close()
        print(written)  # pytest shows it when the test fails
        assert "Traceback" not in written


def standstill() -> str:
    """Return where all threads of the processes are that have not ended, and what they wrote."""
    alive = [process for process in ALL if process.process.poll() is None]
    return "".join(f"\n{process.stacks()}{process.output}" for process in alive)


@contextmanager
def throttled(process: Process, share: float, slice_s: float = 0.1) -> Iterator[None]:
    """Let a process run for a share of each slice of time, as a quota of a control group does."""
    over = threading.Event()

    def turns() -> None:
        while not over.is_set():
            process.process.send_signal(signal.SIGSTOP)
            over.wait(slice_s * (1.0 - share))
            process.process.send_signal(signal.SIGCONT)
            over.wait(slice_s * share)

    thread = threading.Thread(target=turns)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def starving(process: Process) -> Iterator[None]:
    """Leave a process what a busy processor has left over, which is next to nothing."""
    cpus = os.sched_getaffinity(0)
    chosen = min(cpus)
    threads = [int(item) for item in os.listdir(f"/proc/{process.process.pid}/task")]
    for thread in threads:
        os.sched_setaffinity(thread, {chosen})
        os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
    busy = f"import os\nos.sched_setaffinity(0, {{{chosen}}})\nwhile True: pass"
    rival = subprocess.Popen([sys.executable, "-c", busy])
    try:
        yield
    finally:
        rival.kill()
        rival.wait()
        for thread in threads:  # or whatever else runs on the machine would go on starving it
            os.sched_setaffinity(thread, cpus)
            with suppress(PermissionError):
                os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
