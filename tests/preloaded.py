"""Has imported what many processes of the tests import, and forks a process for each start.

These are executables of monitor_node, commands of forewarn and members of a cluster. To import what
they need takes a second and a half, which would be most of what such a test takes. rclpy is left to
the process itself: its libraries start threads, which no fork takes along. That process has an
environment, an output, signals and an exit code of its own, and ends as an interpreter does that
was started for it.

``python preloaded.py SOCKET`` answers requests in JSON with a number: ``run`` (the name of an
executable of monitor_node or, if ``module``, what ``python -m`` takes; its two outputs and a pipe
that it holds as long as it lives come along) with the process id, ``bury`` with the exit code of a
process that has ended.
"""

from __future__ import annotations

import ctypes
import faulthandler
import importlib.util
import json
import os
import runpy
import signal
import socket
import sys
from typing import Any

from forewarn_ros.process import Interrupt

PR_SET_PDEATHSIG = 1  # of linux/prctl.h
LIBRARY = (
    "monitoring.bridging",
    "monitoring.record",
    "monitoring.online_learning",
)
CLUSTER = ("s3fs", "distributed")
MESSAGES = ("diagnostic", "forewarn", "geometry", "lifecycle", "rcl_interfaces", "rosgraph", "std")


def preload() -> None:
    """Import all that is no library of ROS."""
    for name in LIBRARY:
        importlib.import_module(f"forewarn.{name}")
    for name in MESSAGES:
        package = name if name.endswith("interfaces") else f"{name}_msgs"
        importlib.import_module(f"{package}.msg")
    assert "rclpy" not in sys.modules
    for name in CLUSTER:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)


def serve(requests: socket.socket) -> dict[str, Any] | None:
    """Answer until nobody asks any more; return, in a process of its own, what is to be run."""
    while True:
        text, files, _, _ = socket.recv_fds(requests, 1 << 20, 3)
        if not text:
            return None
        request = json.loads(text)
        if "bury" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["bury"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                become(request, *files)
                return request
            for file in files:
                os.close(file)
        requests.send(str(answer).encode())


def become(request: dict[str, Any], output: int, errors: int, alive: int) -> None:
    """Take on what the process was started with, and end when the tests are killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv[1:] = request["arguments"]
    for standard, file in ((1, output), (2, errors)):
        os.dup2(file, standard)
        os.close(file)
    os.set_inheritable(alive, False)
    faulthandler.register(signal.SIGUSR1)  # where does it hang? see live_process.py


if __name__ == "__main__":
    # Ctrl-C is for the processes: this one ends with the tests.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    preload()
    with socket.socket(fileno=int(sys.argv[1])) as given:
        wanted = serve(given)
    if wanted is not None and wanted["module"]:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        runpy.run_module(wanted["run"], run_name="__main__", alter_sys=True)
    elif wanted is not None:
        with Interrupt() as interrupt:  # a test may stop what it has only just started
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            importlib.import_module(f"monitor_node.{wanted['run']}").main(interrupt=interrupt)
