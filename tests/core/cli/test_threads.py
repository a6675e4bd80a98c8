"""Commands and nodes compute in one thread, unless somebody asks for more."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

BLAS = """
import numpy, scipy.linalg
from threadpoolctl import threadpool_info
print(*{one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"})
"""
COMMAND = "from forewarn.cli import main; main(['completion', '--help'])"
NODE = """
import sys
from monitor_node.console import monitor_node
sys.argv = ["monitor_node", "--ros-args", "-p", "params_file:=0", "--log-level", "none"]
try:
    monitor_node()
except BaseException:
    pass
"""


@pytest.mark.parametrize("started", [COMMAND, NODE], ids=["command", "node"])
@pytest.mark.skipif(os.cpu_count() == 1, reason="one core: nothing computes in more threads")
def test_linear_algebra_has_one_thread(started: str) -> None:
    plain = {key: value for key, value in os.environ.items() if "NUM_THREADS" not in key}
    for given, threads in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")):
        code = [sys.executable, "-c", started + BLAS]
        found = subprocess.run(code, env=plain | given, capture_output=True, text=True, check=True)
        assert found.stdout.splitlines()[-1] == threads, found.stderr
