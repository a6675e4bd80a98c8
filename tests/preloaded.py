"""Has imported what the executables of monitor_node import, and forks a process for each start.

To import it takes a second and a half, which would be most of what a live test takes. rclpy is
left to the process itself: its libraries start threads, which no fork takes along. That process
has an environment, an output, signals and an exit code of its own, and ends as an interpreter does
that was started for it.

``python preloaded.py SOCKET`` answers requests in JSON with a number: ``run`` (the name of the
executable; its output and a pipe that it holds as long as it lives come along) with the process
id, ``bury`` with the exit code of a process that has ended.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import socket
import sys
from typing import Any

from forewarn_ros.process import Interrupt

PR_SET_PDEATHSIG = 1  # of linux/prctl.h
LIBRARY = (
    "monitoring.bridging",
    "signals.external",
    "monitoring.record",
    "monitoring.online_learning",
)
MESSAGES = ("diagnostic", "forewarn", "geometry", "lifecycle", "rcl_interfaces", "rosgraph", "std")


def preload() -> None:
    """Import all that is no library of ROS."""
    for name in LIBRARY:
        importlib.import_module(f"forewarn.{name}")
    for name in MESSAGES:
        package = name if name.endswith("interfaces") else f"{name}_msgs"
        importlib.import_module(f"{package}.msg")
    assert "rclpy" not in sys.modules


def serve(requests: socket.socket) -> dict[str, Any] | None:
    """Answer until nobody asks any more; return, in a process of its own, what is to be run."""
    while True:
        text, files, _, _ = socket.recv_fds(requests, 1 << 20, 2)
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


def become(request: dict[str, Any], output: int, alive: int) -> None:
    """Take on what the process was started with, and end when the tests are killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv[1:] = request["arguments"]
    for standard in (1, 2):
        os.dup2(output, standard)
    os.close(output)
    os.set_inheritable(alive, False)


if __name__ == "__main__":
    # Ctrl-C is for the processes: this one ends with the tests.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    preload()
    with socket.socket(fileno=int(sys.argv[1])) as given:
        wanted = serve(given)
    if wanted is not None:
        with Interrupt() as interrupt:  # a test may stop what it has only just started
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            importlib.import_module(f"monitor_node.{wanted['run']}").main(interrupt=interrupt)
